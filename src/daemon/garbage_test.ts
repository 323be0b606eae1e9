import assert from "node:assert/strict";
import { FaultyDisk, KEPT, seeded } from "../../tests/doubles/faulty_disk.ts";
import { taker } from "../../tests/doubles/sample_entries.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { newRunId, shortRunId, systemRandom } from "../base/ids.ts";
import type { EntryBody } from "../journal/entry.ts";
import { createJournal, openJournal } from "../journal/mod.ts";
import { Pids } from "../kernel/pids.ts";
import { collectGarbage, type GarbageLimits } from "./garbage.ts";
import { Runs } from "./runs.ts";
import { StateUpkeep } from "./upkeep.ts";

const DAY_MS = 24 * 3_600_000;
const TOTALS = { turns: 1, tokens: 5, tool_calls: 0, active_ms: 10 };
const SPEC = { sha256: "0".repeat(64), bytes: 2 };

function started(runId: string, pid: number): EntryBody {
  return {
    type: "run.started",
    run_id: runId,
    pid,
    program: "agent",
    agent: "demo",
    spec: SPEC,
    intent: "work",
    cwd: "/project",
    model: "m",
    budget: {},
    rnix_version: "0",
  };
}

const EXITED: EntryBody = {
  type: "run.exited",
  status: "completed",
  exit_code: 0,
  result: "done",
  totals: TOTALS,
};
const FAILED: EntryBody = { ...EXITED, status: "failed", exit_code: 1, result: "" };
const SUSPENDED: EntryBody = {
  type: "run.suspended",
  reason: "paused",
  reasons: ["paused"],
  totals: TOTALS,
};

/** A state folder with runs, on a clock that the test sets. */
class Stage {
  disk = new FaultyDisk();
  readonly clock = new VirtualClock();

  get pids(): Pids {
    return new Pids(this.disk, this.clock, "/state");
  }

  get runs(): Runs {
    return new Runs(this.disk, this.pids, "/state");
  }

  /** A run that ends with `ends` now, the first entry changed by `start`; gives its id. */
  async run(
    ends: EntryBody | EntryBody[] = [],
    start: object = {},
    runId = newRunId(this.clock.now(), systemRandom),
  ): Promise<string> {
    const folder = this.runs.folderOf(runId);
    const journal = await createJournal(this.disk, folder, taker(this.clock));
    journal.append({ ...started(runId, await this.pids.allocate(runId)), ...start });
    for (const end of [ends].flat()) journal.append(end);
    await journal.putBlob(new TextEncoder().encode(`a blob of ${runId}`));
    await journal.barrier();
    await journal.close();
    return runId;
  }

  async days(days: number): Promise<void> {
    await this.clock.advance(days * DAY_MS);
  }

  async collect(limits: Partial<GarbageLimits> = {}) {
    const deps = { storage: this.disk, runs: this.runs, taker: taker(this.clock) };
    return await collectGarbage(deps, { olderThanMs: 30 * DAY_MS, maxRuns: 1000, ...limits });
  }
}

async function stage(): Promise<Stage> {
  const made = new Stage();
  await made.disk.makeFolder("/state/runs", 0o700);
  return made;
}

Deno.test("ended runs go by age and by number, oldest first; others stay whatever their age", async () => {
  const made = await stage();
  const old = await made.run(EXITED);
  const suspended = await made.run(SUSPENDED);
  const interrupted = await made.run();
  await made.days(20);
  const middle = await made.run(EXITED);
  await made.days(20);
  const young = await made.run(EXITED);
  const report = await made.collect();
  assert.deepEqual(report.removed.map(({ run_id }) => run_id), [old]);
  assert.equal(report.removed[0]?.agent, "demo");
  assert.ok(report.bytes_freed > 0);
  assert.deepEqual(await made.runs.ids(), [suspended, interrupted, middle, young].sort());
  const again = await made.collect({ maxRuns: 1 });
  assert.deepEqual(again.removed.map(({ run_id }) => run_id), [middle]);
  assert.equal(again.left, 3);
});

