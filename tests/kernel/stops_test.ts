import assert from "node:assert/strict";
import { sleep } from "../../src/base/clock.ts";
import { SysError } from "../../src/base/errors.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { lost, ok, taking } from "./server_double.ts";
import { REPLY_MS } from "./model_double.ts";

const PAUSE = { kind: "suspend", reason: "paused" } as const;
const TERM = { kind: "kill", signal: "TERM" } as const;

function world(): ServerDouble {
  return new ServerDouble({
    tools: {
      slow: { does: taking(60_000) },
      soon: { does: taking(1_500, "just in time") },
      deaf: { does: () => new Promise(() => {}) },
      read_slow: { effect: "read", does: taking(60_000) },
    },
  });
}

Deno.test("a stop cancels a call, which is then unknown, and waits no longer than the grace", async () => {
  const stage = new KernelStage({ servers: [world()], replies: [[{ tool: "world__slow" }]] });
  const live = await stage.start();
  await stage.clock.advance(100);
  const startMs = stage.clock.monotonic();
  live.stop(PAUSE);
  const { end, ledger } = await stage.clock.run(live.done);
  assert.ok(stage.clock.monotonic() - startMs <= 2_010);
  assert.equal(end.state === "suspended" && end.reason, "paused");
  assert.deepEqual(end.state === "suspended" && end.reasons, ["paused", "unknown-outcome"]);
  assert.deepEqual(ledger.openCalls().map(({ call, cause }) => [call, cause]), [
    ["t1.1", "cancelled"],
  ]);
  const [result] = await stage.entriesOf(live.runId, "call.result");
  assert.equal(result?.outcome === "unknown" && result.cause, "cancelled");
  assert.equal(stage.clock.pending, 0, "no timer is left");
});

Deno.test("[A25] an answer within the grace is kept, and the conversation stays whole", async () => {
  const stage = new KernelStage({
    servers: [world()],
    replies: [[{ tool: "world__soon" }], "Done."],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  live.stop(PAUSE);
  const { end, ledger } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "paused");
  assert.deepEqual(ledger.openCalls(), []);
  const last = await stage.resumeToEnd(live.runId);
  assert.equal(last.end.state === "exited" && last.end.result, "Done.");
  const results = stage.model.asked.at(-1)?.prompt.messages.at(-1);
  assert.match(JSON.stringify(results), /just in time/);
});

Deno.test("a device that never answers its cancel doesn't hold the run", async () => {
  const stage = new KernelStage({ servers: [world()], replies: [[{ tool: "world__deaf" }]] });
  const live = await stage.start();
  await stage.clock.advance(100);
  live.stop(PAUSE);
  const { ledger } = await stage.clock.run(live.done);
  assert.deepEqual(ledger.openCalls().map(({ cause }) => cause), ["cancelled"]);
});

Deno.test("a model that never ends after an abort doesn't hold the run", async () => {
  const stage = new KernelStage({ replies: [{ hangs: true, deaf: true }, "Done."] });
  const live = await stage.start();
  await stage.clock.advance(100);
  live.stop(PAUSE);
  const startMs = stage.clock.monotonic();
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "paused");
  assert.ok(stage.clock.monotonic() - startMs < 100);
  const traced = stage.traces.find(({ syscall }) => syscall === "Model")?.error;
  assert.equal(traced, "[INTERRUPTED] The request was cancelled");
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
});

Deno.test("a call that was aborted before it left is sent by the resume, and never counted as unknown", async () => {
  const server = world();
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__soon" }], "Done."],
  });
  const live = await stage.start();
  await stage.clock.advance(0);
  // The intent's sync takes its time; the stop comes meanwhile.
  const release = stage.disk.holdSyncs();
  await stage.clock.advance(REPLY_MS);
  live.stop(PAUSE);
  await stage.clock.advance(1);
  release();
  const { ledger } = await stage.clock.run(live.done);
  assert.equal(server.calls.length, 0);
  assert.deepEqual(ledger.openCalls(), []);
  const [settled] = await stage.entriesOf(live.runId, "call.settled");
  assert.deepEqual([settled?.how, settled?.by], ["retry", "policy"]);
  assert.equal((await stage.entriesOf(live.runId, "call.result")).length, 0);
  const last = await stage.resumeToEnd(live.runId);
  assert.equal(last.end.state, "exited");
  assert.deepEqual(
    (await stage.entriesOf(live.runId, "call.intent")).map(({ attempt }) => attempt),
    [
      1,
      2,
    ],
  );
  assert.equal(server.calls.length, 1);
});

