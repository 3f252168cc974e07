// The runtime of every report on the page: whoever imports it finds it under the
// symbol of its build.

import { takeRecordings } from "./dropped.js";
import { findPicture } from "./picture.js";
import { mount } from "./report.js";

const slot = (globalThis[Symbol.for("gpumem/__GPUMEM_BUILD_ID__")] ??= {});
slot.ready ??= new Promise((resolve) => {
  slot.resolve = resolve;
});
slot.resolve({ render });

const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

function note(el, words) {
  const line = document.createElement("p");
  line.setAttribute("role", "status");
  line.textContent = words;
  el.append(line);
}

function baselineOf(model) {
  const packed = model.get("baseline");
  if (!packed?.byteLength) return undefined;
  return { packed: bytesOf(packed), name: model.get("baseline_name") };
}

async function render({ model, el }, follow) {
  let picture = null;
  let stopTaking = () => {};
  const hide = (host) => {
    const line = document.createElement("div");
    line.setAttribute("role", "status");
    el.append(line);
    stopTaking = takeRecordings(el, el, host, line, "%gpumem_report");
    // The notebook attaches `el` only after this returns.
    const seen = new ResizeObserver(() => {
      if (!host.isConnected) return;
      seen.disconnect();
      picture = findPicture(el, model.get("picture"));
      // JupyterLab's own style gives outputs a `display`, so `hidden` would not hide them.
      if (picture) picture.style.display = "none";
    });
    seen.observe(host);
  };
  const show = () => {
    if (picture) picture.style.display = "";
  };
  const failed = (error) => {
    show();
    note(
      el,
      `The live report could not be shown, its picture stands above: ${error.message ?? error}`,
    );
  };
  const save = (state) => {
    model.set("state", state);
    model.save_changes();
  };
  const report = await mount(el, bytesOf(model.get("recording")), {
    alive: hide,
    failed,
    baseline: baselineOf(model),
    state: model.get("state"),
    save,
  });
  const stop = follow(report.apply);
  return () => {
    stop();
    stopTaking();
    show();
    report.close();
  };
}

export default {};
