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
  const report = await mount(el, bytesOf(model.get("recording")), { alive: hide, failed: show });
  const update = (message, buffers) => {
    if (message.kind === "frames") report.apply(bytesOf(buffers[0]));
  };
  model.on("msg:custom", update);
  return () => {
    model.off("msg:custom", update);
    show();
    report.close();
  };
}

export default {};