Deno.test("a kill ends the run by its signal: entry, status, 128+n, nothing mounted", async () => {
  const numbers = { HUP: 129, INT: 130, KILL: 137, TERM: 143 } as const;
  for (const [signal, code] of Object.entries(numbers) as [keyof typeof numbers, number][]) {
    const server = world();
    const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__slow" }]] });
    const live = await stage.start();
    await stage.clock.advance(100);
    live.stop({ kind: "kill", signal });
    const { end } = await stage.clock.run(live.done);
    assert.deepEqual(end.state === "exited" && [end.status, end.signal, end.exitCode], [
      "killed",
      signal,
      code,
    ]);
    const types = (await stage.entries(live.runId)).map(({ type }) => type).slice(-3);
    assert.deepEqual(types, ["signal", "call.result", "run.exited"]);
    assert.equal(server.open, 0);
  }
});

Deno.test("a kill while servers are being mounted leaves its signal entry, and aborts the mounting", async () => {
  const server = new ServerDouble({ mountMs: 5_000 });
  const stage = new KernelStage({ servers: [server] });
  const live = await stage.start();
  await stage.clock.advance(10);
  live.stop(TERM);
  const startMs = stage.clock.monotonic();
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "exited" && end.exitCode, 143);
  assert.ok(stage.clock.monotonic() - startMs < 10);
  assert.equal(server.aborted, 1);
  assert.equal((await stage.entriesOf(live.runId, "signal")).length, 1);
});

Deno.test("a stop while mounting suspends, and the resume mounts anew", async () => {
  const server = new ServerDouble({ mountMs: 5_000 });
  const stage = new KernelStage({ servers: [server], replies: ["Done."] });
  const live = await stage.start();
  await stage.clock.advance(10);
  live.stop(PAUSE);
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "paused");
  assert.equal(stage.model.asked.length, 0);
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
  assert.equal(server.open, 0);
});

Deno.test("a stop goes before a mount that failed at the same time", async () => {
  const stage = new KernelStage({
    servers: [
      new ServerDouble({ name: "bad", mountMs: 10, fails: new SysError("DRIVER", "No") }),
      new ServerDouble({ name: "slow", mountMs: 50 }),
    ],
  });
  const live = await stage.start();
  live.stop(PAUSE);
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "paused");
});

Deno.test("Ctrl-C twice: the kill goes before the suspension, in the grace of the first", async () => {
  const stage = new KernelStage({ servers: [world()], replies: [[{ tool: "world__slow" }]] });
  const live = await stage.start();
  await stage.clock.advance(100);
  live.stop(PAUSE);
  await stage.clock.advance(10);
  live.stop({ kind: "kill", signal: "INT" });
  live.stop(PAUSE);
  live.stop(TERM);
  const { end } = await stage.clock.run(live.done);
  assert.deepEqual(end.state === "exited" && [end.signal, end.exitCode], ["INT", 130]);
  assert.equal((await stage.entriesOf(live.runId, "signal")).length, 1);
});

Deno.test("a stop that comes while the run ends changes nothing any more", async () => {
  const stage = new KernelStage({ replies: ["Done."] });
  const live = await stage.start();
  const release = stage.disk.holdSyncs();
  await stage.clock.advance(REPLY_MS);
  live.stop(PAUSE);
  live.stop(TERM);
  release();
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "exited" && end.status, "completed");
  live.stop(TERM);
  assert.equal((await stage.entriesOf(live.runId, "run.exited")).length, 1);
  assert.equal((await stage.entriesOf(live.runId, "run.suspended")).length, 0);
});

