import assert from "node:assert/strict";
import { KernelStage, ServerDouble } from "../../tests/kernel/kernel_stage.ts";
import { taking } from "../../tests/kernel/server_double.ts";
import { Pids } from "../kernel/pids.ts";
import { listProcesses } from "./process_list.ts";
import { Runs } from "./runs.ts";

/** A run that has ended, and one that died while its call was under way. */
async function twoRuns() {
  const stage = new KernelStage({
    servers: [new ServerDouble({ tools: { pay: { does: taking(1_000) } } })],
    replies: ["Done.", [{ tool: "world__pay" }]],
  });
  const { runId: ended } = await stage.run();
  const { runId: cut } = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const runs = new Runs(stage.disk, new Pids(stage.disk, stage.clock, "/state"), "/state");
  const journal = `/state/runs/${cut}/journal.jsonl`;
  return { stage, runs, ended, cut, journal };
}

Deno.test("a state folder that can't be written is listed all the same", async () => {
  const { stage, runs, ended, cut } = await twoRuns();
  stage.disk.isReadOnly = true;
  const rows = await listProcesses(stage.disk, runs, { all: true });
  assert.deepEqual(rows.map(({ run_id, state }) => [run_id, state]), [
    [ended, "dead"],
    [cut, "suspended"],
  ]);
  assert.equal(rows[1]?.unknown_calls?.length, 1);
});

Deno.test("a run whose journal is damaged is a row of its own, and hides no other", async () => {
  const { stage, runs, cut, journal } = await twoRuns();
  stage.disk.flipBit(journal, 30);
  const rows = await listProcesses(stage.disk, runs, { all: true });
  assert.equal(rows.length, 2);
  const { run_id, state, reason, pid, agent } = rows[1] ?? {};
  assert.deepEqual({ run_id, state, reason, pid, agent }, {
    run_id: cut,
    state: "suspended",
    reason: "journal",
    pid: 2,
    agent: "?",
  });
});

Deno.test("of a damaged journal no unknown outcomes are told: what settled them may be damaged", async () => {
  const stage = new KernelStage({
    servers: [new ServerDouble({ tools: { pay: { does: taking(10) } } })],
    replies: Array.from({ length: 9 }, () => [{ tool: "world__pay" }]),
  });
  const { runId } = await stage.start();
  await stage.clock.advance(55);
  stage.kill();
  stage.disk.damage(`/state/runs/${runId}/journal.jsonl`, (bytes) => {
    const lines = new TextDecoder().decode(bytes).split("\n");
    const intent = lines.findIndex((line) => line.includes('"call.intent"'));
    return new TextEncoder().encode(lines.toSpliced(intent + 1, 0, "x").join("\n"));
  });
  const runs = new Runs(stage.disk, new Pids(stage.disk, stage.clock, "/state"), "/state");
  const [row] = await listProcesses(stage.disk, runs, { all: false });
  assert.deepEqual([row?.pid, row?.reason, row?.unknown_calls], [1, "journal", undefined]);
  assert.notEqual(row?.agent, "?");
});

Deno.test("a run whose journal was emptied is told as damaged, by its pid", async () => {
  const { stage, runs, journal } = await twoRuns();
  const trace = await stage.disk.open(journal.replace("journal", "trace"), { create: true });
  trace.append(new Uint8Array([10]));
  stage.disk.damage(journal, () => new Uint8Array());
  const [row] = await listProcesses(stage.disk, runs, { all: false });
  assert.deepEqual([row?.pid, row?.reason, row?.agent], [2, "journal", "?"]);
});

Deno.test("what can't be read is an error, never an empty list", async () => {
  const { stage, runs } = await twoRuns();
  const { disk } = stage;
  const refuse = (path: string) => {
    const list = disk.list.bind(disk);
    disk.list = (wanted) =>
      wanted === path
        ? Promise.reject(Object.assign(new Error("Permission denied"), { code: "PERMISSION" }))
        : list(wanted);
  };
  refuse("/state/runs");
  await assert.rejects(listProcesses(disk, runs, { all: true }), { code: "PERMISSION" });
});

Deno.test("a state that is no folder is an error; none at all is no runs", async () => {
  const stage = new KernelStage();
  const { disk } = stage;
  const reader = (state: string) => {
    const runs = new Runs(disk, new Pids(disk, stage.clock, state), state);
    return listProcesses(disk, runs, { all: true });
  };
  await disk.makeFolder("/home", 0o700);
  (await disk.open("/home/file", { create: true })).close();
  assert.deepEqual(await reader("/home/none/state"), []);
  for (const state of ["/home/file", "/home/file/state"]) {
    await assert.rejects(reader(state), { code: "INVALID", exitCode: 2, device: "/home/file" });
  }
});

Deno.test("a run that never began is no row, and what is asked of it says so", async () => {
  const { stage, runs, cut, journal } = await twoRuns();
  stage.disk.damage(journal, () => new Uint8Array());
  assert.deepEqual(await listProcesses(stage.disk, runs, { all: false }), []);
  await assert.rejects(runs.view(cut), {
    code: "NOT_FOUND",
    message: /stopped before it had started/,
  });
});
