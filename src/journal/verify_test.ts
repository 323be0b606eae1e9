import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import {
  fill,
  JOURNAL,
  makeRun,
  reopen,
  reply,
  result,
  RUN_FOLDER,
  RUN_ID,
  sampleBatches,
  taker,
} from "../../tests/doubles/sample_entries.ts";
import { sealJson } from "./line.ts";
import { createJournal } from "./open.ts";
import { verifyRun } from "./verify.ts";

async function sampleDisk(): Promise<FaultyDisk> {
  const disk = new FaultyDisk();
  await makeRun(disk, sampleBatches());
  return disk;
}

async function kindsIn(disk: FaultyDisk): Promise<[kind: string, record: number][]> {
  const { problems, ok } = await verifyRun(disk, RUN_FOLDER);
  assert.equal(ok, problems.length === 0);
  return problems.map(({ kind, record }) => [kind, record]);
}

function startOf(bytes: Uint8Array, record: number): number {
  let start = 0;
  for (let count = 1; count < record; count += 1) start = bytes.indexOf(10, start) + 1;
  return start;
}

Deno.test("a sound journal has no problems, and nothing is changed by looking", async () => {
  const disk = await sampleDisk();
  const operations = disk.operations.length;
  assert.deepEqual(await verifyRun(disk, RUN_FOLDER), {
    run_id: RUN_ID,
    entries: 8,
    bytes: disk.peek(JOURNAL).length,
    ok: true,
    problems: [],
  });
  assert.equal(disk.operations.length, operations);
});

Deno.test("every damaged record is told with its number and offset", async () => {
  const disk = await sampleDisk();
  const bytes = disk.peek(JOURNAL);
  disk.flipBit(JOURNAL, startOf(bytes, 2) + 20);
  disk.flipBit(JOURNAL, startOf(bytes, 5) + 20);
  const { problems, entries } = await verifyRun(disk, RUN_FOLDER);
  const damaged = problems.filter(({ kind }) => kind === "damaged");
  assert.deepEqual(
    damaged.map(({ record, offset }) => [record, offset]),
    [[2, startOf(bytes, 2)], [5, startOf(bytes, 5)]],
  );
  assert.equal(entries, 6);
});

Deno.test("a torn tail is told apart from other damage, and how resume takes it", async () => {
  const torn = await sampleDisk();
  torn.damage(JOURNAL, (bytes) => bytes.slice(0, -9));
  const { problems } = await verifyRun(torn, RUN_FOLDER);
  assert.deepEqual(problems.map(({ kind }) => kind), ["damaged", "torn"]);
  assert.match(problems[1]?.message ?? "", /sets it aside and goes on/);

  const ended = await sampleDisk();
  ended.flipBit(JOURNAL, startOf(ended.peek(JOURNAL), 8) + 20);
  const found = await verifyRun(ended, RUN_FOLDER);
  assert.match(found.problems[1]?.message ?? "", /--accept-cut/);

  const middle = await sampleDisk();
  middle.flipBit(JOURNAL, 20);
  assert.equal((await kindsIn(middle)).some(([kind]) => kind === "torn"), false);
});

Deno.test("gaps, repeats, newer lines, unknown types and a missing newline each have their kind", async () => {
  const disk = await sampleDisk();
  const bytes = disk.peek(JOURNAL);
  const [second, third] = [startOf(bytes, 2), startOf(bytes, 3)];
  const seal = (open: string): Uint8Array => sealJson(open);
  disk.damage(JOURNAL, () =>
    new Uint8Array([
      ...bytes.slice(0, third),
      ...bytes.slice(second),
      ...seal(`{"v":9,"seq":9`),
      ...seal(`{"v":1,"seq":9,"ts":1,"type":"odd","synced":8`).slice(0, -1),
    ]));
  assert.deepEqual(await kindsIn(disk), [
    ["sequence", 3],
    ["newer", 10],
    ["newline", 11],
    ["entry", 11],
  ]);
});

Deno.test("missing and changed blobs are told with the record that names them", async () => {
  const disk = new FaultyDisk();
  await makeRun(disk, [[
    reply("a"),
    result("t1.0", "x".repeat(70_000)),
    result("t1.1", "y".repeat(70_000)),
  ]]);
  assert.deepEqual(await kindsIn(disk), []);
  const [one, two] = await disk.list(`${RUN_FOLDER}/blobs`);
  disk.flipBit(`${RUN_FOLDER}/blobs/${one}`, 5);
  await disk.remove(`${RUN_FOLDER}/blobs/${two}`);
  const found = await kindsIn(disk);
  assert.deepEqual(found, [["blob", 2], ["blob", 3]]);
});

Deno.test("a checkpoint that doesn't fit is told", async () => {
  const disk = await sampleDisk();
  const { journal } = await reopen(disk);
  await journal.saveCheckpoint({ versions: {}, seq: 8, state: null });
  await journal.close();
  assert.deepEqual(await kindsIn(disk), []);
  disk.flipBit(`${RUN_FOLDER}/checkpoint.json`, 30);
  assert.deepEqual(await kindsIn(disk), [["checkpoint", 8]]);
});

Deno.test("a live run's half-written last line is no problem", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  await fill(journal, sampleBatches());
  disk.damage(JOURNAL, (bytes) => bytes.slice(0, -9));
  assert.deepEqual(await kindsIn(disk), []);
});

Deno.test("very many problems are told up to a hundred", async () => {
  const disk = await sampleDisk();
  disk.damage(JOURNAL, () => new Uint8Array(500).fill(10));
  const { problems, ok } = await verifyRun(disk, RUN_FOLDER);
  assert.deepEqual([problems.length, ok], [100, false]);
});

Deno.test("a run without a journal is NOT_FOUND", async () => {
  await assert.rejects(verifyRun(new FaultyDisk(), RUN_FOLDER), { code: "NOT_FOUND" });
});
