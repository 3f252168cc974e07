// Brings the self-contained page to life.

import { takeRecordings } from "./dropped.js";
import { mount } from "./report.js";
import { fromBase64 } from "./unpack.js";

const recording = fromBase64(document.getElementById("recording").textContent);
const baseline = document.getElementById("baseline");
const still = document.getElementById("still");
const said = document.getElementById("note");
const live = document.getElementById("live");

mount(live, recording, {
  baseline: baseline.textContent
    ? { packed: fromBase64(baseline.textContent), name: baseline.dataset.name }
    : undefined,
  state: location.hash.slice(1),
  save(state) {
    history.replaceState(null, "", state ? `#${state}` : location.pathname + location.search);
  },
  alive(host) {
    still.hidden = true;
    takeRecordings(window, live, host, said, "jupyter gpumem report");
  },
  failed(error) {
    still.hidden = false;
    said.textContent = `The live report could not be shown, its picture and text stand below: ${error.message ?? error}`;
  },
});
