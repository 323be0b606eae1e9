import assert from "node:assert/strict";
import { FaultyDisk, KEPT, LOST, seeded } from "../../tests/doubles/faulty_disk.ts";
import {
  fill,
  intent,
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
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import type { Entry } from "./entry.ts";
import { decodeLine, encodeLine, sealJson } from "./line.ts";
import { createJournal, openJournal } from "./open.ts";

const NEWLINE = 10;

/** Ends of all lines, newline included. */
function lineEnds(bytes: Uint8Array): number[] {
  const ends: number[] = [];
  bytes.forEach((byte, index) => byte === NEWLINE && ends.push(index + 1));
  return ends;
}

async function sampleRun(batches = sampleBatches()) {
  const disk = new FaultyDisk();
  const entries = await makeRun(disk, batches);
  const bytes = disk.peek(JOURNAL);
  return { disk, entries, bytes, ends: lineEnds(bytes) };
}

/** The run's disk with other bytes in its journal. */
function withJournal(disk: FaultyDisk, bytes: Uint8Array): FaultyDisk {
  const changed = disk.crash(KEPT);
  changed.damage(JOURNAL, () => bytes);
  return changed;
}

async function sideFilesOf(disk: FaultyDisk): Promise<string[]> {
  return (await disk.list(RUN_FOLDER)).filter((name) => name.startsWith("journal.cut-"));
}

Deno.test("a new run's folder is private, and durable before its journal is given out", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  const found = disk.crash(LOST);
  assert.deepEqual(await found.list(RUN_FOLDER), ["blobs", "journal.jsonl", "lock"]);
  for (const [path, mode] of [["", 0o700], ["/blobs", 0o700], ["/lock", 0o600]] as const) {
    assert.equal((await found.stat(RUN_FOLDER + path))?.mode, mode, path);
  }
  assert.equal((await found.stat(JOURNAL))?.mode, 0o600);
  assert.equal(journal.runId, RUN_ID);
  await journal.close();
});

Deno.test("what a failed sync gave up is durable once the run was taken up again", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  await fill(journal, sampleBatches().slice(0, 2));
  const [, , last = []] = sampleBatches();
  const at = disk.operations.length + last.length + 1;
  disk.plan = { fail: { at, fault: "read-only", forGood: true } };
  await assert.rejects(fill(journal, [last]), { exitCode: 7 });
  assert.equal(disk.operations.at(-1)?.name, "sync");
  // It can't even be cut off.
  await journal.close();
  disk.plan = {};
  const { journal: again } = await openJournal(disk, RUN_FOLDER, taker());
  const { lastSeq } = again;
  const found = await reopen(disk.crash(LOST));
  assert.equal(found.entries.length, lastSeq);
  assert.deepEqual(found.notices, []);
  await again.close();
});

Deno.test("a second journal isn't made over the first one", async () => {
  const { disk } = await sampleRun();
  await assert.rejects(createJournal(disk, RUN_FOLDER, taker()), { code: "INVALID" });
  assert.equal((await reopen(disk)).entries.length, 8);
});

Deno.test("opening what isn't a run is NOT_FOUND and leaves nothing there", async () => {
  const disk = new FaultyDisk();
  await disk.makeFolder(RUN_FOLDER, 0o700);
  await assert.rejects(openJournal(disk, RUN_FOLDER, taker()), { code: "NOT_FOUND", exitCode: 2 });
  assert.deepEqual(await disk.list(RUN_FOLDER), []);
});

Deno.test("an untouched run replays all entries, without a notice", async () => {
  const { disk, entries } = await sampleRun();
  const opened = await reopen(disk);
  assert.deepEqual(opened.entries, entries);
  assert.deepEqual(opened.notices, []);
  assert.equal(opened.cut, undefined);
  const next = opened.journal.append(reply("third", 3));
  assert.deepEqual([next.seq, next.synced], [9, 8]);
});

