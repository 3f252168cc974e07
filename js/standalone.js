// Brings the self-contained page to life.

import { mount } from "./report.js";
import { fromBase64 } from "./unpack.js";

const recording = fromBase64(document.getElementById("recording").textContent);
const baseline = document.getElementById("baseline");
const still = document.getElementById("still");
const said = document.getElementById("note");

mount(document.getElementById("live"), recording, {
  baseline: baseline.textContent
    ? { packed: fromBase64(baseline.textContent), name: baseline.dataset.name }
    : undefined,
  state: location.hash.slice(1),
  save(state) {
    history.replaceState(null, "", state ? `#${state}` : location.pathname + location.search);
  },
  alive() {
    still.hidden = true;
  },
  failed(error) {
    still.hidden = false;
    said.textContent = `The live report could not be shown, its picture and text stand below: ${error.message ?? error}`;
  },
});
