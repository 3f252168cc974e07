// How a report leaves the page: as a file, or by the clipboard.

const FILES = {
  slide: ["gpumem-16x9.png", "image/png"],
  png: ["gpumem.png", "image/png"],
  svg: ["gpumem.svg", "image/svg+xml"],
  csv: ["gpumem.csv", "text/csv"],
  recording: ["gpumem.recording", "application/octet-stream"],
};

/** Hands the browser a file. */
export function download(kind, content) {
  const [name, type] = FILES[kind];
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser reads it after this turn.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** What `paint` draws, as a PNG. */
export async function pictureOf(paint) {
  const canvas = document.createElement("canvas");
  paint(canvas);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png");
  });
}

/** Puts a text on the clipboard, also where a frame is not allowed to ask for it. */
export async function copy(root, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const before = root.getRootNode().activeElement;
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "unseen";
    root.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    // The keyboard was in the field.
    before?.focus({ preventScroll: true });
  }
}
