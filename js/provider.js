// The runtime of every report on the page: whoever imports it finds it under the
// symbol of its build.

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

const followed = new WeakMap();

/**
 * What was recorded since a model's own recording: every view of the model is told all
 * of it, also one that is opened later.
 */
function framesOf(model) {
  let frames = followed.get(model);
  if (frames) return frames;
  const sent = [];
  const followers = new Set();
  frames = {
    follow(apply) {
      sent.forEach(apply);
      followers.add(apply);
      return () => followers.delete(apply);
    },
  };
  model.on("msg:custom", (message, buffers) => {
    if (message.kind !== "frames") return;
    const latest = bytesOf(buffers[0]);
    sent.push(latest);
    for (const apply of followers) apply(latest);
  });
  followed.set(model, frames);
  return frames;
}

async function render({ model, el }) {
  let picture = null;
  const hide = (host) => {
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
  const frames = framesOf(model);
  const report = await mount(el, bytesOf(model.get("recording")), {
    alive: hide,
    failed,
    baseline: baselineOf(model),
    state: model.get("state"),
    save,
  });
  const stop = frames.follow(report.apply);
  return () => {
    stop();
    show();
    report.close();
  };
}

export default {};
