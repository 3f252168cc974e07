// Brings the self-contained page to life.

import { fromBase64, mount } from "./report.js";

const recording = fromBase64(document.getElementById("recording").textContent);
const still = document.getElementById("still");
const note = document.getElementById("note");

mount(document.getElementById("live"), recording, {
  state: location.hash.slice(1),
  save(state) {
    history.replaceState(null, "", state ? `#${state}` : location.pathname + location.search);
  },
  alive() {
    still.hidden = true;
  },
  failed(error) {
    still.hidden = false;
    note.textContent = `The live report could not be shown: ${error.message ?? error}`;
  },
});
