/** Calls that are children: made once whatever happens, waited for, taken up again with their parent. */
import assert from "node:assert/strict";
import { sleep } from "../../src/base/clock.ts";
import { SysError } from "../../src/base/errors.ts";
import { AGENTS, ChildDouble, exited, suspended } from "./child_double.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { ok } from "./server_double.ts";

const ask = (agent: string, intent = "Help") => ({ tool: `agent__${agent}`, input: { intent } });

function stageOf(children: ChildDouble, options: ConstructorParameters<typeof KernelStage>[0]) {
  return new KernelStage({ children, agents: AGENTS, ...options });
}

Deno.test("a child's answer is the call's result; its run id was durable before it was made", async () => {
  const children = new ChildDouble(async ({ runId }, { onStarted }) => {
    assert.deepEqual(
      (await stage.entriesOf(live.runId, "call.intent")).map((entry) => entry.child_run_id),
      [runId],
    );
    onStarted(7);
    return exited("Helped", { tokens: 40 });
  });
  const stage = stageOf(children, { replies: [[ask("a", "Look")], "Done"] });
  const live = await stage.start();
  const { end, ledger } = await stage.clock.run(live.done);
  assert.equal(end.state === "exited" && end.result, "Done");
  assert.deepEqual(children.requests, [{
    runId: "child-1",
    child: { agent: "a", detach: false },
    call: "t1.1",
    input: { intent: "Look" },
    wasSpawned: false,
  }]);
  const types = (await stage.entries(live.runId)).map(({ type }) => type);
  assert.deepEqual(types.slice(types.indexOf("call.intent"), -3), [
    ...["call.intent", "child.spawned", "child.exited", "call.result"],
  ]);
  assert.equal(ledger.state.childTotals.tokens, 40);
  assert.match(JSON.stringify(stage.model.asked.at(-1)?.prompt.messages.at(-1)), /Helped/);
});

Deno.test("a child is waited for from its spawn on, however long it took to be made: a trace doesn't go back in time", async () => {
  const children = new ChildDouble(async (_, { onStarted }) => {
    await sleep(stage.clock, 700);
    onStarted(7);
    await sleep(stage.clock, 1_000);
    return exited("Helped");
  });
  const stage = stageOf(children, { replies: [[ask("a")], "Done"] });
  await stage.run();
  const [spawn, wait] = stage.traces.filter(({ syscall }) => ["Spawn", "Wait"].includes(syscall));
  assert.ok(spawn !== undefined && wait !== undefined);
  assert.ok(wait.timestamp_ms >= spawn.timestamp_ms, "Wait is traced before Spawn");
  assert.equal(wait.duration_ms, 1_000);
});

Deno.test("children of one reply run at once", async () => {
  const children = new ChildDouble(async ({ child }) => {
    await sleep(stage.clock, 1_000);
    return exited(child.agent);
  });
  const stage = stageOf(children, { replies: [[ask("a"), ask("b"), ask("a")], "Done"] });
  const startMs = stage.clock.monotonic();
  const { end } = await stage.run();
  assert.equal(end.state, "exited");
  assert.ok(stage.clock.monotonic() - startMs < 1_500);
});

Deno.test("[A03] a parent that died while its child worked asks for the same child again, and nothing is unknown", async () => {
  const children = new ChildDouble(() => new Promise(() => {}));
  const stage = stageOf(children, { replies: [[ask("a")], "Done"] });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  assert.deepEqual((await stage.fold(live.runId)).ledger.openCalls(), []);
  children.does = () => exited("Helped");
  const { end } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state === "exited" && end.result, "Done");
  assert.deepEqual(children.requests.map(({ runId }) => runId), ["child-1", "child-1"]);
  assert.equal((await stage.entriesOf(live.runId, "call.intent")).length, 1);
});

Deno.test("a suspended child leaves the other work going on, then suspends its parent for its reason", async () => {
  const server = new ServerDouble({
    tools: { pay: { does: async ({ clock }) => (await sleep(clock, 500), ok("paid")) } },
  });
  const children = new ChildDouble(() => suspended("unknown-outcome"));
  const stage = stageOf(children, {
    servers: [server],
    replies: [[ask("a"), { tool: "world__pay" }], "Done"],
  });
  const live = await stage.start();
  const { end } = await stage.clock.run(live.done);
  assert.deepEqual(end.state === "suspended" && end.reasons, ["unknown-outcome"]);
  assert.equal(server.calls.length, 1);
  assert.equal((await stage.entriesOf(live.runId, "call.result")).length, 1);
  children.does = () => exited("Helped");
  const last = await stage.resumeToEnd(live.runId);
  assert.equal(last.end.state === "exited" && last.end.result, "Done");
  assert.deepEqual(children.requests.map(({ runId }) => runId), ["child-1", "child-1"]);
  assert.equal(server.calls.length, 1);
});

Deno.test("what stops the parent is told to its children first, and awaited", async () => {
  for (
    const stop of [
      { kind: "suspend", reason: "shutdown" },
      { kind: "kill", signal: "TERM" },
    ] as const
  ) {
    const children: ChildDouble = new ChildDouble(async (_, { signal }) => {
      await sleep(stage.clock, 60_000, signal).catch(() => {});
      assert.deepEqual(children.stops, [stop]);
      await sleep(stage.clock, 300);
      return suspended("shutdown");
    });
    const stage = stageOf(children, { replies: [[ask("a")], "Done"] });
    const live = await stage.start();
    await stage.clock.advance(100);
    live.stop(stop);
    const startMs = stage.clock.monotonic();
    const { end } = await stage.clock.run(live.done);
    assert.ok(stage.clock.monotonic() - startMs >= 300);
    assert.equal(end.state, stop.kind === "kill" ? "exited" : "suspended");
    if (end.state === "suspended") assert.equal(end.reason, "shutdown");
  }
});

