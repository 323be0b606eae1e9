import assert from "node:assert/strict";
import { FaultyDisk, KEPT, LOST, seeded } from "../../tests/doubles/faulty_disk.ts";
import {
  fill,
  JOURNAL,
  makeRun,
  reopen,
  reply,
  result,
  RUN_FOLDER,
  sampleBatches,
  taker,
} from "../../tests/doubles/sample_entries.ts";
import { writeStateFile } from "../base/state_file.ts";
import type { EntryBody } from "./entry.ts";
import { sealJson } from "./line.ts";
import { createJournal } from "./open.ts";
import { planRepair, repairRun } from "./repair.ts";
import { verifyRun } from "./verify.ts";

const LONG = "x".repeat(70_000);

/** Offset of a record, from 1. */
function startOf(bytes: Uint8Array, record: number): number {
  let start = 0;
  for (let count = 1; count < record; count += 1) start = bytes.indexOf(10, start) + 1;
  return start;
}

async function damagedDisk(record: number, batches = sampleBatches()): Promise<FaultyDisk> {
  const disk = new FaultyDisk();
  await makeRun(disk, batches);
  disk.flipBit(JOURNAL, startOf(disk.peek(JOURNAL), record) + 30);
  return disk;
}

/** A run whose one long result has lost its blob, or has another content there. */
async function withoutBlob(change: "missing" | "wrong"): Promise<FaultyDisk> {
  const disk = new FaultyDisk();
  const batches = sampleBatches();
  batches[1]?.splice(0, 1, result("t1.0", LONG));
  await makeRun(disk, batches);
  const [name] = await disk.list(`${RUN_FOLDER}/blobs`);
  const path = `${RUN_FOLDER}/blobs/${name}`;
  if (change === "missing") await disk.remove(path);
  else disk.damage(path, () => new TextEncoder().encode("other"));
  return disk;
}

async function namesLike(disk: FaultyDisk, start: string): Promise<string[]> {
  return (await disk.list(RUN_FOLDER)).filter((name) => name.startsWith(start));
}

Deno.test("[A13] a plan says what would be lost and changes nothing", async () => {
  const disk = await damagedDisk(3);
  const before = disk.operations.length;
  const survey = await planRepair(disk, RUN_FOLDER);
  assert.deepEqual(survey.cut, {
    seq: 3,
    record: 3,
    offset: startOf(disk.peek(JOURNAL), 3),
    problem: "its checksum doesn't match",
  });
  assert.deepEqual(
    [survey.keptSeq, survey.lostRecords, survey.unreadableRecords],
    [2, 6, 1],
  );
  assert.deepEqual(survey.unknownCalls.map(({ call }) => call), ["t1.0", "t2.0", "t2.1"]);
  assert.equal(disk.operations.length, before);
});

Deno.test("[A13] a repaired journal ends before the damage; the original and what was cut off are kept", async () => {
  const disk = await damagedDisk(3);
  const old = disk.peek(JOURNAL);
  await assert.rejects(reopen(disk), { code: "JOURNAL_DAMAGED", hint: /journal repair/ });
  const { original } = await repairRun(disk, RUN_FOLDER, taker());
  const cutAt = startOf(old, 3);
  assert.deepEqual(disk.peek(JOURNAL), old.slice(0, cutAt));
  assert.deepEqual(disk.peek(original ?? ""), old);
  const [sideFile] = await namesLike(disk, "journal.cut-");
  assert.deepEqual(disk.peek(`${RUN_FOLDER}/${sideFile}`), old.slice(cutAt));
  assert.equal((await disk.stat(JOURNAL))?.mode, 0o600);
  assert.equal((await verifyRun(disk, RUN_FOLDER)).ok, true);
});

Deno.test("after a repair every call that may have left is an open cut of the next resume", async () => {
  const disk = await damagedDisk(3);
  await repairRun(disk, RUN_FOLDER, taker());
  const opened = await reopen(disk);
  assert.equal(opened.entries.length, 2);
  assert.deepEqual(opened.cut?.intents.map(({ call }) => call), ["t2.0", "t2.1"]);
  assert.ok((opened.cut?.records ?? 0) >= 6);
});

