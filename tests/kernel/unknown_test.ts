import assert from "node:assert/strict";
import { sleep } from "../../src/base/clock.ts";
import type { OnUnknown } from "../../src/base/effect.ts";
import type { UnknownCall, UnknownDecision } from "../../src/base/operations.ts";
import { unknownCalls } from "../../src/daemon/report.ts";
import type { SettleRule } from "../../src/kernel/settler.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { lost, ok, taking } from "./server_double.ts";

const DONE = "Done.";

/** Loses each call of `pay` and `put` as often as `losses` says, then answers. */
function losing(
  losses: number,
  cause: "disconnected" | "timeout" | "cancelled" = "disconnected",
): ServerDouble {
  const does = ({ times }: { times: number }) =>
    times <= losses ? lost(cause) : ok(`time ${times}`);
  return new ServerDouble({
    tools: { pay: { does }, put: { effect: "idempotent", does }, get: { effect: "read", does } },
  });
}

function stageOf(server: ServerDouble, tool: string, onUnknown: OnUnknown = "ask"): KernelStage {
  return new KernelStage({ servers: [server], onUnknown, replies: [[{ tool }], DONE] });
}

/** A run that died while its call was under way. */
async function crashed(tool: string, onUnknown: OnUnknown = "ask") {
  const server = new ServerDouble({
    tools: {
      pay: { does: taking(1_000) },
      put: { effect: "idempotent", does: taking(1_000) },
      get: { effect: "read", does: taking(1_000) },
    },
  });
  const stage = stageOf(server, tool, onUnknown);
  const live = await stage.start();
  await stage.clock.advance(100);
  assert.equal(server.calls.length, 1);
  stage.kill();
  return { stage, server, runId: live.runId };
}

function lastResult(stage: KernelStage): string {
  return JSON.stringify(stage.model.asked.at(-1)?.prompt.messages.at(-1));
}

Deno.test("live: read and idempotent calls that were lost are called again, with the same key", async () => {
  for (const tool of ["get", "put"]) {
    const server = losing(2);
    const stage = stageOf(server, `world__${tool}`);
    const { end, runId } = await stage.run();
    assert.equal(end.state, "exited");
    assert.deepEqual(new Set(server.calls.map(({ key }) => key)), new Set([`${runId}/t1.1`]));
    const intents = await stage.entriesOf(runId, "call.intent");
    assert.deepEqual(intents.map(({ attempt }) => attempt), [1, 2, 3]);
    assert.match(lastResult(stage), /time 3/);
  }
});

Deno.test("live: after three sends in one process a repeatable call has a known error, by its cause", async () => {
  for (
    const [cause, code] of [["disconnected", "DEVICE_DISCONNECTED"], [
      "timeout",
      "TIMEOUT",
    ]] as const
  ) {
    const server = losing(99, cause);
    const stage = stageOf(server, "world__get");
    const { end, runId } = await stage.run();
    assert.equal(end.state, "exited");
    assert.equal(server.calls.length, 3);
    const settled = await stage.entriesOf(runId, "call.settled");
    assert.deepEqual(settled.map(({ how }) => how), ["retry", "retry", "gave-up"]);
    assert.match(
      lastResult(stage),
      new RegExp(`\\[${code}\\] .*, repeats included: Lost: ${cause}`),
    );
  }
});

Deno.test("each process has its own three sends", async () => {
  const { stage, server, runId } = await crashed("world__get");
  let times = 0;
  server.tools["get"] = { effect: "read", does: () => ++times < 3 ? lost() : ok("at last") };
  const { end } = await stage.resumeToEnd(runId);
  assert.equal(end.state, "exited");
  assert.match(lastResult(stage), /at last/);
  assert.equal(server.calls.length, 4);
});

Deno.test("live: `ask` without a person suspends, and the call is shown as unknown", async () => {
  const server = losing(1);
  const stage = stageOf(server, "world__pay");
  const { end, ledger } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
  assert.match(end.error?.message ?? "", /t1\.1 \(mcp__world__pay\)/);
  assert.deepEqual(ledger.openCalls().map(({ call, cause }) => [call, cause]), [[
    "t1.1",
    "disconnected",
  ]]);
  const told = stage.eventsOf("call.unknown").map(({ cause, message }) => [cause, message]);
  assert.deepEqual(told, [["disconnected", "Lost: disconnected"]]);
  const [call] = unknownCalls(ledger);
  assert.deepEqual([call?.cause, call?.message], ["disconnected", "Lost: disconnected"]);
  assert.equal(server.calls.length, 1);
});

