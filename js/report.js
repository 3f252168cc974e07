// A live report: unpacks the module, hands the view bytes, sizes and events, and
// gives the place back to the picture when the view fails.

import { goToCell, linkCells } from "./cells.js";
import { base64Of, copy, download, escaped, filled, pack, pictureOf } from "./export.js";
import { init, View } from "./glue.js";
import { listen } from "./input.js";
import { keepKeys } from "./keys.js";
import { onResize } from "./size.js";
import { onThemeChange, themeName } from "./theme.js";
import { fromBase64, unpack } from "./unpack.js";

const MODULE = "__GPUMEM_MODULE__";
const STYLE = "__GPUMEM_STYLE__";
/** The page that stands by itself, and what brings it to life. */
const PAGE = "__GPUMEM_PAGE__";
const STANDALONE = "__GPUMEM_STANDALONE__";
/** What runs here, for a page that takes it along; empty where the page may not read it. */
const SOURCE = import.meta.url.startsWith("blob:")
  ? fetch(import.meta.url)
      .then(async (it) => (await it.text()) + STANDALONE)
      .catch(() => "")
  : Promise.resolve(document.querySelector("script[type=module]")?.textContent ?? "");
const BLOCKED =
  "the page's content security policy forbids WebAssembly: it needs 'wasm-unsafe-eval' and blob:";
/** How long what the reader looks at may be newer than what is kept of it. */
const SAVE_MILLIS = 250;
/** Between two updates, and how many times as long as one took: the page has other things to do. */
const REST_MILLIS = 100;
const REST = 4;
/** The longest that frames wait for a press to end. */
const PRESS_MILLIS = 1000;
const COPIED = "Copied ✓";
/** How long a button says so. */
const COPIED_MILLIS = 2000;

let loaded;
let sheet;

/** Compiles the module once for the page. */
function load() {
  loaded ??= unpack(fromBase64(MODULE)).then((bytes) => init({ module_or_path: bytes }));
  return loaded;
}

function style() {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
  }
  return sheet;
}

/**
 * Shows a gzipped recording inside `parent`.
 *
 * `baseline` is the recording to compare with, as `{ packed, name }`.
 * `state` is the saved view, and `save` is called with each new one.
 * `alive` is called once the report is built, `failed` if it fails for good.
 * Returns `apply(frames)` for later frames, and `close()`.
 */
