// How a report leaves the page: as a file, or by the clipboard.

const FILES = {
  slide: ["gpumem-16x9.png", "image/png"],
  png: ["gpumem.png", "image/png"],
  svg: ["gpumem.svg", "image/svg+xml"],
  html: ["gpumem.html", "text/html"],
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

/** A page of its own: `template` with its `__GPUMEM_…__` filled in. */
export function filled(template, values) {
  return template.replace(/__GPUMEM_([A-Z]+)__/g, (_, name) => values[name] ?? "");
}

/** What may stand in a page as text. */
export function escaped(text) {
  return text.replace(/[&<>"]/g, (char) => `&#${char.codePointAt(0)};`);
}

/** The bytes of `blob` as a page carries them. */
export function base64Of(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.split(",")[1]);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** Packed as a recording in a page is. */
export function pack(blob) {
  return new Response(blob.stream().pipeThrough(new CompressionStream("gzip"))).blob();
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