Deno.test("records whose newlines are lost count by the number of the next one", async () => {
  const disk = new FaultyDisk();
  await makeRun(disk, sampleBatches());
  const bytes = disk.peek(JOURNAL);
  const [from, to] = [startOf(bytes, 3) + 5, startOf(bytes, 7) - 3];
  disk.damage(JOURNAL, (all) => all.fill(0, from, to));
  await repairRun(disk, RUN_FOLDER, taker());
  const opened = await reopen(disk);
  assert.ok((opened.cut?.records ?? 0) >= 6, `${opened.cut?.records}`);
});

Deno.test("a repair that is interrupted at any operation leaves the old journal or the new one, and nothing forgotten", async () => {
  const counting = await damagedDisk(3);
  const old = counting.peek(JOURNAL);
  const first = counting.operations.length + 1;
  await repairRun(counting, RUN_FOLDER, taker());
  const repaired = counting.peek(JOURNAL);
  const choices = [LOST, KEPT, ...Array.from({ length: 6 }, (_, seed) => seeded(seed))];
  let points = 0;
  for (let at = first; at <= counting.operations.length; at += 1) {
    for (const when of ["before", "after"] as const) {
      for (const choice of choices) {
        points += 1;
        const made = await damagedDisk(3);
        const disk = made.crash(KEPT, {});
        disk.plan = { stop: { at: disk.operations.length + at - first + 1, when } };
        await Promise.race([repairRun(disk, RUN_FOLDER, taker()), disk.whenStopped]).catch(
          () => {},
        );
        const found = disk.crash(choice);
        const bytes = found.peek(JOURNAL);
        const isNew = bytes.length === repaired.length;
        assert.deepEqual(bytes, isNew ? repaired : old, `${at} ${when}`);
        if (!isNew) {
          await assert.rejects(reopen(found.crash(KEPT)), { code: "JOURNAL_DAMAGED" });
          await repairRun(found, RUN_FOLDER, taker());
        }
        const opened = await reopen(found);
        assert.deepEqual(opened.cut?.intents.map(({ call }) => call), ["t2.0", "t2.1"]);
        const originals = await namesLike(found, "journal.damaged-");
        assert.ok(
          originals.some((name) => found.peek(`${RUN_FOLDER}/${name}`).length === old.length),
        );
      }
    }
  }
  assert.ok(points > 100, `${points} points`);
});

Deno.test("a disk that fails during a repair leaves the old journal", async () => {
  const counting = await damagedDisk(3);
  const first = counting.operations.length + 1;
  await repairRun(counting, RUN_FOLDER, taker());
  for (let at = first; at <= counting.operations.length; at += 1) {
    const disk = await damagedDisk(3);
    const old = disk.peek(JOURNAL);
    disk.plan = { fail: { at, fault: "full" } };
    const failed = await repairRun(disk, RUN_FOLDER, taker()).then(() => false, () => true);
    disk.plan = {};
    if (disk.peek(JOURNAL).length === old.length) await repairRun(disk, RUN_FOLDER, taker());
    assert.equal((await reopen(disk)).entries.length, 2, `${at} failed: ${failed}`);
  }
});

Deno.test("a checkpoint of what was cut off is set aside, one that still fits stays", async () => {
  for (const [record, isKept] of [[3, false], [8, true]] as const) {
    const disk = new FaultyDisk();
    const journal = await createJournal(disk, RUN_FOLDER, taker());
    await fill(journal, sampleBatches());
    await journal.saveCheckpoint({ versions: { agent: 1 }, seq: 5, state: 1 });
    await fill(journal, [[reply("end", 3)]]);
    await journal.close();
    disk.flipBit(JOURNAL, startOf(disk.peek(JOURNAL), record) + 30);
    await repairRun(disk, RUN_FOLDER, taker());
    assert.equal((await disk.list(RUN_FOLDER)).includes("checkpoint.json"), isKept);
    assert.equal((await verifyRun(disk, RUN_FOLDER)).ok, true);
  }
});

Deno.test("where a file can have no second name the original is copied", async () => {
  const disk = await damagedDisk(3);
  const old = disk.peek(JOURNAL);
  disk.plan = { fail: { at: 1, fault: "read-only", forGood: true, only: "hard-link" } };
  const { original } = await repairRun(disk, RUN_FOLDER, taker());
  assert.deepEqual(disk.peek(original ?? ""), old);
  assert.equal((await reopen(disk)).entries.length, 2);
});

