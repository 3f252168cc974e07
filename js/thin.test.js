// How a report finds the runtime of its page.

import assert from "node:assert/strict";
import test, { mock } from "node:test";

const SLOT = Symbol.for("gpumem/__GPUMEM_BUILD_ID__");
const { default: thin } = await import("./thin.js");

function model() {
  const sent = [];
  return { sent, on() {}, send: (message) => sent.push(message.kind) };
}

test("a report waits for the runtime, and asks for it when it is late", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const waiting = model();
  const rendered = thin.render({ model: waiting });
  assert.deepEqual(waiting.sent, []);
  mock.timers.tick(1000);
  assert.deepEqual(waiting.sent, ["runtime"]);

  globalThis[SLOT].resolve({ render: (context) => ({ shown: context.model }) });
  assert.deepEqual(await rendered, { shown: waiting });

  const next = model();
  assert.deepEqual(await thin.render({ model: next }), { shown: next });
  mock.timers.tick(1000);
  assert.deepEqual(next.sent, [], "the runtime is there, so it is not asked for");
  mock.timers.reset();
});