Deno.test("a limit on time, and a journal that fails, suspend children and never end them", async () => {
  for (const cause of ["time", "disk"]) {
    const children: ChildDouble = new ChildDouble(async (_, { signal }) => {
      await sleep(stage.clock, 60_000, signal).catch(() => {});
      return suspended("interrupted");
    });
    const stage: KernelStage = stageOf(children, {
      replies: [[ask("a")], "Done"],
      ...(cause === "time" ? { budget: { duration_ms: 5_000 } } : {}),
    });
    const live = await stage.start();
    await stage.clock.advance(1_000);
    if (cause === "disk") {
      stage.disk.isReadOnly = true;
      stage.disk.plan = { fail: { at: 0, fault: "read-only", forGood: true } };
      live.stop({ kind: "suspend", reason: "paused" });
    }
    const { end } = await stage.clock.run(live.done);
    assert.equal(end.state === "suspended" && end.reason, cause === "time" ? "limit" : "journal");
    assert.ok(children.stops.length > 0 && children.stops.every(({ kind }) => kind === "suspend"));
  }
});

Deno.test("a child that can't be made is a known failure, and one that failed is an error", async () => {
  const children = new ChildDouble(({ child }) =>
    child.agent === "a"
      ? { kind: "refused", error: new SysError("NOT_FOUND", "No such agent") }
      : { ...exited(""), status: "failed", answer: { kind: "answer", isError: true, content: [] } }
  );
  const stage = stageOf(children, { replies: [[ask("a"), ask("b")], "Done"] });
  const { runId } = await stage.run();
  const results = await stage.entriesOf(runId, "call.result");
  assert.deepEqual(results.map(({ outcome }) => outcome), ["error", "error"]);
  assert.equal(results[0]?.error?.code, "NOT_FOUND");
});

Deno.test("what children use counts against their parent's budget, and a limit above holds below", async () => {
  const spends = () =>
    new ChildDouble(() => exited("Helped", { tokens: 900, tool_calls: 3, turns: 40 }));
  const tokens = stageOf(spends(), {
    replies: [[ask("a")], [ask("a")], "Done"],
    budget: { tokens: 1_000, turns: 20 },
  });
  const { end, ledger } = await tokens.run();
  assert.equal(end.state === "suspended" && end.reason, "limit");
  assert.equal(ledger.state.childTotals.turns, 80);
  const calls = stageOf(spends(), { replies: [[ask("a")], [ask("a")]], budget: { tool_calls: 4 } });
  assert.equal((await calls.run()).end.state, "suspended");
  const below = spends();
  below.above = { key: "cost_usd", limit: 1, used: 2 };
  const { end: blocked } = await stageOf(below, { replies: ["Done"] }).run();
  assert.equal(blocked.state === "suspended" && blocked.reason, "limit");
  assert.match(blocked.error?.message ?? "", /"cost_usd" is used up/);
});

Deno.test("a child whose agent is gone after a resume is a known failure", async () => {
  const children = new ChildDouble(() => suspended("limit"));
  const stage = stageOf(children, { replies: [[ask("a")], "Done"] });
  const { runId } = await stage.run();
  stage.options.agents = [];
  const { end } = await stage.resumeToEnd(runId);
  assert.equal(end.state === "exited" && end.result, "Done");
  assert.equal(children.requests.length, 1);
});

Deno.test("a parent whose time is up, or whose journal fails, suspends its children; it doesn't kill them", async () => {
  for (const reason of ["limit", "journal"] as const) {
    const children: ChildDouble = new ChildDouble(async ({ child }, { signal }) => {
      if (child.agent === "b") {
        await sleep(stage.clock, 1_000);
        return exited("Quick");
      }
      await sleep(stage.clock, 3_600_000, signal).catch(() => {});
      assert.equal(signal.aborted, true);
      const [first] = children.stops;
      assert.equal(first?.kind === "suspend" && first.reason, reason);
      return suspended(reason);
    });
    const budget = reason === "limit" ? { budget: { duration_ms: 60_000 } } : {};
    const stage: KernelStage = stageOf(children, { replies: [[ask("a"), ask("b")]], ...budget });
    const live = await stage.start();
    await stage.clock.advance(500);
    if (reason === "journal") {
      const at = stage.disk.operations.length + 1;
      stage.disk.plan = { fail: { at, fault: "broken", forGood: true } };
    }
    const { end } = await stage.clock.run(live.done);
    assert.equal(end.state === "suspended" && end.reason, reason);
    assert.ok(stage.clock.monotonic() < 70_000);
  }
});

Deno.test("a child that was at work is told apart from one that never began", async () => {
  const children = new ChildDouble((_, { onStarted }) => (onStarted(7), new Promise(() => {})));
  const stage = stageOf(children, { replies: [[ask("a")], "Done"] });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  children.does = () => exited("Helped");
  await stage.resumeToEnd(live.runId);
  assert.deepEqual(children.requests.map(({ wasSpawned }) => wasSpawned), [false, true]);
});