Deno.test("a dry run says the same and removes nothing", async () => {
  const made = await stage();
  const old = await made.run(EXITED);
  await made.days(31);
  const before = made.disk.operations.length;
  const report = await made.collect({ dryRun: true });
  assert.deepEqual(report.removed.map(({ run_id }) => run_id), [old]);
  assert.equal(report.dry_run, true);
  assert.equal(made.disk.operations.length, before);
  assert.deepEqual(await made.runs.ids(), [old]);
});

Deno.test("a child goes with its parent and every fork of that, and counts for nothing while one is there", async () => {
  const made = await stage();
  const parent = await made.run(FAILED);
  const child = await made.run(FAILED, { parent_run_id: parent });
  const below = await made.run(EXITED, { parent_run_id: child });
  await made.days(20);
  const fork = await made.run([], { forked_from: { run_id: parent, step: 1 } });
  await made.days(11);
  assert.deepEqual((await made.collect()).removed.map(({ run_id }) => run_id), [parent]);
  const other = await made.run(EXITED);
  const { removed, kept } = await made.collect({ maxRuns: 1 });
  assert.deepEqual([removed, kept], [[], []]);
  await made.disk.remove(made.runs.folderOf(fork), { recursive: true });
  assert.deepEqual((await made.collect()).removed.map(({ run_id }) => run_id), [child, below]);
  assert.deepEqual(await made.runs.ids(), [other]);
});

Deno.test("a child goes with a parent that is one too many, unless it went on alone for longer", async () => {
  const made = await stage();
  const parent = newRunId(made.clock.now(), systemRandom);
  const child = await made.run(EXITED, { parent_run_id: parent });
  await made.run(EXITED, { run_id: parent }, parent);
  await made.days(1);
  const detached = await made.run(EXITED, { parent_run_id: parent });
  const other = await made.run(EXITED);
  const { removed } = await made.collect({ maxRuns: 1 });
  assert.deepEqual(removed.map(({ run_id }) => run_id), [parent, child]);
  assert.deepEqual(await made.runs.ids(), [detached, other].sort());
});

Deno.test("a run stays while one below it goes on", async () => {
  const made = await stage();
  const root = await made.run(FAILED);
  const child = await made.run(EXITED, { parent_run_id: root });
  const below = await made.run(SUSPENDED, { parent_run_id: child });
  await made.days(31);
  assert.deepEqual((await made.collect({ maxRuns: 0 })).removed, []);
  await made.disk.remove(made.runs.folderOf(below), { recursive: true });
  assert.deepEqual((await made.collect()).removed.map(({ run_id }) => run_id), [root, child]);
});

Deno.test("a child of a parent that can't be read stays", async () => {
  const made = await stage();
  const parent = await made.run(EXITED);
  const child = await made.run(EXITED, { parent_run_id: parent });
  await made.days(31);
  made.disk.flipBit(`${made.runs.folderOf(parent)}/journal.jsonl`, 30);
  assert.deepEqual((await made.collect()).removed, []);
  assert.deepEqual(await made.runs.ids(), [parent, child].sort());
});

Deno.test("a run that is held stays, and is told", async () => {
  const made = await stage();
  const old = await made.run(EXITED);
  await made.days(31);
  const opened = await openJournal(made.disk, made.runs.folderOf(old), taker(made.clock, 99));
  const report = await made.collect();
  assert.deepEqual(report.kept, [{ run_id: old, reason: "it is at work" }]);
  await opened.journal.close();
  assert.equal((await made.collect()).removed.length, 1);
});

Deno.test("a run whose journal is damaged or torn behind its exit stays", async () => {
  const made = await stage();
  const damaged = await made.run(EXITED);
  const torn = await made.run(EXITED);
  await made.days(31);
  made.disk.flipBit(`${made.runs.folderOf(damaged)}/journal.jsonl`, 30);
  made.disk.damage(
    `${made.runs.folderOf(torn)}/journal.jsonl`,
    (bytes) => new Uint8Array([...bytes, ...new TextEncoder().encode('{"v":1,"seq":3\n')]),
  );
  const report = await made.collect();
  assert.deepEqual(report.removed, []);
  assert.ok(report.kept.length > 0 && report.kept.every(({ failed }) => failed === true));
  assert.deepEqual((await made.runs.ids()).length, 2);
});

