import assert from "node:assert/strict";
import { sleep } from "../../src/base/clock.ts";
import type { SysError } from "../../src/base/errors.ts";
import { shortRunId } from "../../src/base/ids.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { lost, ok, taking } from "./server_double.ts";

const DONE = "Done.";

function fill(stage: KernelStage): void {
  stage.disk.capacityBytes = 1e9;
  stage.disk.capacityBytes -= stage.disk.freeBytes;
}

function assertJournal(end: { state: string; reason?: string; error?: { code: string } }): void {
  assert.equal(end.state, "suspended");
  assert.equal(end.reason, "journal");
  assert.equal(end.error?.code, "RESOURCE_EXHAUSTED");
}

Deno.test("[A21] on a full disk no effect leaves, the run ends for that reason, and goes on once there is space", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(50) } } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay", input: 1 }], [{ tool: "world__pay", input: 2 }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(20);
  assert.equal(server.calls.length, 1);
  fill(stage);
  const { end } = await stage.clock.run(live.done);
  assertJournal(end);
  assert.equal(server.calls.length, 1);
  assert.equal(server.open, 0);
  assert.equal(stage.clock.pending, 0);
  stage.disk.capacityBytes = Infinity;
  // The request after the result may have left, and its reply was dropped.
  stage.model.replies.splice(0, Infinity, [{ tool: "world__pay", input: 2 }], DONE);
  const { end: last } = await stage.resumeToEnd(live.runId, {
    rules: [{ decision: { how: "done", result: "paid" } }],
  });
  assert.equal(last.state === "exited" && last.result, DONE);
  assert.deepEqual(server.calls.map(({ input }) => input), [1, 2]);
});

Deno.test("a failed sync stops the run; what is in flight is cancelled and awaited", async () => {
  let cancelled = false;
  const server = new ServerDouble({
    tools: {
      quick: { does: taking(10) },
      slow: {
        does: async (call) => {
          call.signal.addEventListener("abort", () => cancelled = true);
          return await taking(60_000)(call);
        },
      },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__quick" }, { tool: "world__slow" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(5);
  const at = stage.disk.operations.length + 1;
  stage.disk.plan = { fail: { at, fault: "broken", only: "sync", forGood: true } };
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "journal");
  assert.ok(cancelled);
  assert.ok(stage.clock.monotonic() < 3_000);
});

Deno.test("the reason `journal` goes before a stop that came at the same time", async () => {
  const server = new ServerDouble({ tools: { slow: { does: taking(1_000) } } });
  for (
    const stop of [
      { kind: "suspend", reason: "paused" },
      { kind: "kill", signal: "TERM" },
    ] as const
  ) {
    const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__slow" }]] });
    const live = await stage.start();
    await stage.clock.advance(10);
    fill(stage);
    live.stop(stop);
    const { end } = await stage.clock.run(live.done);
    assertJournal(end);
  }
});

Deno.test("the end of a run that can't be written is no end", async () => {
  const stage = new KernelStage({ replies: [DONE, DONE] });
  const live = await stage.start();
  fill(stage);
  const { end } = await stage.clock.run(live.done);
  assertJournal(end);
  assert.deepEqual(stage.eventsOf("run.exited"), []);
  assert.deepEqual(stage.eventsOf("model.finished"), [], "what isn't durable isn't shown");
  stage.disk.capacityBytes = Infinity;
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
});

Deno.test("a result whose blob can't be written stops the run, with another call in flight", async () => {
  const server = new ServerDouble({
    tools: {
      big: {
        does: async ({ clock }) => {
          await sleep(clock, 20);
          return ok("x".repeat(100_000));
        },
      },
      slow: { does: taking(200) },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__big" }, { tool: "world__slow" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(10);
  fill(stage);
  const { end } = await stage.clock.run(live.done);
  assertJournal(end);
  assert.equal(stage.model.asked.length, 1);
});

Deno.test("a lost call whose loss can't be written stays open, and the resume asks for it", async () => {
  const server = new ServerDouble({
    tools: {
      pay: {
        does: async ({ clock }) => {
          await sleep(clock, 50);
          return lost();
        },
      },
    },
  });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }], DONE] });
  const live = await stage.start();
  await stage.clock.advance(10);
  fill(stage);
  assertJournal((await stage.clock.run(live.done)).end);
  stage.disk.capacityBytes = Infinity;
  const { end } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
});

