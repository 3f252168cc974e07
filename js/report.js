// A live report: unpacks the module, hands the view bytes, sizes and events, and
// gives the place back to the picture when the view fails.

import { init, View } from "./glue.js";
import { isDark, onThemeChange } from "./theme.js";

const MODULE = "__GPUMEM_MODULE__";
const STYLE = "__GPUMEM_STYLE__";
const BLOCKED =
  "the page's content security policy forbids WebAssembly: it needs 'wasm-unsafe-eval' and blob:";

let loaded;
let sheet;

/** Compiles the module once for the page. */
function load() {
  loaded ??= unpack(fromBase64(MODULE)).then((bytes) => init({ module_or_path: bytes }));
  return loaded;
}

export function fromBase64(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

/** A strict policy refuses `fetch("data:")`, but not this. */
async function unpack(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
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
 * `alive` is called once the report stands, `failed` when it is gone for good.
 * Returns `apply(frames)` for what was recorded since, and `close()`.
 */
export async function mount(parent, packed, { alive = () => {}, failed = () => {} } = {}) {
  const host = document.createElement("div");
  host.className = "gpumem-report";
  const shadow = host.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [style()];
  const root = document.createElement("div");
  root.className = "report";
  shadow.append(root);
  parent.append(host);

  const stops = [];
  let view = null;

  function close() {
    for (const stop of stops.splice(0)) stop();
    const gone = view;
    view = null;
    gone?.free();
    host.remove();
  }

  // A panic leaves the view borrowed for ever, so it is dropped and not freed.
  function fail(error) {
    console.error("gpumem: the live report failed, its picture is shown instead", error);
    view = null;
    close();
    failed(error);
  }

  function guarded(act) {
    if (!view) return undefined;
    try {
      return act(view);
    } catch (error) {
      return fail(error);
    }
  }

  try {
    const [recording] = await Promise.all([unpack(packed), load()]);
    view = new View(recording);
  } catch (error) {
    fail(error instanceof WebAssembly.CompileError ? new Error(BLOCKED, { cause: error }) : error);
    return { apply() {}, close };
  }

  function paintTheme() {
    const dark = isDark();
    if (root.classList.contains("dark") === dark && root.dataset.themed) return;
    root.dataset.themed = "";
    root.classList.toggle("dark", dark);
    guarded((live) => live.theme(dark));
  }

  guarded((live) => live.mount(root));
  paintTheme();
  stops.push(onThemeChange(paintTheme), onResize(root, guarded), listen(root, guarded));
  host.reportJson = () => guarded((live) => live.report_json());
  if (view) alive(host);
  return {
    apply(frames) {
      // Frames that do not fit are refused by the reader; the report stands as it was.
      try {
        view?.apply(frames);
      } catch (error) {
        if (error instanceof WebAssembly.RuntimeError) fail(error);
        else console.warn("gpumem: a live update was refused", error);
      }
    },
    close,
  };
}

/** Follows the width of the report and the pixels of the screen. */
function onResize(root, guarded) {
  let frame = 0;
  let media;
  const resize = () => {
    frame = 0;
    const width = root.querySelector("figure")?.clientWidth;
    if (width) guarded((view) => view.resize(width, devicePixelRatio));
  };
  const soon = () => {
    frame ||= requestAnimationFrame(resize);
  };
  const watchPixels = () => {
    media?.removeEventListener("change", watchPixels);
    media = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    media.addEventListener("change", watchPixels);
    soon();
  };
  const observer = new ResizeObserver(soon);
  observer.observe(root);
  watchPixels();
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
    media.removeEventListener("change", watchPixels);
  };
}

/** Hands pointer, keys and buttons to the view, at most one move of the pointer a frame. */
function listen(root, guarded) {
  const listening = new AbortController();
  const on = (type, act) => root.addEventListener(type, act, { signal: listening.signal });
  const chartOf = (event) => event.target.dataset.chart;
  let frame = 0;
  let last = null;

  const point = () => {
    frame = 0;
    guarded((view) => (last ? view.point(last.chart, last.x, last.y) : view.leave()));
  };
  const track = (event) => {
    const chart = chartOf(event);
    if (!chart && !last) return;
    last = chart ? { chart, x: event.offsetX, y: event.offsetY } : null;
    frame ||= requestAnimationFrame(point);
  };
  on("pointermove", track);
  on("pointerleave", () => {
    last = null;
    frame ||= requestAnimationFrame(point);
  });
  on("click", (event) => {
    const chart = chartOf(event);
    if (chart) guarded((view) => view.click(chart, event.offsetX, event.offsetY));
    const button = event.target.closest("[data-action]");
    if (button) {
      const { action, argument = "" } = button.dataset;
      guarded((view) => view.act(action, argument));
    }
  });
  on("input", (event) => {
    if (event.target.dataset.input !== "threshold") return;
    guarded((view) => view.set_threshold(event.target.valueAsNumber));
  });
  on("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const chart = chartOf(event);
    if (chart && guarded((view) => view.press(chart, event.key))) event.preventDefault();
    if (event.defaultPrevented || isFor(event.target, event.key)) event.stopPropagation();
  });
  return () => {
    cancelAnimationFrame(frame);
    listening.abort();
  };
}

/** The key is one that the element itself answers to, so the notebook must not. */
function isFor(element, key) {
  if (element.matches("input")) return /^(Arrow|Home$|End$|Page)/.test(key);
  return element.matches("button, summary") && (key === "Enter" || key === " ");
}