Deno.test("[A11] a journal cut at every byte of its last two records resumes before them, with a notice", async () => {
  const { disk, entries, bytes, ends } = await sampleRun();
  const from = ends.at(-3) ?? 0;
  for (let length = from; length <= bytes.length; length += 1) {
    const cut = withJournal(disk, bytes.slice(0, length));
    const whole = ends.filter((end) => end <= length).length;
    // A record that lacks only its newline is kept.
    const kept = ends.includes(length + 1) ? whole + 1 : whole;
    const opened = await reopen(cut);
    assert.deepEqual(opened.entries, entries.slice(0, kept), `${length} bytes`);
    const isClean = ends.includes(length);
    assert.equal(opened.notices.length, isClean ? 0 : 1, `${length} bytes`);
    assert.equal(opened.cut, undefined);
    const isTorn = !isClean && kept === whole;
    const sideFiles = await sideFilesOf(cut);
    assert.equal(sideFiles.length, isTorn ? 1 : 0);
    if (isTorn) {
      const kept = cut.peek(`${RUN_FOLDER}/${sideFiles[0]}`);
      assert.deepEqual(kept, bytes.slice(ends[whole - 1], length));
    }
    await fill(opened.journal, [[reply("next", 3)]]);
    await opened.journal.close();
    const again = await reopen(cut);
    assert.equal(again.entries.length, kept + 1);
    assert.deepEqual(again.notices, []);
    await again.journal.close();
  }
});

Deno.test("[A11] a torn first record leaves an empty journal", async () => {
  const { disk, bytes } = await sampleRun();
  const opened = await reopen(withJournal(disk, bytes.slice(0, 40)));
  assert.equal(opened.journal.lastSeq, 0);
  assert.equal(opened.notices.length, 1);
});

Deno.test("every flipped bit of the last batch needs a person, or changes nothing", async () => {
  const { disk, entries, bytes, ends } = await sampleRun();
  const from = ends.at(-3) ?? 0;
  for (let offset = from; offset < bytes.length; offset += 1) {
    const flipped = disk.crash(KEPT);
    flipped.flipBit(JOURNAL, offset, offset % 8);
    const before = flipped.peek(JOURNAL);
    if (offset === bytes.length - 1) {
      // Only the last newline: its record is whole.
      const opened = await reopen(flipped);
      assert.deepEqual(opened.entries, entries);
      assert.equal(opened.notices.length, 2);
      continue;
    }
    await assert.rejects(reopen(flipped), {
      code: "JOURNAL_DAMAGED",
      exitCode: 7,
      message: /may have been durable/,
      hint: /--accept-cut/,
    }, `byte ${offset}`);
    assert.deepEqual(flipped.peek(JOURNAL), before, "nothing is changed unasked");
    const opened = await reopen(flipped, true);
    assert.ok(opened.entries.length >= 6 && opened.entries.length < 8, `byte ${offset}`);
    assert.ok(opened.cut !== undefined);
    assert.match(opened.notices[0] ?? "", /a whole reply of the model may be lost/);
    await opened.journal.close();
  }
});

Deno.test("every flipped byte before the last batch is refused with record and offset", async () => {
  const { disk, bytes, ends } = await sampleRun();
  const until = ends.at(-3) ?? 0;
  for (let offset = 0; offset < until; offset += 1) {
    const flipped = disk.crash(KEPT);
    flipped.flipBit(JOURNAL, offset, offset % 8);
    const record = ends.findIndex((end) => offset < end) + 1;
    const start = ends[record - 2] ?? 0;
    const refusal = {
      code: "JOURNAL_DAMAGED",
      exitCode: 7,
      message: new RegExp(`record ${record} \\(offset ${start}\\)`),
    };
    await assert.rejects(reopen(flipped), refusal, `byte ${offset}`);
    await assert.rejects(reopen(flipped, true), refusal, "accepting a cut doesn't help");
    const after = flipped.peek(JOURNAL);
    assert.equal(after.length, bytes.length);
  }
});

Deno.test("[A13] NULs over records in the middle are refused with record and offset", async () => {
  const { disk, bytes, ends } = await sampleRun();
  const start = (ends[1] ?? 0) + 10;
  const damaged = bytes.slice();
  damaged.fill(0, start, start + 300);
  await assert.rejects(reopen(withJournal(disk, damaged)), {
    code: "JOURNAL_DAMAGED",
    message: new RegExp(`record 3 \\(offset ${ends[1]}\\).*was durable`),
    hint: /journal verify/,
  });
});

