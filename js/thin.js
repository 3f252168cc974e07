const slot = (globalThis[Symbol.for("gpumem/__GPUMEM_BUILD_ID__")] ??= {});
slot.ready ??= new Promise((resolve) => {
  slot.resolve = resolve;
});

async function provide(parts, el) {
  const url = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
  try {
    await import(url);
  } catch (error) {
    say(
      el,
      `The live report cannot run here: ${error.message ?? error}. Its picture stands above.`,
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}

// The kernel answers only between cells, so this is for a page that lost the runtime, or
// that shows nothing but this output: then later reports had better bring it along.
function ask(model, el) {
  model.on("msg:custom", (message, buffers) => {
    if (message.kind === "runtime") provide(buffers, el);
  });
  model.send({ kind: "runtime", alone: globalThis.parent !== globalThis });
}

function show(el, words) {
  const line = document.createElement("p");
  line.setAttribute("role", "status");
  line.textContent = words;
  el.append(line);
  return line;
}

function say(el, words) {
  const line = show(el, words);
  slot.ready.then(() => line.remove());
}

const MISSING =
  "The live report is not here: run this cell again for it. Its picture stands above.";

/** One report: `default` is called once for each model, whose views share what it holds. */
export default () => {
  const sent = [];
  const followers = new Set();
  /** Every view gets all frames since the picture, even a view that is opened later. */
  function follow(apply) {
    for (const frames of sent) apply(frames);
    followers.add(apply);
    return () => followers.delete(apply);
  }
  return {
    initialize({ model }) {
      model.on("msg:custom", (message, buffers) => {
        if (message.kind !== "frames") return;
        const { buffer, byteOffset, byteLength } = buffers[0];
        const frames = new Uint8Array(buffer, byteOffset, byteLength);
        sent.push(frames);
        for (const apply of followers) apply(frames);
      });
    },
    async render(context) {
      const { model, el } = context;
      const notice = model.get("notice");
      if (notice) show(el, notice);
      const brought = model.get("runtime");
      if (brought?.byteLength) provide([brought], el);
      const late = setTimeout(ask, 1000, model, el);
      const missing = setTimeout(say, 10_000, el, MISSING);
      const runtime = await slot.ready;
      clearTimeout(late);
      clearTimeout(missing);
      return runtime.render(context, follow);
    },
  };
};
