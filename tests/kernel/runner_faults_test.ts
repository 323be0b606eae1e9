import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { Gate } from "../../src/kernel/gate.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { taking } from "./server_double.ts";

/** Puts `call` in the place of the gate's own for as long as `work` takes. */
async function withCall(call: Gate["call"], work: () => Promise<void>): Promise<void> {
  const { call: own } = Gate.prototype;
  Gate.prototype.call = call;
  try {
    await work();
  } finally {
    Gate.prototype.call = own;
  }
}

Deno.test("a call that can't be started fails the run and doesn't stay in flight for ever", async () => {
  const server = new ServerDouble({ tools: { pay: {} } });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }]] });
  const thrower = () => {
    throw new SysError("INTERNAL", "No entry");
  };
  await withCall(thrower, async () => {
    const { end } = await stage.run();
    assert.deepEqual(end.state === "exited" && [end.status, end.error?.message], [
      "failed",
      "No entry",
    ]);
  });
  assert.equal(server.open, 0);
});

Deno.test("a fault of the gate is told once what else is in flight has ended", async () => {
  const server = new ServerDouble({ tools: { pay: {}, slow: { does: taking(300) } } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__slow" }, { tool: "world__pay" }]],
  });
  const own = Gate.prototype.call;
  const faulty: Gate["call"] = function (this: Gate, action, signal) {
    if (action.call === "t1.2") return Promise.reject(new Error("Bug"));
    return own.call(this, action, signal);
  };
  await withCall(faulty, async () => {
    const { end, runId } = await stage.run();
    assert.equal(end.state === "exited" && end.error?.message, "Bug");
    assert.equal((await stage.entriesOf(runId, "call.result")).length, 1);
  });
});
