// How a report finds the runtime of its page.

import assert from "node:assert/strict";
import test, { mock } from "node:test";

const SLOT = Symbol.for("gpumem/__GPUMEM_BUILD_ID__");
const { default: thin } = await import("./thin.js");
// As anywidget does for each model.
const report = () => thin();

const lines = [];
globalThis.document = {
  createElement: () => ({ setAttribute() {}, remove: () => lines.pop() }),
};
const el = { append: (line) => lines.push(line.textContent) };

function model() {
  const sent = [];
  return { sent, get() {}, on() {}, send: (message) => sent.push(message.kind) };
}

test("a report waits for the runtime, and asks for it when it is late", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const waiting = model();
  const rendered = report().render({ model: waiting, el });
  assert.deepEqual(waiting.sent, []);
  mock.timers.tick(1000);
  assert.deepEqual(waiting.sent, ["runtime"]);
  mock.timers.tick(9000);
  assert.match(lines[0], /run this cell again/);

  globalThis[SLOT].resolve({ render: (context) => ({ shown: context }) });
  assert.deepEqual(await rendered, { shown: { model: waiting, el } });
  assert.deepEqual(lines, []);

  const next = model();
  assert.deepEqual(await report().render({ model: next, el }), { shown: { model: next, el } });
  mock.timers.tick(1000);
  assert.deepEqual(next.sent, [], "an available runtime is not requested");
  mock.timers.reset();
});

test("every view of a report gets all frames, even a view that is opened later", async () => {
  const heard = [];
  const { initialize, render } = report();
  initialize({ model: { on: (_, act) => heard.push(act) } });
  const tell = (...bytes) => {
    const view = new DataView(Uint8Array.of(0, ...bytes).buffer, 1);
    for (const act of heard) act({ kind: "frames" }, [view]);
  };
  const applied = [];
  globalThis[SLOT].ready = Promise.resolve({
    render: (_, follow) => follow((frames) => applied.push([...frames])),
  });
  tell(1);
  const close = await render({ model: model(), el });
  tell(2, 3);
  close();
  tell(4);
  assert.deepEqual(applied.splice(0), [[1], [2, 3]]);
  await render({ model: model(), el });
  assert.deepEqual(applied, [[1], [2, 3], [4]]);
});

test("a report says above itself that the recording has stopped", async () => {
  lines.length = 0;
  const stopped = { ...model(), get: (name) => (name === "notice" ? "stopped" : undefined) };
  globalThis[SLOT].ready = Promise.resolve({ render: () => lines.push("report") });
  await report().render({ model: stopped, el });
  assert.deepEqual(lines, ["stopped", "report"]);
});