Deno.test("[A13] NULs after the last record, as a crash leaves them, are a torn tail", async () => {
  const { disk, entries, bytes } = await sampleRun();
  const opened = await reopen(
    withJournal(disk, new Uint8Array([...bytes, ...new Uint8Array(500)])),
  );
  assert.deepEqual(opened.entries, entries);
  assert.equal(opened.notices.length, 1);
  assert.equal(opened.cut, undefined);
});

Deno.test("a duplicated block in the middle is refused, at the end it needs a person", async () => {
  const { disk, bytes, ends } = await sampleRun();
  const block = bytes.slice(ends[1], ends[3]);
  const parts = [bytes.slice(0, ends[3]), block, bytes.slice(ends[3])];
  await assert.rejects(reopen(withJournal(disk, concat(parts))), {
    code: "JOURNAL_DAMAGED",
    message: /record 5 .*it is entry 3 where entry 5 should be; it was durable/,
  });
  const atEnd = withJournal(disk, concat([bytes, bytes.slice(ends[5])]));
  await assert.rejects(reopen(atEnd), { hint: /--accept-cut/ });
  const opened = await reopen(atEnd, true);
  assert.equal(opened.entries.length, 8);
});

Deno.test("a missing record in the middle is refused", async () => {
  const { disk, bytes, ends } = await sampleRun();
  const without = concat([bytes.slice(0, ends[1]), bytes.slice(ends[2])]);
  await assert.rejects(reopen(withJournal(disk, without)), {
    message: /record 3 .*it is entry 4 where entry 3 should be/,
  });
});

Deno.test("a tail of a batch that was never synced is torn, though its middle is what is missing", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  await fill(journal, [[reply("a")]]);
  const size = disk.peek(JOURNAL).length;
  for (const call of ["t1.0", "t1.1", "t1.2"]) journal.append(intent(call));
  await journal.close();
  const bytes = disk.peek(JOURNAL);
  bytes.fill(0, size + 5, size + 50);
  const opened = await reopen(withJournal(disk, bytes), true);
  assert.equal(opened.entries.length, 1);
  assert.deepEqual(opened.cut?.intents.map(({ call }) => call), ["t1.1", "t1.2"]);
});

Deno.test("an accepted cut tells the intents that can still be read, until something after it is durable", async () => {
  const { disk } = await sampleRun([
    [reply("a"), intent("t1.0"), intent("t1.1")],
  ]);
  const first = lineEnds(disk.peek(JOURNAL))[0] ?? 0;
  disk.flipBit(JOURNAL, first + 30);
  const opened = await reopen(disk, true);
  assert.deepEqual(opened.cut?.intents.map(({ call }) => call), ["t1.1"]);
  assert.equal(opened.cut.seq, 2);
  assert.equal(opened.cut.sideFiles.length, 1);
  // The process dies before it could record what the cut means.
  const again = await reopen(disk.crash(LOST));
  assert.deepEqual(again.cut, opened.cut);
  assert.deepEqual(again.notices, []);
  again.journal.append(result("t1.1", "unknown"));
  // Written, not known durable: still open.
  await again.journal.close();
  const disk2 = disk.crash(LOST);
  const third = await reopen(disk2);
  assert.notEqual(third.cut, undefined);
  await fill(third.journal, [[result("t1.1", "unknown")], [reply("b", 2)]]);
  await third.journal.close();
  assert.equal((await reopen(disk2)).cut, undefined);
});

Deno.test("a crash at every operation of a cut loses neither the tail nor its news", async () => {
  const { disk, bytes, ends } = await sampleRun();
  const flipAt = (ends.at(-3) ?? 0) + 30;
  const damagedDisk = disk.crash(KEPT);
  damagedDisk.flipBit(JOURNAL, flipAt);
  const counting = damagedDisk.crash(KEPT);
  await reopen(counting, true);
  for (let at = 1; at <= counting.operations.length; at += 1) {
    for (const when of ["before", "after"] as const) {
      for (const choice of [LOST, KEPT, seeded(at)]) {
        const stopping = damagedDisk.crash(KEPT, { stop: { at, when } });
        void reopen(stopping, true).catch(() => {});
        await stopping.whenStopped;
        const found = stopping.crash(choice);
        const opened = await reopen(found, true);
        assert.deepEqual(opened.entries.length, 6);
        assert.equal(opened.cut?.seq, 7);
        const side = found.peek(opened.cut.sideFiles[0] ?? "");
        assert.equal(side.length, bytes.length - (ends.at(-3) ?? 0));
        await opened.journal.close();
      }
    }
  }
});