Deno.test("a run folder that someone replaced gets nothing more written, and the run says so", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(50) } } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay" }], [{ tool: "world__pay" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(10);
  const folder = `/state/runs/${live.runId}`;
  await stage.disk.remove(`${folder}/lock`);
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "journal");
  assert.equal(server.calls.length, 1);
});

Deno.test("a start on a full disk is refused and leaves no run", async () => {
  const stage = new KernelStage({ replies: [DONE] });
  await stage.disk.makeFolder("/state/runs", 0o700);
  fill(stage);
  await assert.rejects(stage.start(), (thrown: SysError) => thrown.code === "RESOURCE_EXHAUSTED");
  assert.deepEqual(await stage.disk.list("/state/runs"), []);
});

Deno.test("a checkpoint that can't be written disturbs nothing", async () => {
  const report = { does: () => ok("x".repeat(60_000)) };
  const server = new ServerDouble({ tools: { report } });
  const stage = new KernelStage({
    servers: [server],
    replies: [...Array.from({ length: 20 }, () => [{ tool: "world__report" }]), DONE],
  });
  const rename = stage.disk.rename.bind(stage.disk);
  let failures = 0;
  stage.disk.rename = (from, to) => {
    if (!to.endsWith("/checkpoint.json")) return rename(from, to);
    failures += 1;
    return Promise.reject(new Error("No"));
  };
  const { end, runId } = await stage.run();
  assert.equal(end.state === "exited" && end.result, DONE);
  assert.ok(failures > 0);
  assert.ok(!(await stage.disk.list(`/state/runs/${runId}`)).includes("checkpoint.json"));
});

Deno.test("the report of a run whose disk was full lists every call that a resume finds unknown", async () => {
  const server = new ServerDouble({
    tools: { quick: { does: taking(10) }, pay: { does: taking(50) } },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [[1, 2, 3].map((input) => ({ tool: "world__pay", input })), DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(20);
  assert.equal(server.calls.length, 3);
  fill(stage);
  const { end, ledger } = await stage.clock.run(live.done);
  assertJournal(end);
  // All three have answered, and none of the answers could be written.
  const unknown = ledger.openCalls().map(({ call }) => call);
  assert.deepEqual(unknown, ["t1.1", "t1.2", "t1.3"]);
  stage.disk.capacityBytes = Infinity;
  const again = await stage.resumeToEnd(live.runId);
  assert.deepEqual(again.ledger.openCalls().map(({ call }) => call), unknown);
});

Deno.test("a journal that is cut under a live run ends it before another effect leaves", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(50) } } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay", input: 1 }], [{ tool: "world__pay", input: 2 }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(20);
  stage.disk.damage(`/state/runs/${live.runId}/journal.jsonl`, (bytes) => bytes.slice(0, 300));
  const { end, ledger } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "journal");
  assert.equal(end.error?.code, "JOURNAL_DAMAGED");
  assert.match(end.error?.hint ?? "", /rnix journal verify RUN/);
  assert.equal(server.calls.length, 1);
  assert.equal(ledger.identity.runId, live.runId);
});

Deno.test("[A21] a start and a resume on a disk that can't be written are exit 7, leave all as it was, and name the run", async () => {
  const stage = new KernelStage({ replies: ["Done"] });
  const live = await stage.start();
  stage.kill();
  const failing = { fail: { at: 1, fault: "read-only", forGood: true } } as const;
  stage.disk.plan = failing;
  await assert.rejects(stage.start(), { exitCode: 7, code: "PERMISSION" });
  await assert.rejects(stage.resume(live.runId), (thrown: SysError) => {
    assert.equal(thrown.exitCode, 7);
    assert.match(thrown.hint ?? "", new RegExp(`rnix resume ${shortRunId(live.runId)}$`));
    return true;
  });
  stage.disk.plan = {};
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
});