Deno.test("live: `retry` sends a write again up to three times, then a person decides", async () => {
  const server = losing(99);
  const stage = stageOf(server, "world__pay", "retry");
  const { end } = await stage.run();
  assert.equal(server.calls.length, 3);
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
});

Deno.test("live: `skip` tells the model that the outcome is unknown", async () => {
  const server = losing(99);
  const stage = stageOf(server, "world__pay", "skip");
  const { end } = await stage.run();
  assert.equal(end.state, "exited");
  assert.equal(server.calls.length, 1);
  assert.match(lastResult(stage), /\[UNKNOWN_OUTCOME\].*may or may not have taken effect/);
});

Deno.test("a skipped call's text says what happened, and is the same when it is made after a resume", async () => {
  const rows = [
    ["timeout", /mcp__world__pay.{2} gave no answer in time after the call had been sent \(/],
    [
      "disconnected",
      /The connection to .*mcp__world__pay.* was lost after the call had been sent \(/,
    ],
    ["cancelled", /The call of .*mcp__world__pay.* was cancelled after it had been sent \(/],
  ] as const;
  for (const [cause, words] of rows) {
    const live = stageOf(losing(99, cause), "world__pay", "skip");
    await live.run();
    assert.match(lastResult(live), words);
    assert.ok(lastResult(live).includes(`(Lost: ${cause}): it may or may not have taken effect`));
    const asked = stageOf(losing(99, cause), "world__pay");
    const { runId } = await asked.run();
    await asked.resumeToEnd(runId, { rules: [{ decision: { how: "skip" } }] });
    assert.equal(lastResult(asked), lastResult(live));
  }
  const { stage, runId } = await crashed("world__pay", "skip");
  await stage.resumeToEnd(runId);
  const words = /rnix itself was ended while the call of .* was on its way: it may or may not/;
  assert.match(lastResult(stage), words);
});

Deno.test("live: `fail` fails the run once the other calls of the reply are done", async () => {
  const server = losing(99);
  server.tools["slow"] = { does: taking(100) };
  const stage = new KernelStage({
    servers: [server],
    onUnknown: "fail",
    replies: [[{ tool: "world__pay" }, { tool: "world__slow" }], DONE],
  });
  const { end, runId } = await stage.run();
  assert.deepEqual(end.state === "exited" && [end.status, end.exitCode, end.error?.code], [
    "failed",
    1,
    "UNKNOWN_OUTCOME",
  ]);
  assert.equal((await stage.entriesOf(runId, "call.result")).length, 2);
  assert.equal((await stage.resumeToEnd(runId)).end.state, "exited", "a failed run goes on");
  assert.match(lastResult(stage), /UNKNOWN_OUTCOME/);
});

Deno.test("[A01] a crash leaves a write unknown: resume asks, sends nothing, mounts nothing, gives no pid", async () => {
  const { stage, server, runId } = await crashed("world__pay");
  const mounts = server.mounts;
  const live = await stage.resume(runId);
  const { end, ledger } = await stage.clock.run(live.done);
  assert.equal(live.pid, undefined);
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
  assert.equal(server.calls.length, 1);
  assert.equal(server.mounts, mounts);
  assert.equal(ledger.state.pids.length, 1);
  assert.equal(stage.eventsOf("run.suspended").at(-1)?.reason, "unknown-outcome");
});

Deno.test("a resume settles by rule: retry, done, done with a result, skip, fail", async () => {
  const cases: [UnknownDecision, RegExp, number][] = [
    [{ how: "retry" }, /"text":"done"/, 2],
    [{ how: "done" }, /took effect; its result is not known/, 1],
    [{ how: "done", result: "receipt 7" }, /receipt 7/, 1],
    [{ how: "done", result: { receipt: 7 } }, /"structured":\{"receipt":7\}/, 1],
    [{ how: "skip" }, /UNKNOWN_OUTCOME/, 1],
  ];
  for (const [decision, seen, sends] of cases) {
    const { stage, server, runId } = await crashed("world__pay");
    const { end } = await stage.resumeToEnd(runId, { rules: [{ call: "t1.1", decision }] });
    assert.equal(end.state === "exited" && end.result, DONE, decision.how);
    assert.match(lastResult(stage), seen);
    assert.equal(server.calls.length, sends);
    const [settled] = await stage.entriesOf(runId, "call.settled");
    assert.deepEqual([settled?.how, settled?.by], [decision.how, "user"]);
  }
  const { stage, server, runId } = await crashed("world__pay");
  const mounts = server.mounts;
  const { end } = await stage.resumeToEnd(runId, { rules: [{ decision: { how: "fail" } }] });
  assert.deepEqual(end.state === "exited" && [end.status, end.exitCode], ["failed", 1]);
  assert.equal(server.mounts, mounts, "a run that only ends needs no servers");
});

Deno.test("a resume settles by on_unknown: retry, skip, fail", async () => {
  const ends = { retry: [2, "completed"], skip: [1, "completed"], fail: [1, "failed"] } as const;
  for (const [onUnknown, [sends, status]] of Object.entries(ends)) {
    const { stage, server, runId } = await crashed("world__pay", onUnknown as OnUnknown);
    const { end } = await stage.resumeToEnd(runId);
    assert.equal(end.state === "exited" && end.status, status);
    assert.equal(server.calls.length, sends);
  }
});

Deno.test("a resume repeats what may be repeated without asking", async () => {
  for (const tool of ["get", "put"]) {
    const { stage, server, runId } = await crashed(`world__${tool}`);
    const { end } = await stage.resumeToEnd(runId);
    assert.equal(end.state, "exited");
    assert.equal(new Set(server.calls.map(({ key }) => key)).size, 1);
    assert.equal(server.calls.length, 2);
  }
});

Deno.test("a rule for one call leaves the others to be asked for; a rule for all holds for the rest", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[1, 2, 3].map((n) => ({ tool: "world__pay", input: { n } })), DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const one: SettleRule = { call: "t1.2", decision: { how: "skip" } };
  const first = await stage.resumeToEnd(live.runId, { rules: [one] });
  assert.deepEqual(first.ledger.openCalls().map(({ call }) => call), ["t1.1", "t1.3"]);
  const last = await stage.resumeToEnd(live.runId, {
    rules: [{ decision: { how: "skip" } }, { call: "t1.3", decision: { how: "retry" } }],
  });
  assert.equal(last.end.state, "exited");
  assert.deepEqual(server.calls.map(({ input }) => input), [{ n: 1 }, { n: 2 }, { n: 3 }, {
    n: 3,
  }]);
});

Deno.test("a rule that fits no unknown call refuses the resume: nothing is settled, sent or mounted", async () => {
  for (
    const rules of [
      [{ call: "T1.1", decision: { how: "done" } }],
      [{ call: "t1.9", decision: { how: "fail" } }],
      [{ call: "t1.1", run: "ffff", isElsewhere: true, decision: { how: "skip" } }],
      [{ call: "t1.1", decision: { how: "skip" } }, { call: "t1.1", decision: { how: "retry" } }],
    ] satisfies SettleRule[][]
  ) {
    const { stage, server, runId } = await crashed("world__pay", "retry");
    const before = (await stage.entries(runId)).length;
    await assert.rejects(stage.resumeToEnd(runId, { rules }), { code: "INVALID", exitCode: 2 });
    assert.equal(server.calls.length, 1);
    assert.equal((await stage.entries(runId)).length, before);
    assert.equal(await stage.kernel.pids.runOf(2), undefined);
  }
});

Deno.test("the class that counts is that of the intent, whatever the manifest says by now", async () => {
  const { stage, server, runId } = await crashed("world__pay");
  server.tools = { pay: { effect: "read" } };
  const { end } = await stage.resumeToEnd(runId);
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
});

Deno.test("a person who can be asked decides, in a live run and on resume", async () => {
  const asked: UnknownCall[] = [];
  const decideUnknown = (call: UnknownCall) => {
    asked.push(call);
    return Promise.resolve<UnknownDecision>({ how: "done", result: "It was paid" });
  };
  const server = losing(99);
  const live = new KernelStage({
    servers: [server],
    decideUnknown,
    replies: [[{ tool: "world__pay" }], DONE],
  });
  assert.equal((await live.run()).end.state, "exited");
  assert.match(lastResult(live), /It was paid/);
  const { stage, runId } = await crashed("world__pay");
  stage.options.decideUnknown = decideUnknown;
  assert.equal((await stage.resumeToEnd(runId)).end.state, "exited");
  assert.deepEqual(asked.map(({ cause }) => cause), ["disconnected", "crash"]);
});

Deno.test("a person who doesn't decide within the limit leaves the run suspended, also on resume", async () => {
  const silent = () => new Promise<UnknownDecision | undefined>(() => {});
  const live = new KernelStage({
    servers: [losing(99)],
    decideUnknown: silent,
    limits: { decisionMs: 60_000 },
    replies: [[{ tool: "world__pay" }]],
  });
  const { end } = await live.run();
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
  assert.ok(live.clock.monotonic() >= 60_000 && live.clock.monotonic() < 61_000);
  const { stage, runId } = await crashed("world__pay");
  stage.options.decideUnknown = silent;
  const again = await stage.resumeToEnd(runId);
  assert.equal(again.end.state === "suspended" && again.end.reason, "unknown-outcome");
});

Deno.test("someone who watches and fails while asked is someone who doesn't decide", async () => {
  for (
    const decideUnknown of [
      () => Promise.reject(new Error("The terminal is gone")),
      () => {
        throw new Error("The terminal is gone");
      },
    ]
  ) {
    const stage = new KernelStage({
      servers: [losing(99)],
      decideUnknown,
      replies: [[{ tool: "world__pay" }]],
    });
    const { end } = await stage.run();
    assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
  }
});

Deno.test("while a question is open nothing new is started, and a late answer withdraws it", async () => {
  let withdrawn = false;
  const server = new ServerDouble({
    tools: {
      pay: { does: ({ clock }) => lost("timeout", sleep(clock, 500).then(() => ok("paid"))) },
      get: {
        effect: "read",
        does: async ({ clock, times }) => {
          await sleep(clock, 50);
          return times === 1 ? lost() : ok("got");
        },
      },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    decideUnknown: (_call, signal) => {
      signal.addEventListener("abort", () => withdrawn = true);
      return new Promise(() => {});
    },
    replies: [[{ tool: "world__pay" }, { tool: "world__get" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(400);
  assert.equal(server.calls.length, 2, "the read isn't repeated while the question is open");
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "exited" && end.result, DONE);
  assert.ok(withdrawn);
  assert.ok(stage.clock.monotonic() < 1_000, "nobody waited for the person");
  assert.match(lastResult(stage), /paid/);
});

Deno.test("calls of a reply that were never sent go out only once its unknown ones are settled", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const stage = new KernelStage({
    servers: [server],
    budget: { tool_calls: 1 },
    replies: [[{ tool: "world__pay", input: 1 }, { tool: "world__pay", input: 2 }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const raised = { budgetChange: { tool_calls: 9 } };
  const first = await stage.resumeToEnd(live.runId, raised);
  assert.equal(first.end.state === "suspended" && first.end.reason, "unknown-outcome");
  assert.equal(server.calls.length, 1);
  const rules: SettleRule[] = [{ decision: { how: "skip" } }];
  const last = await stage.resumeToEnd(live.runId, { ...raised, rules });
  assert.equal(last.end.state, "exited");
  assert.deepEqual(server.calls.map(({ input }) => input), [1, 2]);
});

Deno.test("a late answer of the first attempt isn't taken for the second one's, which is unknown too", async () => {
  const decisions = ["retry", "skip"] as const;
  let asked = 0;
  const server = new ServerDouble({
    tools: {
      pay: {
        does: ({ clock, times }) =>
          times === 1 ? lost("timeout", sleep(clock, 100).then(() => ok("first"))) : lost(),
      },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    decideUnknown: async () => {
      const how = decisions[asked++] ?? "fail";
      if (how === "skip") await sleep(stage.clock, 1_000);
      return { how };
    },
    replies: [[{ tool: "world__pay" }], DONE],
  });
  const { end, runId } = await stage.run();
  assert.equal(end.state, "exited");
  const settled = await stage.entriesOf(runId, "call.settled");
  assert.deepEqual(settled.map(({ how, attempt }) => [how, attempt]), [["retry", 1], ["skip", 2]]);
});

Deno.test("a call that died in its last allowed send is called again by the next process", async () => {
  const server = new ServerDouble({
    tools: {
      get: {
        effect: "read",
        does: (call) =>
          call.times < 3 ? lost() : call.times === 3 ? taking(1_000)(call) : ok("at last"),
      },
    },
  });
  const stage = stageOf(server, "world__get");
  const live = await stage.start();
  await stage.clock.advance(100);
  assert.equal(server.calls.length, 3);
  stage.kill();
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
  assert.match(lastResult(stage), /at last/);
});
