import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import {
  fill,
  intent,
  JOURNAL,
  makeRun,
  reply,
  result,
  RUN_FOLDER,
  sampleBatches,
  taker,
} from "../../tests/doubles/sample_entries.ts";
import type { Entry, EntryBody } from "./entry.ts";
import { createJournal } from "./open.ts";
import { linesOf, readEnds, readRun } from "./read.ts";

async function readAll(disk: FaultyDisk) {
  const entries: Entry[] = [];
  const report = await readRun(disk, RUN_FOLDER, (entry) => void entries.push(entry));
  return { entries, ...report };
}

async function fileOf(content: Uint8Array) {
  const disk = new FaultyDisk();
  const file = await disk.open("/a", { create: true });
  file.append(content);
  return file;
}

Deno.test("lines come with their offsets, wherever chunks end", async () => {
  const lengths = [0, 1, 300_000, 262_143, 262_144, 700_000, 5, 0, 262_142];
  const text = lengths.map((length, index) => `${"abcdefghi"[index]}`.repeat(length)).join("\n");
  const file = await fileOf(new TextEncoder().encode(text));
  const lines = [];
  for await (const batch of linesOf(file, 0, file.size())) lines.push(...batch);
  assert.deepEqual(lines.map(({ bytes }) => bytes.length), lengths);
  let offset = 0;
  for (const [index, line] of lines.entries()) {
    assert.equal(line.offset, offset);
    assert.equal(line.ended, index < lines.length - 1);
    assert.ok(line.bytes.every((byte) => byte === "abcdefghi".charCodeAt(index)));
    offset += line.bytes.length + 1;
  }
});

Deno.test("lines of a part of a file end where the part ends", async () => {
  const file = await fileOf(new TextEncoder().encode("one\ntwo\nthree\n"));
  const lines = [];
  for await (const batch of linesOf(file, 4, 10)) lines.push(...batch);
  assert.deepEqual(
    lines.map(({ bytes, offset, ended }) => [new TextDecoder().decode(bytes), offset, ended]),
    [["two", 4, true], ["th", 8, false]],
  );
});

Deno.test("a live run can be read, without its lease and without changing anything", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  const entries = await fill(journal, sampleBatches());
  const operations = disk.operations.length;
  assert.deepEqual(await readAll(disk), {
    entries,
    lastSeq: 8,
    mayLackDurable: false,
    notices: [],
  });
  assert.equal(disk.operations.length, operations);
  await fill(journal, [[reply("goes on", 3)]]);
  await journal.close();
});

Deno.test("a reader leaves out a torn tail, with a notice, and cuts nothing", async () => {
  const disk = new FaultyDisk();
  const entries = await makeRun(disk, sampleBatches());
  for (const damage of [5, 60]) {
    disk.damage(JOURNAL, (bytes) => bytes.slice(0, -damage));
    const before = disk.peek(JOURNAL);
    const { entries: read, notices } = await readAll(disk);
    assert.deepEqual(read, entries.slice(0, 7));
    assert.match(notices[0] ?? "", /damaged at record 8 .*read up to there/);
    assert.deepEqual(disk.peek(JOURNAL), before);
  }
});

Deno.test("a live run's half-written last line is left out without a notice", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  await fill(journal, sampleBatches());
  disk.damage(JOURNAL, (bytes) => bytes.slice(0, -9));
  const { lastSeq, notices } = await readAll(disk);
  assert.deepEqual([lastSeq, notices], [7, []]);
});

Deno.test("a reader refuses other damage, after what was good", async () => {
  const disk = new FaultyDisk();
  await makeRun(disk, sampleBatches());
  const second = disk.peek(JOURNAL).indexOf(10) + 1;
  disk.flipBit(JOURNAL, second + 8);
  const seqs: number[] = [];
  await assert.rejects(readRun(disk, RUN_FOLDER, ({ seq }) => void seqs.push(seq)), {
    code: "JOURNAL_DAMAGED",
    message: /record 2/,
  });
  assert.deepEqual(seqs, [1]);
});

Deno.test("a reader gets the content of blobs", async () => {
  const disk = new FaultyDisk();
  const batches: EntryBody[][] = [[reply("x".repeat(70_000)), result("t1.0", "y".repeat(80_000))]];
  const entries = await makeRun(disk, batches);
  assert.ok(disk.peek(JOURNAL).length < 2_000);
  assert.deepEqual((await readAll(disk)).entries, entries);
});

Deno.test("a run without a journal is NOT_FOUND", async () => {
  const disk = new FaultyDisk();
  await assert.rejects(readAll(disk), { code: "NOT_FOUND" });
  await assert.rejects(readEnds(disk, RUN_FOLDER), { code: "NOT_FOUND" });
});

Deno.test("the ends of a run are its first and its last entry, however long they are", async () => {
  const inline = (length: number) => ({
    ...reply("z"),
    message: Array.from({ length: length / 10 }, () => "1234567"),
  });
  const cases: EntryBody[][] = [
    [reply("only")],
    [reply("a"), intent("t1.0"), result("t1.0", "b")],
    [inline(100_000), intent("t1.0"), inline(90_000)],
    [reply("x".repeat(70_000)), ...Array.from({ length: 300 }, (_, n) => intent(`t1.${n}`))],
  ];
  for (const batch of cases) {
    const disk = new FaultyDisk();
    const entries = await makeRun(disk, [batch]);
    const ends = await readEnds(disk, RUN_FOLDER);
    assert.deepEqual(ends, {
      first: entries[0],
      last: entries.at(-1),
      sizeBytes: disk.peek(JOURNAL).length,
    });
  }
});

Deno.test("the last entry is the last good one, also before a long torn tail", async () => {
  const disk = new FaultyDisk();
  const entries = await makeRun(disk, sampleBatches());
  disk.damage(JOURNAL, (bytes) => new Uint8Array([...bytes, ...new Uint8Array(50_000)]));
  assert.deepEqual((await readEnds(disk, RUN_FOLDER)).last, entries.at(-1));
  disk.damage(JOURNAL, (bytes) => bytes.slice(0, bytes.length - 50_020));
  assert.deepEqual((await readEnds(disk, RUN_FOLDER)).last, entries.at(-2));
});

Deno.test("an empty journal has no ends", async () => {
  const disk = new FaultyDisk();
  await makeRun(disk, []);
  assert.deepEqual(await readEnds(disk, RUN_FOLDER), {
    first: undefined,
    last: undefined,
    sizeBytes: 0,
  });
});