Deno.test("what never began goes an hour later, what is about to begin stays", async () => {
  const made = await stage();
  await made.days(1);
  const runId = newRunId(made.clock.now(), systemRandom);
  const journal = await createJournal(made.disk, made.runs.folderOf(runId), taker(made.clock));
  assert.deepEqual((await made.collect({ olderThanMs: 0 })).removed, []);
  await journal.close();
  const report = await made.collect({ olderThanMs: 0 });
  // The disk of the test gives no times: the folder is as old as time itself.
  assert.deepEqual(report.removed.map(({ run_id, pid }) => [run_id, pid]), [[runId, 0]]);
});

Deno.test("a fork keeps the blobs that it shares with a removed run", async () => {
  const made = await stage();
  const source = await made.run(EXITED);
  const fork = await made.run(SUSPENDED);
  const [blobs, forkBlobs] = [source, fork].map((id) => `${made.runs.folderOf(id)}/blobs`);
  const [name] = await made.disk.list(blobs ?? "");
  await made.disk.hardLink(`${blobs}/${name}`, `${forkBlobs}/${name}`);
  await made.days(31);
  assert.equal((await made.collect()).removed.length, 1);
  const text = new TextDecoder().decode(await made.disk.read(`${forkBlobs}/${name}`));
  assert.equal(text, `a blob of ${source}`);
});

Deno.test("a removed run's pid says so and is never given again", async () => {
  const made = await stage();
  const first = await made.run(EXITED);
  const pid = (await made.pids.newest()).get(first);
  await made.days(31);
  await made.collect();
  for (const reference of [String(pid), first, shortRunId(first)]) {
    await assert.rejects(made.runs.find(reference), {
      code: "NOT_FOUND",
      exitCode: 2,
      message: /is not there any more/,
      hint: /rnix gc removes/,
    });
  }
  await assert.rejects(made.runs.find("77"), { message: 'There is no run "77"' });
  const next = await made.run();
  assert.equal((await made.pids.newest()).get(next), (pid ?? 0) + 1);
});

Deno.test("a collection that is interrupted at any operation is finished by the next one, and never leaves half a run", async () => {
  const made = await stage();
  const old = await made.run(EXITED);
  const stays = await made.run(SUSPENDED);
  await made.days(31);
  const sound = made.disk;
  made.disk = sound.crash(KEPT);
  const first = made.disk.operations.length + 1;
  await made.collect();
  const last = made.disk.operations.length;
  assert.ok(last > first);
  for (let at = first; at <= last; at += 1) {
    for (const [index, when] of (["before", "after"] as const).entries()) {
      made.disk = sound.crash(KEPT, { stop: { at, when } });
      await Promise.race([made.collect(), made.disk.whenStopped]).catch(() => {});
      made.disk = made.disk.crash(seeded(at * 2 + index));
      const ids = await made.runs.ids();
      if (ids.includes(old)) {
        const { state } = await made.runs.view(old);
        assert.equal(state, "dead", "whole, or not there");
      }
      await made.collect();
      assert.deepEqual(await made.runs.ids(), [stays]);
      assert.deepEqual(await made.disk.list("/state/runs"), [stays]);
    }
  }
});

Deno.test("limits that a request leaves out are those of config.yaml, a wrong file is exit 2", async () => {
  const made = await stage();
  await made.run(EXITED);
  await made.days(2);
  const upkeep = () =>
    new StateUpkeep({
      storage: made.disk,
      runs: made.runs,
      taker: taker(made.clock),
      config: "/config",
    });
  assert.equal((await upkeep().collectGarbage({ dryRun: true })).removed.length, 0);
  await made.disk.makeFolder("/config", 0o700);
  const write = async (text: string) => {
    const file = await made.disk.open("/config/config.yaml", { create: true });
    file.overwrite(new TextEncoder().encode(text));
    file.close();
  };
  await write("gc: {retention: 1d}");
  assert.equal((await upkeep().collectGarbage({ dryRun: true })).removed.length, 1);
  const kept = await upkeep().collectGarbage({ olderThanMs: 3 * DAY_MS, dryRun: true });
  assert.equal(kept.removed.length, 0);
  await write("gc: {retension: 1d}");
  await assert.rejects(upkeep().collectGarbage({ dryRun: true }), { code: "INVALID", exitCode: 2 });
});
