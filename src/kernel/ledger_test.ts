import assert from "node:assert/strict";
import type { Entry, EntryBody } from "../journal/entry.ts";
import { NO_TOTALS } from "../base/budget.ts";
import { intent, reply, result } from "../../tests/doubles/sample_entries.ts";
import { Ledger } from "./ledger.ts";

const SPEC = { sha256: "0".repeat(64), bytes: 2 };

function fold(...bodies: [atMs: number, body: EntryBody][]): Ledger {
  const ledger = new Ledger();
  bodies.forEach(([ts, body], index) => {
    const entry: Entry = { v: 1, seq: index + 1, ts, synced: 0, ...body };
    ledger.fold(entry);
  });
  return ledger;
}

function started(budget = {}): EntryBody {
  return {
    type: "run.started",
    run_id: "r",
    pid: 1,
    program: "agent",
    agent: "a",
    spec: SPEC,
    intent: "Do it",
    cwd: "/",
    model: "m",
    budget,
    rnix_version: "0",
  };
}

function resumed(activeMs: number, pid = 2): EntryBody {
  return {
    type: "run.resumed",
    pid,
    spec: SPEC,
    model: "m2",
    budget: { turns: 4 },
    active_ms: activeMs,
    rnix_version: "0",
  };
}

function suspended(activeMs: number): EntryBody {
  const totals = { turns: 0, tokens: 0, tool_calls: 0, active_ms: activeMs };
  return { type: "run.suspended", reason: "limit", reasons: ["limit"], totals };
}

function unknown(call: string, attempt = 1): EntryBody {
  return {
    type: "call.result",
    call,
    attempt,
    duration_ms: 1,
    outcome: "unknown",
    cause: "timeout",
  };
}

function request(turn: number, attempt = 1, tokens = 40): EntryBody {
  return {
    type: "model.request",
    turn,
    attempt,
    provider: "p",
    model: "m",
    request_sha256: "",
    tokens_estimate: tokens,
  };
}

Deno.test("without an entry there is no identity", () => {
  assert.throws(() => new Ledger().identity, /no run\.started/);
  assert.equal(new Ledger().pid, 0);
});

Deno.test("a call is open from its intent to its answer, through losses and repeats", () => {
  const open = (...bodies: EntryBody[]) =>
    fold([0, started()], ...bodies.map((body): [number, EntryBody] => [1, body]))
      .openCalls().map(({ call, attempt, cause }) => [call, attempt, cause]);
  const settled = (how: "retry" | "skip"): EntryBody => ({
    type: "call.settled",
    call: "a",
    attempt: 1,
    how,
    by: "policy",
  });
  assert.deepEqual(open(intent("a")), [["a", 1, undefined]]);
  assert.deepEqual(open(intent("a"), unknown("a")), [["a", 1, "timeout"]]);
  assert.deepEqual(open(intent("a"), unknown("a"), settled("retry")), []);
  assert.deepEqual(open(intent("a"), unknown("a"), settled("retry"), intent("a", 2)), [[
    "a",
    2,
    undefined,
  ]]);
  assert.deepEqual(open(intent("a"), settled("skip")), []);
  assert.deepEqual(open(intent("a"), intent("b"), result("a", "x")), [["b", 1, undefined]]);
  assert.deepEqual(open(intent("a"), resumed(0)), [["a", 1, "crash"]]);
  assert.deepEqual(open(intent("a"), unknown("a"), resumed(0)), [["a", 1, "timeout"]]);
});

Deno.test("a key that ever had an entry is started: requests, intents, refusals", () => {
  const ledger = fold([0, started()], [1, request(1)], [2, intent("t1.1", 2)], [
    3,
    result("t1.2", "x"),
  ]);
  assert.deepEqual(
    ["m1#1", "m1#2", "t1.1#2", "t1.1#1", "t1.2#1"].map((key) => ledger.hasStarted(key)),
    [true, false, true, false, true],
  );
});

Deno.test("sends count within one process", () => {
  const twice: [number, EntryBody][] = [[0, started()], [1, intent("a")], [2, intent("a", 2)]];
  assert.equal(fold(...twice).state.sends["a"], 2);
  assert.equal(fold(...twice, [3, resumed(0)]).state.sends["a"], undefined);
  assert.equal(fold(...twice, [3, result("a", "x")]).state.sends["a"], undefined);
});

