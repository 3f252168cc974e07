// Files that are dropped onto the page: they are read here and go nowhere.

/** Calls `open` with the files that are dropped onto `target`; returns how to stop. */
export function takeFiles(target, open) {
  const listening = new AbortController();
  const on = (type, act) => target.addEventListener(type, act, { signal: listening.signal });
  on("dragover", (event) => {
    if (event.dataTransfer.types.includes("Files")) event.preventDefault();
  });
  on("drop", (event) => {
    const { files } = event.dataTransfer;
    if (!files.length) return;
    event.preventDefault();
    open([...files]);
  });
  return () => listening.abort();
}
