// Which keys the report keeps from the notebook around it.

const SUPPRESS = "data-lm-suppress-shortcuts";

/**
 * Keeps single keys that are pressed in the report from acting on the notebook's cells: `d` twice deletes one.
 *
 * JupyterLab hears them at the document, before the report does, so this listens one step earlier.
 * Returns what stops it.
 */
export function keepKeys(host) {
  const listening = new AbortController();
  const decide = (event) => {
    if (event.target === host) host.toggleAttribute(SUPPRESS, isKept(event));
  };
  window.addEventListener("keydown", decide, { capture: true, signal: listening.signal });
  return () => listening.abort();
}

/** Ctrl+S saves the notebook and Shift+Enter runs its cell, also from here. A field has its own Ctrl+A. */
function isKept(event) {
  const isChord = event.ctrlKey || event.metaKey;
  if (isChord && event.composedPath()[0].matches("input")) return event.key.toLowerCase() !== "s";
  return !isChord && !(event.shiftKey && event.key === "Enter");
}