Deno.test("a killed run goes on when it is resumed, its open read is made again", async () => {
  const server = world();
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__read_slow" }], "Done."],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  live.stop(TERM);
  await stage.clock.run(live.done);
  const last = await stage.resumeToEnd(live.runId);
  assert.equal(last.end.state === "exited" && last.end.result, "Done.");
  assert.equal(server.calls.length, 2);
});

Deno.test("after a stop nothing new is started, whatever comes in", async () => {
  const server = new ServerDouble({
    tools: {
      get: {
        effect: "read",
        does: async ({ clock }) => {
          await sleep(clock, 30);
          return lost();
        },
      },
      pay: { does: taking(40) },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__get" }, { tool: "world__pay" }]],
  });
  const live = await stage.start();
  await stage.clock.advance(10);
  live.stop(PAUSE);
  const { end, ledger } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "paused");
  assert.deepEqual(server.calls.map(({ tool }) => tool), ["get", "pay"]);
  assert.equal(stage.model.asked.length, 1);
  assert.deepEqual(
    ledger.openCalls().map(({ call }) => call),
    ["t1.1"],
    "the read isn't repeated now",
  );
});

Deno.test("a stop withdraws the question that was being asked", async () => {
  let withdrawn = false;
  const stage = new KernelStage({
    servers: [new ServerDouble({ tools: { pay: { does: () => lost() } } })],
    replies: [[{ tool: "world__pay" }]],
    decideUnknown: (_call, signal) => {
      signal.addEventListener("abort", () => withdrawn = true);
      return new Promise(() => {});
    },
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  live.stop(PAUSE);
  const { end } = await stage.clock.run(live.done);
  assert.deepEqual(end.state === "suspended" && end.reasons, ["paused", "unknown-outcome"]);
  assert.ok(withdrawn);
  assert.equal(stage.clock.pending, 0);
});

Deno.test("a late answer that comes after a stop but before the end settles its call", async () => {
  const server = new ServerDouble({
    tools: {
      pay: {
        does: ({ clock }) => lost("disconnected", sleep(clock, 50).then(() => ok("paid"))),
      },
      slow: { effect: "read", does: taking(60_000) },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay" }, { tool: "world__slow" }], "Done."],
  });
  const live = await stage.start();
  await stage.clock.advance(20);
  live.stop(PAUSE);
  const { end } = await stage.clock.run(live.done);
  assert.deepEqual(end.state === "suspended" && end.reasons, ["paused"]);
  const [settled] = await stage.entriesOf(live.runId, "call.settled");
  assert.equal(settled?.by, "answer");
});

Deno.test("a stop that comes while a failed mount is being rolled back is the reason of the end", async () => {
  const stage = new KernelStage({
    servers: [
      new ServerDouble({ name: "bad", mountMs: 10, fails: new SysError("DRIVER", "No") }),
      new ServerDouble({ name: "slow", mountMs: 500, abortMs: 50 }),
    ],
  });
  const live = await stage.start();
  await stage.clock.advance(30);
  live.stop(PAUSE);
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "paused");
});

Deno.test("a device that was cancelled before it had sent anything says so, and the call is sent by the resume", async () => {
  const server = new ServerDouble({
    tools: {
      pay: {
        does: async ({ clock, signal, times }) => {
          if (times > 1) return ok("paid");
          await sleep(clock, 60_000, signal).catch(() => {});
          return { kind: "not-sent", error: new SysError("DEVICE_DISCONNECTED", "Not connected") };
        },
      },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay" }], "Done."],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  live.stop(PAUSE);
  const { end } = await stage.clock.run(live.done);
  assert.deepEqual(end.state === "suspended" && end.reasons, ["paused"]);
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
  assert.match(JSON.stringify(stage.model.asked.at(-1)?.prompt.messages), /paid/);
});
