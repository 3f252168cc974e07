// Hands pointer, wheel, fingers, keys and fields to the view, which decides what
// they mean. At most one move of the pointer a frame.

import { readBlock, stayAtBlock, walkBlocks } from "./blocks.js";

/** What a notch of the wheel zooms by. */
const NOTCH = 0.0015;

export function listen(root, guarded) {
  const listening = new AbortController();
  const on = (type, act, options) =>
    root.addEventListener(type, act, { signal: listening.signal, ...options });
  const chartOf = (event) => event.target.dataset?.chart;
  let frame = 0;
  let last = null;
  /** The chart that a pointer was put down on, with its left edge. */
  let held = null;
  let dragged = false;
  /** Where the pointer was last, in the window. */
  let rest = {};
  const fingers = new Map();

  const point = () => {
    frame = 0;
    guarded((view) => (last ? view.point(last.chart, last.x, last.y) : view.leave()));
  };
  const track = (event) => {
    const chart = chartOf(event);
    if (!chart && !last) return;
    last = chart ? { chart, x: event.offsetX, y: event.offsetY } : null;
    frame ||= requestAnimationFrame(point);
  };
  /** A page that scrolls under a pointer at rest tells of a move that nobody made. */
  const isAtRest = ({ clientX: x, clientY: y }) => {
    const stays = x === rest.x && y === rest.y;
    rest = { x, y };
    return stays;
  };
  const release = (isOver) => {
    if (!held) return;
    held = null;
    guarded((view) => view.release(isOver));
  };

  on("pointerdown", (event) => {
    const chart = chartOf(event);
    dragged = false;
    if (!chart || event.button !== 0) return;
    track(event);
    const { left } = event.target.getBoundingClientRect();
    if (event.pointerType === "touch") fingers.set(event.pointerId, event.clientX);
    if (fingers.size === 2) {
      release(false);
      return;
    }
    event.target.setPointerCapture(event.pointerId);
    held = { chart, left };
    guarded((view) => view.grab(chart, event.clientX - left));
  });
  on("pointermove", (event) => {
    if (fingers.has(event.pointerId) && fingers.size === 2) return pinch(event);
    if (held) {
      dragged = guarded((view) => view.drag(event.clientX - held.left)) || dragged;
      if (dragged) return undefined;
    }
    return isAtRest(event) ? undefined : track(event);
  });
  on("pointerup", (event) => {
    fingers.delete(event.pointerId);
    release(true);
  });
  on("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    release(false);
  });
  on("pointerleave", (event) => {
    // A finger that is lifted leaves what it tapped to be read.
    if (event.pointerType === "touch" || isAtRest(event)) return;
    last = null;
    frame ||= requestAnimationFrame(point);
  });
  on("click", (event) => {
    const chart = chartOf(event);
    // What the click leads to is read out after what was pointed at before it.
    if (frame) {
      cancelAnimationFrame(frame);
      point();
    }
    if (chart && !dragged) guarded((view) => view.click(chart, event.offsetX, event.offsetY));
    const button = event.target.closest("[data-action]");
    if (button) {
      const { action, argument = "" } = button.dataset;
      // The view opens and closes folds: the page need not.
      if (button.matches("summary")) event.preventDefault();
      guarded((view) => view.act(action, argument));
    }
  });
  on("dblclick", (event) => {
    const chart = chartOf(event);
    if (chart) guarded((view) => view.act("whole", chart));
  });
  on(
    "wheel",
    (event) => {
      const chart = chartOf(event);
      if (!chart || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      const factor = Math.exp(event.deltaY * NOTCH);
      guarded((view) => view.zoom(chart, event.offsetX, factor, 0));
    },
    { passive: false },
  );
  on("input", (event) => {
    const { input, argument = "" } = event.target.dataset;
    const value = event.target.type === "checkbox" ? `${event.target.checked}` : event.target.value;
    if (input) guarded((view) => view.input(input, argument, value));
  });
  on("pointerover", readBlock);
  on("focusin", stayAtBlock);
  on("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (walkBlocks(event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const isField = event.target.matches("input");
    const isAsked = !isField || event.key === "Escape";
    const chart = chartOf(event) ?? "";
    if (isAsked && guarded((view) => view.press(chart, event.key, event.shiftKey))) {
      event.preventDefault();
    }
    if (event.defaultPrevented || isFor(event.target, event.key)) event.stopPropagation();
  });

  /** Two fingers: as far apart as they were, so much time is in view. */
  function pinch(event) {
    const [a, b] = [...fingers.keys()];
    const before = Math.abs(fingers.get(a) - fingers.get(b));
    const centre = (fingers.get(a) + fingers.get(b)) / 2;
    fingers.set(event.pointerId, event.clientX);
    const after = Math.abs(fingers.get(a) - fingers.get(b));
    const moved = centre - (fingers.get(a) + fingers.get(b)) / 2;
    const { left, width } = event.target.getBoundingClientRect();
    const factor = before / Math.max(after, 1);
    dragged = true;
    guarded((view) => view.zoom(chartOf(event) ?? "", centre - left, factor, moved / width));
  }

  return () => {
    cancelAnimationFrame(frame);
    listening.abort();
  };
}

/** The key is one that the element itself answers to, so the notebook must not. */
function isFor(element, key) {
  if (element.matches("input[type=range]")) return /^(Arrow|Home$|End$|Page)/.test(key);
  if (element.matches("input")) return true;
  return element.matches("button, summary") && (key === "Enter" || key === " ");
}
