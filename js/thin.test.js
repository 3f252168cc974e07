// How a report finds the runtime of its page.

import assert from "node:assert/strict";
import test, { mock } from "node:test";

const SLOT = Symbol.for("gpumem/__GPUMEM_BUILD_ID__");
const { default: thin } = await import("./thin.js");

const lines = [];
globalThis.document = {
  createElement: () => ({ setAttribute() {}, remove: () => lines.pop() }),
};
const el = { append: (line) => lines.push(line.textContent) };

function model() {
  const sent = [];
  return { sent, on() {}, send: (message) => sent.push(message.kind) };
}

test("a report waits for the runtime, and asks for it when it is late", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const waiting = model();
  const rendered = thin.render({ model: waiting, el });
  assert.deepEqual(waiting.sent, []);
  mock.timers.tick(1000);
  assert.deepEqual(waiting.sent, ["runtime"]);
  mock.timers.tick(9000);
  assert.match(lines[0], /run this cell again/);

  globalThis[SLOT].resolve({ render: (context) => ({ shown: context }) });
  assert.deepEqual(await rendered, { shown: { model: waiting, el } });
  assert.deepEqual(lines, []);

  const next = model();
  assert.deepEqual(await thin.render({ model: next, el }), { shown: { model: next, el } });
  mock.timers.tick(1000);
  assert.deepEqual(next.sent, [], "the runtime is there, so it is not asked for");
  mock.timers.reset();
});