export async function mount(
  parent,
  packed,
  { alive = () => {}, failed = () => {}, state = "", save = () => {}, baseline } = {},
) {
  const host = document.createElement("div");
  host.className = "gpumem-report";
  const shadow = host.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [style()];
  const root = document.createElement("div");
  root.className = "report";
  shadow.append(root);
  parent.append(host);

  const stops = [keepKeys(host)];
  let view = null;
  let painted = false;
  let saved = state;
  let saving = 0;
  let updating = 0;
  let resting = 0;
  let rested = 0;
  let pressed = Number.NEGATIVE_INFINITY;
  const waiting = [];
  const since = [];

  function close() {
    clearTimeout(saving);
    clearTimeout(resting);
    cancelAnimationFrame(updating);
    for (const stop of stops.splice(0)) stop();
    const gone = view;
    view = null;
    gone?.free();
    host.remove();
  }

  // What went wrong is said where the report stood; a panic leaves the view borrowed for ever, so it is dropped and not freed.
  function fail(error) {
    console.error("gpumem: the live report failed, its picture is shown instead", error);
    view = null;
    close();
    failed(error);
  }

  function guarded(act) {
    if (!view) return undefined;
    try {
      const outcome = act(view);
      saving ||= setTimeout(keep, SAVE_MILLIS);
      return outcome;
    } catch (error) {
      return fail(error);
    }
  }

  function keep() {
    saving = 0;
    const now = view?.text("state") ?? saved;
    if (now === saved) return;
    saved = now;
    save(now);
  }

  try {
    const [recording, before] = await Promise.all([
      unpack(packed),
      baseline ? unpack(baseline.packed) : null,
      load(),
    ]);
    performance.mark("gpumem:unpacked");
    view = new View(recording);
    if (before) view.compare(before, baseline.name);
    if (state) view.restore(state);
  } catch (error) {
    fail(error instanceof WebAssembly.CompileError ? new Error(BLOCKED, { cause: error }) : error);
    return { apply() {}, close };
  }

  /** Paints at the width that there is; none before the page attaches the report. */
  function fit() {
    const width = root.querySelector("figure")?.clientWidth;
    if (!width) return;
    guarded((live) => live.resize(width, devicePixelRatio));
    if (painted) return;
    painted = true;
    performance.measure("gpumem:first paint", "gpumem:unpacked");
  }

  function paintTheme() {
    const name = themeName();
    if (root.dataset.theme === name) return;
    root.dataset.theme = name;
    guarded((live) => live.theme(name));
  }

  paintTheme();
  guarded((live) => live.mount(root));
  SOURCE.then((source) => {
    const button = root.querySelector("[data-argument=html]");
    if (button) button.hidden = !source;
  });
  fit();
  const cells = linkCells(root, host);
  const onSize = () => {
    fit();
    // The notebook attaches the report only after it stands.
    cells.link();
  };
  stops.push(onThemeChange(paintTheme), onResize(root, onSize), listen(root, guarded), cells.stop);
  root.addEventListener("click", (event) => {
    const { action } = event.target.dataset;
    if (action === "same") event.target.ariaExpanded = `${event.target.ariaExpanded !== "true"}`;
    if (action === "help") event.target.closest("details.drop")?.removeAttribute("open");
    const button = event.target.closest("[data-action=export], [data-action=copy]");
    if (button) guarded((live) => leave(live, button));
    const cell = event.target.closest("[data-action=cell]");
    if (cell) goToCell(host, cell.dataset.argument);
  });
  // What is pressed stays in the page until it is let go of, else no click comes of it.
  for (const type of ["pointerdown", "keydown"]) {
    root.addEventListener(type, () => {
      pressed = performance.now();
    });
  }
  for (const type of ["pointerup", "pointercancel", "keyup"]) {
    root.addEventListener(type, () => {
      pressed = Number.NEGATIVE_INFINITY;
    });
  }
  // A canvas whose content the browser gave up is painted again; the event does not bubble.
  root.addEventListener("contextrestored", () => guarded((live) => live.repaint()), true);
  host.exported = (kind) =>
    guarded((live) => (kind === "figures" ? live.figures() : live.text(kind)));
  if (view) alive(host);

  async function leave(live, button) {
    const kind = button.dataset.argument;
    button.closest("details.drop")?.removeAttribute("open");
    if (button.dataset.action === "copy") return copied(button, copy(root, kind));
    if (kind === "png" || kind === "slide") {
      return download(kind, await pictureOf((canvas) => live.paint(canvas, kind === "slide")));
    }
    if (kind === "python" || kind === "markdown") return copy(root, live.text(kind));
    if (kind === "html") return download(kind, await pageOf(live));
    if (kind === "recording") return download(kind, await recordingOf());
    return download(kind, live.text(kind));
  }

  /** Says on the button that the clipboard has it. */
  async function copied(button, copying) {
    await copying;
    const words = button.textContent;
    if (words === COPIED) return;
    button.textContent = COPIED;
    setTimeout(() => {
      button.textContent = words;
    }, COPIED_MILLIS);
  }

  /** The report as a page that needs nothing but itself. */
  async function pageOf(live) {
    const text = escaped(live.text("markdown"));
    const picture = await pictureOf((canvas) => live.paint(canvas, false));
    return filled(PAGE, {
      ALT: text.split("\n", 1)[0],
      BASELINE: baseline ? await base64Of(new Blob([baseline.packed])) : "",
      NAME: escaped(baseline?.name ?? ""),
      PICTURE: await base64Of(picture),
      RECORDING: await base64Of(await pack(await recordingOf())),
      SCRIPT: await SOURCE,
      TEXT: text,
      WIDTH: `${root.clientWidth}`,
    });
  }

  /** A recording is a sequence of frames: what came since is its end. */
  async function recordingOf() {
    return new Blob([await unpack(packed), ...since]);
  }

  /** All that is there at once, so that it is judged and painted once. */
  function takeIn() {
    const began = performance.now();
    if (began - pressed < PRESS_MILLIS) {
      updating = requestAnimationFrame(takeIn);
      return;
    }
    resting = 0;
    const parts = waiting.splice(0);
    const refused = refusal(joined(parts));
    // What does not fit is left out; taking in a second time what fits changes nothing.
    if (refused && view) parts.forEach(refusal);
    const now = performance.now();
    rested = now + Math.max(REST_MILLIS, REST * (now - began));
  }
  /** What the reader says to frames that it refuses; the report stands as it was. */
  function refusal(frames) {
    try {
      view?.apply(frames);
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) fail(error);
      else console.warn("gpumem: a live update was refused", error);
      return error;
    }
    return undefined;
  }
  return {
    /** Takes frames in soon; a page that nobody sees waits with it. */
    apply(frames) {
      if (!view) return;
      waiting.push(frames);
      since.push(frames);
      resting ||= setTimeout(
        () => {
          updating = requestAnimationFrame(takeIn);
        },
        Math.max(0, rested - performance.now()),
      );
    },
    close,
  };
}

function joined(parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let end = 0;
  for (const part of parts) {
    whole.set(part, end);
    end += part.length;
  }
  return whole;
}
