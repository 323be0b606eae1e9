import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { RunEnd } from "../../src/kernel/ledger.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { taking } from "./server_double.ts";

function world(): ServerDouble {
  return new ServerDouble({
    tools: { pay: {}, get: { effect: "read" }, slow: { does: taking(500) } },
  });
}

function assertLimit(end: RunEnd, key: string): void {
  assert.equal(end.state, "suspended");
  assert.equal(end.state === "suspended" && end.reason, "limit");
  assert.equal(end.error?.code, "BUDGET_EXCEEDED");
  assert.match(end.error?.message ?? "", new RegExp(`^Budget "${key}" is used up`));
  assert.match(end.error?.hint ?? "", /rnix resume RUN --/);
}

Deno.test("turns that are used up suspend the run, and a raised limit lets it go on", async () => {
  const server = world();
  const stage = new KernelStage({
    servers: [server],
    budget: { turns: 2 },
    replies: [[{ tool: "world__pay" }], [{ tool: "world__pay" }], "Done."],
  });
  const { end, runId, ledger } = await stage.run();
  assertLimit(end, "turns");
  assert.equal(server.calls.length, 2, "the calls of the last allowed reply are made");
  assert.equal(ledger.state.totals.turns, 2);
  const mountsBefore = server.mounts;
  const again = await stage.resumeToEnd(runId);
  assertLimit(again.end, "turns");
  assert.equal(server.mounts, mountsBefore, "no server is started for a run that may do nothing");
  assert.equal(stage.model.asked.length, 2, "no request leaves beyond the limit");
  const last = await stage.resumeToEnd(runId, { budgetChange: { turns: 3 } });
  assert.equal(last.end.state === "exited" && last.end.result, "Done.");
  assert.deepEqual(last.ledger.state.budget, { turns: 3 });
  assert.equal(server.calls.length, 2);
});

Deno.test("tokens that are used up suspend the run before the next request", async () => {
  const stage = new KernelStage({
    servers: [world()],
    budget: { tokens: 100 },
    replies: [{ calls: [{ tool: "world__get" }], tokens: 120 }, "Done."],
  });
  const { end, runId } = await stage.run();
  assertLimit(end, "tokens");
  const last = await stage.resumeToEnd(runId, { budgetChange: { tokens: 1000 } });
  assert.equal(last.end.state, "exited");
  assert.equal(last.ledger.state.totals.tokens, 130);
});

Deno.test("a tool_calls limit lets as many parallel calls leave as it allows, and the rest after it is raised", async () => {
  const server = world();
  const stage = new KernelStage({
    servers: [server],
    budget: { tool_calls: 2 },
    replies: [[1, 2, 3].map((n) => ({ tool: "world__pay", input: { n } })), "Done."],
  });
  const { end, runId } = await stage.run();
  assertLimit(end, "tool_calls");
  assert.deepEqual(server.calls.map(({ input }) => input), [{ n: 1 }, { n: 2 }]);
  const last = await stage.resumeToEnd(runId, { budgetChange: { tool_calls: 5 } });
  assert.equal(last.end.state, "exited");
  assert.deepEqual(server.calls.map(({ input }) => input), [{ n: 1 }, { n: 2 }, { n: 3 }]);
});

Deno.test("a used-up duration cancels what is in flight, also between two turns, and suspends", async () => {
  const server = world();
  const stage = new KernelStage({
    servers: [server],
    budget: { duration_ms: 200 },
    onUnknown: "skip",
    limits: { cancelGraceMs: 50 },
    replies: [[{ tool: "world__slow" }], "Done."],
  });
  const { end, runId, ledger } = await stage.run();
  assertLimit(end, "duration");
  assert.equal(ledger.state.totals.active_ms, 250, "with the grace of the cancelled call");
  await stage.clock.advance(1_000_000);
  assertLimit((await stage.resumeToEnd(runId)).end, "duration");
  assert.equal(stage.model.asked.length, 1);
  const last = await stage.resumeToEnd(runId, { budgetChange: { duration_ms: 10_000 } });
  assert.equal(last.end.state, "exited");
  assert.ok(last.ledger.state.totals.active_ms < 300, "the pause isn't active time");
});

Deno.test("a limit met together with an outcome that a person has to decide on suspends for the outcome", async () => {
  const stage = new KernelStage({
    servers: [world()],
    budget: { duration_ms: 200 },
    limits: { cancelGraceMs: 50 },
    replies: [[{ tool: "world__slow" }], "Done."],
  });
  const { end } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
  assert.deepEqual(end.state === "suspended" && end.reasons, ["limit", "unknown-outcome"]);
  assert.match(end.error?.message ?? "", /t1\.1 \(mcp__world__slow\)/);
});

Deno.test("a duration longer than a timer can hold doesn't end a run early", async () => {
  const month = 31 * 24 * 3600 * 1000;
  const stage = new KernelStage({
    servers: [new ServerDouble({ tools: { slow: { effect: "read", does: taking(month) } } })],
    budget: { duration_ms: 2 * month },
    replies: [[{ tool: "world__slow" }], "Done."],
  });
  const { clock } = stage;
  const after = clock.after.bind(clock);
  // As a real timer does: what is too long fires too soon.
  clock.after = (ms, fire) => after(ms > 2 ** 31 - 1 && ms !== month ? 2 ** 31 - 1 : ms, fire);
  const { end } = await stage.run();
  assert.equal(end.state === "exited" && end.status, "completed");
});

Deno.test("a request that brought no reply counts by its estimate, in the entry of the end too", async () => {
  const stage = new KernelStage({
    replies: [{ error: new SysError("DRIVER", "Refused"), retryable: false }],
    intent: "x".repeat(400),
  });
  const { ledger, runId } = await stage.run();
  const [request] = await stage.entriesOf(runId, "model.request");
  const [exited] = await stage.entriesOf(runId, "run.exited");
  assert.ok((request?.tokens_estimate ?? 0) >= 100);
  assert.equal(ledger.state.totals.tokens, request?.tokens_estimate);
  assert.equal(exited?.totals.tokens, request?.tokens_estimate);
});

Deno.test("time between a crash and its resume isn't active time, whether it goes on or has to ask", async () => {
  for (const rules of [[], [{ decision: { how: "skip" as const } }]]) {
    const server = world();
    const stage = new KernelStage({
      servers: [server],
      budget: { duration_ms: 60_000 },
      replies: [[{ tool: "world__slow" }], "Done."],
    });
    const live = await stage.start();
    await stage.clock.advance(100);
    assert.equal(server.calls.length, 1);
    stage.kill();
    await stage.clock.advance(7 * 24 * 3600 * 1000);
    const { ledger, end } = await stage.resumeToEnd(live.runId, { rules });
    assert.equal(end.state, rules.length === 0 ? "suspended" : "exited");
    assert.ok(ledger.state.totals.active_ms < 1_000, `${ledger.state.totals.active_ms} ms`);
    const { ledger: folded } = await stage.fold(live.runId);
    assert.equal(folded.state.totals.active_ms, ledger.state.totals.active_ms);
  }
});