for (const change of ["missing", "wrong"] as const) {
  Deno.test(`a result with a ${change} blob keeps its outcome, and a sentence stands for its content`, async () => {
    const disk = await withoutBlob(change);
    await assert.rejects(reopen(disk).then(({ entries }) => entries), {
      code: "JOURNAL_DAMAGED",
      hint: /journal repair/,
    });
    const [problem] = (await verifyRun(disk, RUN_FOLDER)).problems;
    assert.deepEqual([problem?.kind, problem?.record], ["blob", 3]);
    const again = disk.crash(KEPT);
    const { survey } = await repairRun(again, RUN_FOLDER, taker());
    assert.equal(survey.cut, undefined);
    assert.deepEqual(survey.lostContents.map(({ seq, call }) => [seq, call]), [[3, "t1.0"]]);
    const { entries, cut } = await reopen(again);
    assert.equal(cut, undefined);
    assert.equal(entries.length, 8);
    const lost = entries[2];
    assert.ok(lost?.type === "call.result" && lost.outcome === "ok");
    assert.match(JSON.stringify(lost.content), /\[rnix\] This part of the result was lost: Blob/);
    assert.equal((await verifyRun(again, RUN_FOLDER)).ok, true);
  });
}

Deno.test("a reply whose text is lost can't be spoken for: the journal is cut before it", async () => {
  const disk = new FaultyDisk();
  const batches: EntryBody[][] = [...sampleBatches(), [reply(LONG, 3)], [reply("end", 4)]];
  await makeRun(disk, batches);
  const [name] = await disk.list(`${RUN_FOLDER}/blobs`);
  await disk.remove(`${RUN_FOLDER}/blobs/${name}`);
  const { survey } = await repairRun(disk, RUN_FOLDER, taker());
  assert.equal(survey.cut?.seq, 9);
  const opened = await reopen(disk);
  assert.equal(opened.entries.length, 8);
  assert.equal(opened.cut?.seq, 9);
});

Deno.test("what resume mends by itself is left to it", async () => {
  const sound = new FaultyDisk();
  await makeRun(sound, sampleBatches());
  const bytes = sound.peek(JOURNAL);
  for (const length of [bytes.length, bytes.length - 1, bytes.length - 30]) {
    const disk = sound.crash(KEPT);
    disk.damage(JOURNAL, (all) => all.slice(0, length));
    const { survey, original } = await repairRun(disk, RUN_FOLDER, taker());
    assert.deepEqual([survey.cut, original], [undefined, undefined], `${length}`);
    assert.equal(survey.tornTail, length === bytes.length - 30 ? "set-aside" : undefined);
    assert.deepEqual(disk.peek(JOURNAL), bytes.slice(0, length));
  }
  const doubtful = sound.crash(KEPT);
  doubtful.damage(JOURNAL, (all) => new Uint8Array([...all, ...new TextEncoder().encode("x\n")]));
  const { survey, original } = await repairRun(doubtful, RUN_FOLDER, taker());
  assert.deepEqual([survey.cut, survey.tornTail, original], [undefined, "accept-cut", undefined]);
});

Deno.test("a run at work, a newer format and a journal without a good start are refused", async () => {
  const sound = new FaultyDisk();
  await makeRun(sound, sampleBatches());
  const opened = await reopen(sound);
  await assert.rejects(planRepair(sound, RUN_FOLDER), { code: "INVALID", exitCode: 2 });
  await opened.journal.close();
  const newer = await damagedDisk(3);
  newer.damage(JOURNAL, (all) => new Uint8Array([...all, ...sealJson(`{"v":9,"seq":1,"ts":1`)]));
  await assert.rejects(planRepair(newer, RUN_FOLDER), { code: "INVALID", message: /version 9/ });
  await assert.rejects(repairRun(await damagedDisk(1), RUN_FOLDER, taker()), {
    code: "JOURNAL_DAMAGED",
    exitCode: 7,
  });
  const emptied = await damagedDisk(3);
  emptied.damage(JOURNAL, () => new Uint8Array());
  await writeStateFile(emptied, `${RUN_FOLDER}/trace.jsonl`, "{}");
  await assert.rejects(planRepair(emptied, RUN_FOLDER), { code: "JOURNAL_DAMAGED", exitCode: 7 });
  await assert.rejects(planRepair(new FaultyDisk(), RUN_FOLDER), { code: "NOT_FOUND" });
});
