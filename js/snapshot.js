// The page of a memory snapshot: unpacks module and snapshot, and hands the view sizes and events. Another
// snapshot can be dropped onto it.

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
const file = document.getElementById("snapshot");
const still = document.getElementById("still");
const root = document.getElementById("live");

/** The snapshot that is shown; null before there is one, and after a failure. */
let view = null;

show().catch(fail);

/** What went wrong is said where the page stood; the text stands below. */
function fail(error) {
  view = null;
  const why = error instanceof WebAssembly.CompileError ? BLOCKED : (error.message ?? error);
  root.replaceChildren();
  still.hidden = false;
  say(`The snapshot could not be shown, its text stands below: ${why}`);
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
  const width = root.querySelector(".icicle")?.clientWidth;
  if (width) guarded((live) => live.resize(width, devicePixelRatio));
}

function paintTheme() {
  root.dataset.theme = themeName();
  guarded((live) => live.theme(root.dataset.theme));
}

async function show() {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  document.adoptedStyleSheets = [sheet];
  root.className = "report snapshot";
  await init({ module_or_path: await unpack(fromBase64(MODULE)) });
  const { name, cells } = file.dataset;
  const stream = unpacking(fromBase64(file.textContent)).pipeThrough(counting(file.dataset));
  await open(await collected(stream), name, cells);
  onThemeChange(paintTheme);
  onResize(root, fit);
  listen(root, guarded);
  root.addEventListener("contextrestored", () => guarded((live) => live.repaint()), true);
  takeFiles();
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

/** Shows a snapshot in place of the one that is there; throws where it is none. */
async function open(bytes, name, cells) {
  await progress(`Reading ${name}, ${Math.ceil(bytes.length / 1e6)} MB …`, 0.5);
  performance.mark("gpumem:unpacked");
  const next = new View(bytes, cells);
  view?.free();
  view = next;
  root.replaceChildren();
  paintTheme();
  guarded((live) => live.mount(root, name));
  fit();
  performance.measure("gpumem:first paint", "gpumem:unpacked");
  if (view === null) return;
  said.hidden = true;
  still.hidden = true;
  document.title = `${name} · PyTorch memory snapshot`;
}

/** A file that is dropped onto the page is read here: it goes nowhere. */
function takeFiles() {
  addEventListener("dragover", (event) => {
    if (event.dataTransfer.types.includes("Files")) event.preventDefault();
  });
  addEventListener("drop", async (event) => {
    const [dropped] = event.dataTransfer.files;
    if (!dropped) return;
    event.preventDefault();
    try {
      await open(new Uint8Array(await dropped.arrayBuffer()), dropped.name, "");
    } catch (error) {
      // What was there stays.
      say(`${dropped.name}: ${error.message ?? error}`);
    }
  });
}
