// How large the page's part of the screen is.

/** Follows the width of an element and the pixels of the screen; returns how to stop. */
export function onResize(root, fit) {
  let frame = 0;
  let media;
  const resize = () => {
    frame = 0;
    fit();
  };
  const soon = () => {
    frame ||= requestAnimationFrame(resize);
  };
  const watchPixels = () => {
    media?.removeEventListener("change", watchPixels);
    media = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    media.addEventListener("change", watchPixels);
    soon();
  };
  const observer = new ResizeObserver(soon);
  observer.observe(root);
  watchPixels();
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
    media.removeEventListener("change", watchPixels);
  };
}
