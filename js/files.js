// The page of files that other programs wrote: unpacks module and files, and hands the view sizes and events.
// Other files can be dropped onto it.

import { takeFiles } from "./drop.js";
import { init, View } from "./glue.js";
import { listen } from "./input.js";
import { onResize } from "./size.js";
import { onThemeChange, themeName } from "./theme.js";
import { collected, fromBase64, unpack, unpacking } from "./unpack.js";

const MODULE = "__GPUMEM_MODULE__";
const STYLE = "__GPUMEM_STYLE__";
const BLOCKED =
  "the page's content security policy forbids WebAssembly: it needs 'wasm-unsafe-eval'";

const STEP = 8e6;

const said = document.getElementById("note");
const words = document.getElementById("doing");
const bar = document.getElementById("bar");
const still = document.getElementById("still");
const host = document.getElementById("live");
const choice = document.getElementById("choice");
const root = document.getElementById("view");

/** What is shown; null before there is one, and after a failure. */
let view = null;

show().catch(fail);

/** What went wrong is said where the page stood; the text stands below. */
function fail(error) {
  view = null;
  const why = error instanceof WebAssembly.CompileError ? BLOCKED : (error.message ?? error);
  root.replaceChildren();
  still.hidden = false;
  say(`The page could not be shown, its text stands below: ${why}`);
}

function say(text) {
  said.hidden = false;
  bar.hidden = true;
  words.textContent = text;
}

/** Says how much of the reading is done, and lets the browser paint it. */
async function progress(text, share) {
  said.hidden = false;
  bar.hidden = false;
  bar.value = share;
  words.textContent = text;
  await new Promise((resume) => requestAnimationFrame(() => setTimeout(resume)));
}

function guarded(act) {
  try {
    return view && act(view);
  } catch (error) {
    // A panic leaves the view borrowed for ever.
    return fail(error);
  }
}

function fit() {
  const widths = [...root.querySelectorAll("figure")].map((figure) => figure.clientWidth);
  const width = Math.max(0, ...widths);
  if (width) guarded((live) => live.resize(width, devicePixelRatio));
}

function paintTheme() {
  host.dataset.theme = themeName();
  guarded((live) => live.theme(host.dataset.theme));
}

async function show() {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  document.adoptedStyleSheets = [sheet];
  await init({ module_or_path: await unpack(fromBase64(MODULE)) });
  const files = [...document.querySelectorAll("script.file")].map((file) => ({
    name: file.dataset.name,
    label: file.dataset.label,
    cells: file.dataset.cells,
    bytes: () =>
      collected(unpacking(fromBase64(file.textContent)).pipeThrough(counting(file.dataset))),
  }));
  await offer(files);
  onThemeChange(paintTheme);
  onResize(root, fit);
  listen(root, guarded);
  root.addEventListener("contextrestored", () => guarded((live) => live.repaint()), true);
  readRows();
  takeFiles(window, take);
}

/** Tells of what goes through it, once for each 8 MB. */
function counting({ name, size }) {
  let [n, next] = [0, STEP];
  return new TransformStream({
    async transform(chunk, rest) {
      rest.enqueue(chunk);
      n += chunk.length;
      if (n < next) return;
      next = n + STEP;
      await progress(`Unpacking ${name} …`, (n / size) * 0.5);
    },
  });
}

/** Shows the first of some files, with a button for each where there are several. */
async function offer(files) {
  await open(files[0]);
  const buttons = files.map((file) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = file.label || file.name;
    button.ariaPressed = `${file === files[0]}`;
    button.addEventListener("click", async () => {
      try {
        await open(file);
        for (const other of buttons) other.ariaPressed = `${other === button}`;
      } catch (error) {
        refuse(file, error);
      }
    });
    return button;
  });
  choice.replaceChildren(...buttons);
  choice.hidden = files.length < 2;
}

/** Shows a file in place of the one that is there; throws where it has no page. */
async function open(file) {
  const bytes = await unpacked(await file.bytes());
  await progress(`Reading ${file.name}, ${Math.ceil(bytes.length / 1e6)} MB …`, 0.5);
  performance.mark("gpumem:unpacked");
  const next = new View(bytes, file.cells ?? "");
  view?.free();
  view = next;
  root.replaceChildren();
  paintTheme();
  guarded((live) => live.mount(root, file.name));
  fit();
  performance.measure("gpumem:first paint", "gpumem:unpacked");
  if (view === null) return;
  said.hidden = true;
  still.hidden = true;
  document.title = `${file.name} · ${view.kind()}`;
}

/** The browser unpacks faster than the module; what it refuses, the module may read. */
function unpacked(bytes) {
  return bytes[0] === 0x1f && bytes[1] === 0x8b ? unpack(bytes).catch(() => bytes) : bytes;
}

/** What was there stays. */
function refuse({ name }, error) {
  say(`${name}: ${error.message ?? error}`);
}

async function take(dropped) {
  const files = dropped.map((file) => ({
    name: file.name,
    bytes: async () => new Uint8Array(await file.arrayBuffer()),
  }));
  try {
    await offer(files);
  } catch (error) {
    refuse(files[0], error);
  }
}

/** Tells the view which row of a table is pointed at or has the keyboard. */
function readRows() {
  let row = "";
  let frame = 0;
  const hover = () => {
    frame = 0;
    guarded((live) => live.hover(row));
  };
  const read = (event) => {
    const now = event.target.closest?.("[data-row]")?.dataset.row ?? "";
    if (now === row) return;
    row = now;
    if (frame === 0) frame = requestAnimationFrame(hover);
  };
  root.addEventListener("pointerover", read);
  root.addEventListener("focusin", read);
  root.addEventListener("pointerleave", read);
}