Deno.test("turns, tokens and calls add up; a request without a reply counts by its estimate, once", () => {
  const use = (...bodies: EntryBody[]) =>
    fold([0, started()], ...bodies.map((body): [number, EntryBody] => [1, body])).state.totals;
  assert.deepEqual(use(request(1), reply("x"), intent("a")), {
    turns: 1,
    tokens: 30,
    tool_calls: 1,
    active_ms: 0,
  });
  assert.equal(use(request(1)).tokens, 0, "it may still come");
  assert.equal(use(request(1), resumed(0)).tokens, 40);
  assert.equal(use(request(1), suspended(0)).tokens, 40);
  assert.equal(use(request(1), suspended(0), resumed(0), request(1, 2), reply("x")).tokens, 70);
  assert.equal(use(request(1, 1), request(1, 2), reply("x")).tokens, 70);
});

Deno.test("totals of an end count the request that is lost with it", () => {
  const ledger = fold([0, started()], [1, request(1)]);
  assert.equal(ledger.totalsAt(5).tokens, 0);
  assert.equal(ledger.endTotalsAt(5).tokens, 40);
  assert.equal(ledger.endTotalsAt(5).active_ms, 5);
});

Deno.test("active time is what ends and resumes say, and what has passed since the last of them", () => {
  const crashed = fold([1_000, started()], [1_500, intent("a")], [900_000, unknown("a")], [
    900_001,
    resumed(500),
  ]);
  assert.equal(crashed.totalsAt(900_001).active_ms, 500);
  assert.equal(crashed.totalsAt(900_101).active_ms, 600);
  const ended = fold([1_000, started()], [3_000, suspended(2_000)]);
  assert.equal(ended.totalsAt(900_000).active_ms, 2_000);
});

Deno.test("a clock that went back takes no time away", () => {
  assert.equal(fold([5_000, started()]).totalsAt(1_000).active_ms, 0);
});

Deno.test("a resume has the limits and the model of its entry; changed limits go over them", () => {
  const ledger = fold(
    [0, started({ turns: 2, tokens: 9 })],
    [1, suspended(1)],
    [2, resumed(1)],
    [3, { type: "budget.changed", budget: { tokens: 99 } }],
  );
  assert.deepEqual(ledger.state.budget, { turns: 4, tokens: 99 });
  assert.deepEqual([ledger.state.model, ledger.state.intent, ledger.pid], ["m2", "Do it", 2]);
  assert.equal(ledger.state.end, undefined);
});

Deno.test("what a child used counts once: over all that it is taken up again, and however often its end is told", () => {
  const totals = (turns: number) => ({ ...NO_TOTALS, turns });
  const asked = (attempt: number, more = {}): EntryBody => ({
    ...{ type: "call.intent", call: "n.a", attempt, tool: "agent__a", device: "d" },
    ...{ effect: "write", input_sha256: "0", idempotency_key: "k", child_run_id: "c", ...more },
  });
  const exited = (turns: number, pid: number): EntryBody => ({
    ...{ type: "child.exited", call: "n.a", run_id: "c", status: "killed" },
    ...{ totals: totals(turns), pid },
  });
  const failed = (attempt: number): EntryBody => ({
    ...{ type: "call.result", call: "n.a", attempt, outcome: "error", content: [], duration_ms: 1 },
  });
  const told = [started(), asked(1), exited(3, 7), exited(3, 7), failed(1)];
  const usedAfter = (...more: EntryBody[]) => {
    const ledger = fold(...[...told, ...more].map((body): [number, EntryBody] => [0, body]));
    return ledger.state.childTotals.turns;
  };
  assert.equal(usedAfter(), 3);
  const again = asked(2, { continues: { pid: 7, totals: totals(3) } });
  assert.equal(usedAfter(again), 0, "it is at work, and says itself what it has used");
  assert.equal(usedAfter(again, exited(5, 8), failed(2)), 5);
  assert.equal(usedAfter(again, failed(2)), 3, "it wasn't taken up after all");
});

Deno.test("a saved ledger is no part of the one it was saved from", () => {
  const ledger = fold([0, started()], [1, intent("a")]);
  const saved = structuredClone(ledger.save());
  const other = new Ledger();
  other.load(structuredClone(saved));
  other.fold({ v: 1, seq: 3, ts: 2, synced: 0, ...result("a", "x") });
  assert.deepEqual(ledger.save(), saved);
  assert.ok(other.hasStarted("a#1"));
});
