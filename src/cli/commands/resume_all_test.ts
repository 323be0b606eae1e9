import assert from "node:assert/strict";
import { FakeSystem, report } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import type { SuspendReason } from "../../base/exit.ts";
import type { ProcessRow } from "../../base/operations.ts";

function suspended(
  pid: number,
  reason: SuspendReason,
  changes: Partial<ProcessRow> = {},
): ProcessRow {
  return {
    pid,
    ppid: 0,
    run_id: `01990000-0000-7000-8000-0000000000a${pid}`,
    state: "suspended",
    reason,
    agent: "a",
    intent: "i",
    model: "m",
    turns: 1,
    tokens_used: 1,
    cost_usd: null,
    elapsed_ms: 1,
    mounts: [],
    started_ms: 0,
    ...changes,
  };
}

/** Runs `resume --all …` over these rows; gives the exit code, the world, and the pids that were resumed. */
async function resumed(rows: ProcessRow[], args: string[], system = new FakeSystem()) {
  system.rows = rows;
  const world = new FakeWorld({ system });
  const code = await world.run("resume", "--all", ...args);
  const pids = system.resumes.map(({ run }) => rows.find((row) => row.run_id === run)?.pid);
  return { code, world, system, pids };
}

Deno.test("--all takes up what was cut off, and leaves what waits for a person", async () => {
  const rows = [
    suspended(1, "interrupted"),
    suspended(2, "paused"),
    suspended(3, "shutdown"),
    suspended(4, "unknown-outcome"),
    suspended(5, "limit"),
    suspended(6, "detached"),
    suspended(7, "interrupted", { ppid: 1 }),
    suspended(8, "interrupted", { state: "running" }),
  ];
  const { code, world, pids, system } = await resumed(rows, []);
  assert.equal(code, 0);
  assert.deepEqual(pids, [1, 3, 6]);
  assert.ok(system.resumes.every((request) => request.detached === true));
  assert.match(world.out.text, /^3 runs resumed\n$/);
});

Deno.test("what --all brings with it counts: a decision, a higher limit", async () => {
  const rows = [suspended(4, "unknown-outcome"), suspended(5, "limit")];
  assert.deepEqual((await resumed(rows, ["--on-unknown", "skip"])).pids, [4]);
  assert.deepEqual((await resumed(rows, ["--max-turns", "9"])).pids, [5]);
});

/** A run of which these calls are unknown. */
function undecided(pid: number, ...calls: string[]): ProcessRow {
  const row = suspended(pid, "unknown-outcome");
  const facts = { run_id: row.run_id, tool: "pay", effect: "write", cause: "crash", attempt: 1 };
  return { ...row, unknown_calls: calls.map((call) => ({ ...facts, call })) };
}

Deno.test("a decision about a call of an agent below takes up the run that started it", async () => {
  const rows = [
    suspended(1, "unknown-outcome"),
    { ...undecided(2, "t1.1"), ppid: 1 },
    { ...undecided(3, "t2.1"), ppid: 2 },
    suspended(4, "unknown-outcome"),
  ];
  const { code, pids } = await resumed(rows, ["--unknown", "t2.1:skip"]);
  assert.equal(code, 0);
  assert.deepEqual(pids, [1]);
});

Deno.test("a decision goes to the runs of --all that it fits, and takes them up", async () => {
  const rows = [undecided(4, "t1.1"), undecided(5, "t2.1"), suspended(6, "interrupted")];
  const args = ["--unknown", "t1.1:done", "--unknown", "t2.1:skip"];
  const { code, pids, system } = await resumed(rows, args);
  assert.equal(code, 0);
  assert.deepEqual(pids, [4, 5, 6]);
  const calls = system.resumes.map(({ unknown }) => unknown.map(({ call }) => call));
  assert.deepEqual(calls, [["t1.1"], ["t2.1"], []]);
});

Deno.test("a decision that fits no run of --all refuses all of them, naming it and the unknown calls", async () => {
  const rows = [undecided(4, "t1.1"), suspended(6, "interrupted")];
  for (const rule of ["T1.1:done", "t1.9:fail", "0000aaaa/t1.1:skip"]) {
    const { code, world, system } = await resumed(rows, [
      "--on-unknown=retry",
      "--unknown=t1.1:skip",
      `--unknown=${rule}`,
    ]);
    assert.equal(code, 2, rule);
    assert.deepEqual(system.resumes, []);
    assert.ok(world.err.text.includes(`--unknown=${rule}`), world.err.text);
    assert.match(world.err.text, /t1\.1 \(pay\)/);
  }
  const both = await resumed(rows, ["--unknown=t1.1:skip", "--unknown=t1.1:done"]);
  assert.deepEqual([both.code, both.pids], [2, []]);
  assert.match(both.world.err.text, /contradict/);
  const none = await resumed([suspended(6, "interrupted")], ["--unknown=skip"]);
  assert.deepEqual([none.code, none.pids], [2, []]);
});

Deno.test("a pid or a part before a call of --all is the run that it names", async () => {
  const system = new FakeSystem();
  const rows = [undecided(4, "t1.1"), undecided(5, "t1.1")];
  system.ended = report({ run_id: rows[1]?.run_id ?? "" });
  const { code, pids } = await resumed(rows, ["--unknown=2/t1.1:done"], system);
  assert.equal(code, 0);
  assert.deepEqual(pids, [5]);
  assert.ok(system.asked.includes("report 2"));
  assert.equal(system.resumes[0]?.unknown[0]?.run, rows[1]?.run_id);
});

Deno.test("the exit code is 0 when all have completed, the one they share, or 1", async () => {
  const rows = [suspended(1, "interrupted"), suspended(3, "shutdown")];
  const ending = (codes: number[]) => {
    const system = new FakeSystem();
    system.play = () =>
      report({ exit_code: codes.shift() ?? 0, state: "suspended", reason: "paused" });
    return system;
  };
  assert.equal((await resumed(rows, [], ending([9, 0]))).code, 9);
  assert.equal((await resumed(rows, [], ending([5, 9]))).code, 1);
});

Deno.test("a run that can't be taken up is told, and the others go on", async () => {
  const system = new FakeSystem();
  system.resume = () => Promise.reject(new Error("held by process 7"));
  const failing = await resumed([suspended(1, "interrupted")], ["--json"], system);
  assert.equal(failing.code, 1);
  const { ok, data } = JSON.parse(failing.world.out.text);
  assert.deepEqual([ok, data.runs.length], [false, 0]);
});

Deno.test("--all goes without a run and without what is meant for one", async () => {
  for (const args of [["1"], ["--fork"], ["--plan"], ["--stream"]]) {
    const { code, system } = await resumed([suspended(1, "interrupted")], args);
    assert.equal(code, 2, args.join(" "));
    assert.deepEqual(system.resumes, []);
  }
  const world = new FakeWorld();
  assert.equal(await world.run("resume"), 2);
  assert.match(world.err.text, /needs <run>/);
});

Deno.test("with nothing cut off --all says so", async () => {
  const { code, world } = await resumed([], []);
  assert.equal(code, 0);
  assert.equal(world.out.text, "Nothing to resume.\n");
});