Deno.test("what is read from the cache is synced before it counts as durable", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  await fill(journal, [[reply("a")]]);
  journal.append(intent("t1.0"));
  await Promise.resolve();
  // Only the process dies: the bytes are there, and not durable.
  const killed = disk.kill();
  assert.equal(lineEnds(killed.crash(LOST).peek(JOURNAL)).length, 1);
  const opened = await reopen(killed);
  assert.equal(opened.journal.durableSeq, 2);
  assert.equal((await reopen(killed.crash(LOST))).entries.length, 2);
});

Deno.test("names that their maker had no time to sync are synced before they count as durable", async () => {
  const counting = new FaultyDisk();
  await createJournal(counting, RUN_FOLDER, taker());
  const last = counting.operations.at(-1);
  assert.deepEqual([last?.name, last?.path], ["sync-folder", RUN_FOLDER]);
  const disk = new FaultyDisk({ stop: { at: last?.number ?? 0, when: "before" } });
  void createJournal(disk, RUN_FOLDER, taker());
  await disk.whenStopped;
  const killed = disk.kill();
  const { journal } = await reopen(killed);
  await fill(journal, [[reply("a")]]);
  assert.equal((await reopen(killed.crash(LOST))).entries.length, 1);
});

Deno.test("[A11] a restored newline is durable before anything is appended", async () => {
  const { disk, entries, bytes } = await sampleRun();
  const lacking = withJournal(disk, bytes.slice(0, -1));
  const opened = await reopen(lacking);
  assert.match(opened.notices[0] ?? "", /record 8 lacked its newline/);
  assert.deepEqual(lacking.crash(LOST).peek(JOURNAL), bytes);
  assert.deepEqual(opened.entries, entries);
});

Deno.test("a newer format is refused by number, and nothing is cut", async () => {
  const { disk, bytes } = await sampleRun();
  const newer = concat([bytes, sealJson(`{"v":3,"seq":9,"what":"ever"`), bytes.slice(0, 20)]);
  const found = withJournal(disk, newer);
  await assert.rejects(reopen(found, true), {
    code: "INVALID",
    exitCode: 7,
    message: /format version 3 at record 9; this rnix reads up to version 1/,
  });
  assert.deepEqual(found.peek(JOURNAL), newer);
});

Deno.test("an unknown entry type is refused with its record", async () => {
  const { disk, bytes } = await sampleRun();
  const line = sealJson(`{"v":1,"seq":9,"ts":1,"type":"call.teleported","synced":8`);
  await assert.rejects(reopen(withJournal(disk, concat([bytes, line]))), {
    code: "JOURNAL_DAMAGED",
    exitCode: 7,
    message: /record 9 at offset \d+: entry type "call.teleported" isn't known/,
  });
});

Deno.test("a missing or changed blob is told when its entry is read", async () => {
  const { disk } = await sampleRun([[reply("a"), result("t1.0", "x".repeat(70_000))]]);
  const [name] = await disk.list(`${RUN_FOLDER}/blobs`);
  const path = `${RUN_FOLDER}/blobs/${name}`;
  const changed = disk.crash(KEPT);
  changed.flipBit(path, 100);
  await assert.rejects(reopen(changed), {
    code: "JOURNAL_DAMAGED",
    exitCode: 7,
    message: /other content/,
  });
  const missing = disk.crash(KEPT);
  await missing.remove(path);
  await assert.rejects(reopen(missing), {
    code: "JOURNAL_DAMAGED",
    exitCode: 7,
    message: /is missing/,
  });
});

