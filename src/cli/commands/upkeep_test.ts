import assert from "node:assert/strict";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import { SysError } from "../../base/errors.ts";
import type {
  ExportFormat,
  GarbageReport,
  GarbageRequest,
  JournalRepair,
  Upkeep,
} from "../../base/upkeep.ts";

const RUN_ID = "01990000-0000-7000-8000-00000f3a9c2e";

const NEEDED: JournalRepair = {
  run_id: RUN_ID,
  state: "needed",
  kept_records: 11,
  cut: { record: 12, offset: 5589, problem: "its checksum doesn't match" },
  lost_records: 9,
  lost_bytes: 4300,
  unreadable_records: 1,
  unknown_calls: [{ call: "t2.1", tool: "pay", effect: "write" }],
  lost_contents: [{ record: 3, call: "t1.1", problem: 'Blob "ab" is missing' }],
  notices: [],
};

const REPORT: GarbageReport = {
  dry_run: false,
  removed: [{ run_id: RUN_ID, pid: 7, agent: "demo", ended_ms: 0, bytes: 2048 }],
  kept: [],
  left: 3,
  bytes_freed: 2048,
};

/** Answers that a test gives, and what it was asked. */
class FakeUpkeep implements Upkeep {
  readonly asked: unknown[] = [];
  repair: JournalRepair = NEEDED;
  report: GarbageReport = REPORT;
  pieces: string[] = [];
  failure: Error | undefined;

  repairJournal(run: string, options: { confirmed: boolean }): Promise<JournalRepair> {
    this.asked.push([run, options.confirmed]);
    return Promise.resolve(this.repair);
  }

  async *exportJournal(run: string, format: ExportFormat): AsyncGenerator<string> {
    this.asked.push([run, format]);
    if (this.failure !== undefined) throw this.failure;
    yield* this.pieces;
  }

  collectGarbage(request: GarbageRequest): Promise<GarbageReport> {
    this.asked.push(request);
    return Promise.resolve(this.report);
  }
}

function worldWith(upkeep: FakeUpkeep, insideRun = false): FakeWorld {
  return new FakeWorld({ upkeep, insideRun });
}

Deno.test("[A13] a repair first says all that it would lose, and what to type", async () => {
  const upkeep = new FakeUpkeep();
  const world = worldWith(upkeep);
  assert.equal(await world.run("journal", "repair", "7"), 1);
  assert.deepEqual(upkeep.asked, [["7", false]]);
  assert.equal(
    world.out.text,
    `run 0f3a9c2e: would keep 11 records
would cut off 9 records, 4.2 KiB, from record 12 at byte 5589 on: its checksum doesn't match
1 record can't be read: calls in them are not known
call t2.1 of pay (write): its outcome is unknown then
calls of the last reply that is kept count as unknown too, if they may have left
result of call t1.1 (record 3): its outcome is kept, its content is lost: Blob "ab" is missing
`,
  );
  assert.match(
    world.err.text,
    /nothing was changed; do it with: rnix journal repair 0f3a9c2e --yes/,
  );
});

Deno.test("a repair with --yes says where the original is; there may be nothing to repair", async () => {
  const upkeep = new FakeUpkeep();
  upkeep.repair = { ...NEEDED, state: "repaired", original: "/state/journal.damaged-1" };
  const world = worldWith(upkeep);
  assert.equal(await world.run("journal", "repair", "7", "--yes"), 0);
  assert.deepEqual(upkeep.asked, [["7", true]]);
  assert.match(world.out.text, /kept 11 records\ncut off 9 records/);
  assert.match(world.out.text, /as it was: \/state\/journal\.damaged-1\ngo on with: rnix resume/);
  const { cut: _cut, ...sound } = NEEDED;
  upkeep.repair = { ...sound, state: "unneeded" };
  const whole = worldWith(upkeep);
  assert.equal(await whole.run("journal", "repair", "7"), 0);
  assert.match(whole.out.text, /nothing to repair, 11 records\n$/);
  upkeep.repair = { ...sound, state: "unneeded", notices: ["What follows is left to resume"] };
  const torn = worldWith(upkeep);
  assert.equal(await torn.run("journal", "repair", "7"), 0);
  assert.match(torn.out.text, /nothing to repair, 11 records\nWhat follows is left to resume\n$/);
});

