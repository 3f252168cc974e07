// A file that is dropped onto a report: a recording is shown in the report's place until the reader goes back. For
// others the page has no module: it says how they are opened.

import { takeFiles } from "./drop.js";
import { pack } from "./export.js";
import { mount } from "./report.js";

/** What a recording begins with, after length and checksum. */
const isRecording = (bytes) => String.fromCharCode(...bytes.subarray(8, 16)).includes("header");

/**
 * Shows recordings that are dropped onto `target` inside `parent`, in place of `shown`.
 *
 * `line` is an element that says so, `command` what opens other files.
 * Returns how to stop.
 */
export function takeRecordings(target, parent, shown, line, command) {
  let other = null;

  function back() {
    other?.close();
    other = null;
    shown.style.display = "";
    line.replaceChildren();
  }

  async function take([file]) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (!isRecording(bytes)) {
      line.textContent = `${file.name} is no recording of gpumem. To open a memory snapshot, a profiler's trace or another file that gpumem reads: ${command} ${file.name}`;
      return;
    }
    let why = null;
    let next = null;
    next = await mount(parent, await pack(new Blob([bytes])), {
      failed(error) {
        why = error;
        if (other === next) back();
        line.textContent = `${file.name} could not be shown: ${error.message ?? error}`;
      },
    });
    if (why) return;
    other?.close();
    other = next;
    shown.style.display = "none";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Back";
    button.addEventListener("click", back);
    line.replaceChildren(`This is ${file.name}, which was dropped here. `, button);
  }

  const stop = takeFiles(target, take);
  return () => {
    stop();
    other?.close();
  };
}