Deno.test("[A15] of two that open a run at once one is refused, naming the other", async () => {
  const { disk } = await sampleRun();
  const clock = new VirtualClock();
  const first = await openJournal(disk, RUN_FOLDER, taker(clock, 11));
  const before = clock.monotonic();
  await assert.rejects(clock.run(openJournal(disk, RUN_FOLDER, taker(clock, 22))), {
    code: "INVALID",
    exitCode: 2,
    message: /held by process 11/,
  });
  assert.ok(clock.monotonic() - before >= 1_000);
  await fill(first.journal, [[reply("x", 3)]]);
  await first.journal.close();
  assert.deepEqual((await reopen(disk)).entries.map(({ seq }) => seq), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

Deno.test("[A19] the second opener reads what the first one wrote meanwhile", async () => {
  const { disk } = await sampleRun();
  const clock = new VirtualClock();
  const first = await openJournal(disk, RUN_FOLDER, taker(clock, 11));
  const waiting = openJournal(disk, RUN_FOLDER, taker(clock, 22));
  await fill(first.journal, [[reply("late", 3)]]);
  await first.journal.close();
  const second = await clock.run(waiting);
  const entries: Entry[] = [];
  await second.replay({ entry: (entry) => void entries.push(entry) });
  assert.equal(entries.length, 9);
});

Deno.test("[A31] [C25] after the holder's death the run opens at once, whatever its lock file says", async () => {
  const { disk } = await sampleRun();
  await openJournal(disk, RUN_FOLDER, taker(new VirtualClock(), 11));
  const opened = await reopen(disk.kill());
  assert.equal(opened.entries.length, 8);
});

Deno.test("a refused opening frees the lease", async () => {
  const { disk, bytes } = await sampleRun();
  const damaged = bytes.slice();
  damaged[40] = 0;
  const found = withJournal(disk, damaged);
  await assert.rejects(reopen(found), { code: "JOURNAL_DAMAGED" });
  const lock = await found.open(`${RUN_FOLDER}/lock`);
  assert.equal(lock.tryLock("exclusive"), true);
});

Deno.test("opening on a full disk says so, and opens once there is space", async () => {
  const { disk } = await sampleRun();
  disk.plan = { fail: { at: disk.operations.length + 1, fault: "full", only: "overwrite" } };
  await assert.rejects(reopen(disk), { code: "RESOURCE_EXHAUSTED" });
  assert.equal((await reopen(disk)).entries.length, 8);
});

Deno.test("a line of any length is read", async () => {
  const { disk, entries } = await sampleRun([
    [reply("a"), { ...reply("b"), message: Array.from({ length: 60_000 }, (_, n) => `item ${n}`) }],
    [reply("c", 2)],
  ]);
  assert.ok(disk.peek(JOURNAL).length > 700_000);
  assert.deepEqual((await reopen(disk)).entries, entries);
});

Deno.test("entries of several lives say what was durable when they were made", async () => {
  const { disk } = await sampleRun();
  const second = await reopen(disk);
  second.journal.append(reply("x", 3));
  await second.journal.close();
  const third = await reopen(disk);
  third.journal.append(reply("y", 4));
  await third.journal.close();
  const lines = new TextDecoder().decode(disk.peek(JOURNAL)).trimEnd().split("\n");
  const synced = lines.map((line) => decodeLine(new TextEncoder().encode(line)).entry.synced);
  assert.deepEqual(synced, [0, 0, 2, 2, 2, 2, 6, 6, 8, 9]);
});

Deno.test("replay waits for a visitor that waits", async () => {
  const { disk } = await sampleRun();
  const opened = await openJournal(disk, RUN_FOLDER, taker());
  let inside = 0;
  let most = 0;
  await opened.replay({
    entry: async () => {
      most = Math.max(most, inside += 1);
      await Promise.resolve();
      inside -= 1;
    },
  });
  assert.equal(most, 1);
});

Deno.test("a line that says its own seq was durable when it was made is damage", async () => {
  const { disk, bytes } = await sampleRun();
  const { bytes: line } = encodeLine({ seq: 9, ts: 1, synced: 9 }, reply("x", 3), {});
  await assert.rejects(reopen(withJournal(disk, concat([bytes, line]))), {
    code: "JOURNAL_DAMAGED",
  });
});

function concat(parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}