Deno.test("an agent can't repair its own journal, and can look", async () => {
  const upkeep = new FakeUpkeep();
  const world = worldWith(upkeep, true);
  assert.equal(await world.run("journal", "repair", "7", "--yes"), 2);
  assert.deepEqual(upkeep.asked, []);
  assert.equal(await worldWith(upkeep, true).run("journal", "repair", "7"), 1);
});

Deno.test("an export goes to stdout as it comes, or as data of the envelope", async () => {
  const upkeep = new FakeUpkeep();
  upkeep.pieces = ['{"a":1,', '"b":2}\n'];
  const world = worldWith(upkeep);
  assert.equal(await world.run("journal", "export", "7"), 0);
  assert.equal(world.out.text, '{"a":1,"b":2}\n');
  const json = worldWith(upkeep);
  assert.equal(await json.run("--json", "journal", "export", "7"), 0);
  assert.deepEqual(JSON.parse(json.out.text), { ok: true, data: { a: 1, b: 2 } });
  assert.deepEqual(upkeep.asked, [["7", "json"], ["7", "json"]]);
  const markdown = worldWith(upkeep);
  assert.equal(await markdown.run("--json", "journal", "export", "7", "--format", "markdown"), 2);
  assert.equal(await worldWith(upkeep).run("journal", "export", "7", "--format", "pdf"), 2);
});

Deno.test("an export into a file is private and whole or not there", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/run.md`;
    const upkeep = new FakeUpkeep();
    upkeep.pieces = ["# demo\n", "> hello\n"];
    const world = worldWith(upkeep);
    assert.equal(await world.run("journal", "export", "7", "--format", "markdown", "-o", path), 0);
    assert.equal(world.out.text, `${path}\n`);
    assert.equal(await Deno.readTextFile(path), "# demo\n> hello\n");
    assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
    upkeep.failure = new SysError("JOURNAL_DAMAGED", "Nothing is left", { exitCode: 7 });
    assert.equal(await worldWith(upkeep).run("journal", "export", "7", "-o", path), 7);
    assert.equal(await Deno.readTextFile(path), "# demo\n> hello\n");
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["run.md"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("gc passes on what was said, tells each run, and exits 1 where one could not go", async () => {
  const upkeep = new FakeUpkeep();
  const world = worldWith(upkeep);
  await world.clock.advance(3_600_000);
  assert.equal(await world.run("gc", "--older-than", "30d", "--max-runs", "5"), 0);
  assert.deepEqual(upkeep.asked, [{ olderThanMs: 2_592_000_000, maxRuns: 5, dryRun: false }]);
  assert.match(world.out.text, /^removed 0f3a9c2e \(pid 7, demo\), ended .* ago, 2\.0 KiB\n/);
  assert.match(world.out.text, /removed 1 run, 2\.0 KiB; 3 runs left\n$/);
  const stays = { run_id: RUN_ID, reason: "run 0f3a9c2f goes on with it when resumed" };
  upkeep.report = { ...REPORT, removed: [], kept: [stays] };
  const needed = worldWith(upkeep);
  assert.equal(await needed.run("gc"), 0, "what is still needed is no failure");
  assert.match(needed.out.text, /kept 0f3a9c2e: run 0f3a9c2f goes on with it when resumed/);
  const failed = { run_id: RUN_ID, reason: "No space left", failed: true as const };
  upkeep.report = { ...REPORT, dry_run: true, kept: [stays, failed] };
  const dry = worldWith(upkeep);
  assert.equal(await dry.run("gc", "--dry-run"), 1);
  assert.deepEqual(upkeep.asked[2], { dryRun: true });
  assert.match(dry.out.text, /would remove 1 run/);
  assert.match(dry.out.text, /kept 0f3a9c2e: No space left/);
  for (const [flag, value] of [["--older-than", "soon"], ["--max-runs", "-1"]] as const) {
    assert.equal(await worldWith(upkeep).run("gc", `${flag}=${value}`), 2, flag);
  }
  const json = worldWith(upkeep);
  assert.equal(await json.run("--json", "gc"), 1);
  const { data, error } = JSON.parse(json.out.text);
  assert.deepEqual(data.kept, [stays, failed]);
  assert.equal(error.message, "1 run could not be removed");
});
