// The page of a memory snapshot: unpacks module and snapshot, and hands the view sizes and events.

import { init, View } from "./glue.js";
import { listen } from "./input.js";
import { onResize } from "./size.js";
import { onThemeChange, themeName } from "./theme.js";
import { fromBase64, unpack } from "./unpack.js";

const MODULE = "__GPUMEM_MODULE__";
const STYLE = "__GPUMEM_STYLE__";
const BLOCKED =
  "the page's content security policy forbids WebAssembly: it needs 'wasm-unsafe-eval'";

const said = document.getElementById("note");
const file = document.getElementById("snapshot");

show().catch(fail);

/** What went wrong is said where the page stood; the text stands below. */
function fail(error) {
  const words = error instanceof WebAssembly.CompileError ? BLOCKED : (error.message ?? error);
  document.getElementById("live").remove();
  document.getElementById("still").hidden = false;
  said.hidden = false;
  said.textContent = `The snapshot could not be shown, its text stands below: ${words}`;
}

async function show() {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  document.adoptedStyleSheets = [sheet];
  const [module, snapshot] = await Promise.all(
    [MODULE, file.textContent].map((text) => unpack(fromBase64(text))),
  );
  await init({ module_or_path: module });
  performance.mark("gpumem:unpacked");
  let view = new View(snapshot, file.dataset.cells);
  const guarded = (act) => {
    try {
      return view && act(view);
    } catch (error) {
      // A panic leaves the view borrowed for ever.
      view = null;
      return fail(error);
    }
  };
  const root = document.getElementById("live");
  root.className = "report snapshot";
  const paintTheme = () => {
    root.dataset.theme = themeName();
    guarded((live) => live.theme(root.dataset.theme));
  };
  paintTheme();
  guarded((live) => live.mount(root, file.dataset.name));
  const fit = () => {
    const width = root.querySelector(".icicle")?.clientWidth;
    if (width) guarded((live) => live.resize(width, devicePixelRatio));
  };
  fit();
  performance.measure("gpumem:first paint", "gpumem:unpacked");
  onThemeChange(paintTheme);
  onResize(root, fit);
  listen(root, guarded);
  root.addEventListener("contextrestored", () => guarded((live) => live.repaint()), true);
  said.hidden = view !== null;
  document.getElementById("still").hidden = view !== null;
}
