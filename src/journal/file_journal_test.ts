import assert from "node:assert/strict";
import { FaultyDisk, KEPT, LOST } from "../../tests/doubles/faulty_disk.ts";
import {
  fill,
  intent,
  JOURNAL,
  reopen,
  reply,
  result,
  RUN_FOLDER,
  sampleBatches,
  taker,
} from "../../tests/doubles/sample_entries.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { testJournal } from "../../tests/suites/journal_suite.ts";
import { createJournal } from "./open.ts";

testJournal("file journal", async () => {
  const disk = new FaultyDisk();
  const clock = new VirtualClock();
  const journal = await createJournal(disk, RUN_FOLDER, taker(clock));
  return {
    journal,
    clock,
    breakWriting: () => {
      disk.plan = { fail: { at: disk.operations.length + 1, fault: "full", forGood: true } };
    },
    readBack: async () => {
      await journal.close();
      const opened = await reopen(disk.crash(LOST));
      await opened.journal.close();
      return opened.entries;
    },
  };
});

async function freshJournal() {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  const count = (name: string) =>
    disk.operations.filter((operation) => operation.name === name && operation.path === JOURNAL)
      .length;
  return { disk, journal, count };
}

Deno.test("entries of one go leave as one write, and their waiters share one sync", async () => {
  const { journal, count } = await freshJournal();
  const waits: Promise<void>[] = [];
  for (let index = 0; index < 20; index += 1) {
    const entry = journal.append(intent(`t1.${index}`));
    waits.push(journal.barrier(entry.seq));
  }
  await Promise.all(waits);
  assert.equal(count("append"), 1);
  assert.equal(count("sync"), 1);
  await journal.close();
});

Deno.test("entries without a waiter are written, and not synced", async () => {
  const { journal, count } = await freshJournal();
  journal.append(reply("a"));
  await settle();
  assert.equal(count("append"), 1);
  assert.equal(count("sync"), 0);
  await journal.close();
  assert.equal(count("sync"), 1);
});

Deno.test("one sync is in flight at most; what comes meanwhile rides with the next", async () => {
  const { disk, journal, count } = await freshJournal();
  const release = disk.holdSyncs();
  journal.append(reply("a"));
  const first = journal.barrier();
  await settle();
  const later = [1, 2, 3].map((index) => {
    const entry = journal.append(intent(`t1.${index}`));
    return journal.barrier(entry.seq);
  });
  await settle();
  assert.equal(count("append"), 2);
  assert.equal(count("sync"), 1);
  assert.equal(journal.durableSeq, 0);
  release();
  await first;
  assert.equal(journal.durableSeq, 1);
  await Promise.all(later);
  assert.equal(count("sync"), 2);
  await journal.close();
});

Deno.test("what a barrier promised is there after a crash, at every operation", async () => {
  const counting = new FaultyDisk();
  const whole = await createJournal(counting, RUN_FOLDER, taker());
  const madeBy = counting.operations.length;
  await fill(whole, sampleBatches());
  const operations = counting.operations.length;
  for (let at = madeBy + 1; at <= operations; at += 1) {
    for (const when of ["before", "after"] as const) {
      const disk = new FaultyDisk({ stop: { at, when } });
      const journal = await createJournal(disk, RUN_FOLDER, taker());
      void fill(journal, sampleBatches()).catch(() => {});
      await disk.whenStopped;
      for (const choice of [LOST, KEPT]) {
        const { entries, journal: again } = await reopen(disk.crash(choice));
        assert.ok(entries.length >= journal.durableSeq, `${when} ${at}`);
        assert.equal(again.lastSeq, entries.length);
        assert.equal(again.durableSeq, entries.length);
        await again.close();
      }
    }
  }
});

Deno.test("a failed sync poisons: bytes that the system dropped are never called durable", async () => {
  const { disk, journal } = await freshJournal();
  await fill(journal, [[reply("a")]]);
  journal.append(intent("t1.0"));
  disk.plan = { fail: { at: disk.operations.length + 2, fault: "broken", only: "sync" } };
  await assert.rejects(journal.barrier(), {
    code: "JOURNAL_DAMAGED",
    exitCode: 7,
    syscall: "sync",
  });
  assert.equal(journal.durableSeq, 1);
  // The disk works again; the journal must not try.
  const before = disk.operations.length;
  assert.throws(() => journal.append(result("t1.0", "x")), { code: "JOURNAL_DAMAGED" });
  await journal.close();
  assert.deepEqual(disk.operations.slice(before).map(({ name }) => name), ["truncate"]);
});

Deno.test("a failure reaches those who wait for a sync in flight", async () => {
  const { disk, journal } = await freshJournal();
  const release = disk.holdSyncs();
  journal.append(reply("a"));
  const first = journal.barrier();
  await settle();
  disk.plan = { fail: { at: disk.operations.length + 1, fault: "read-only", forGood: true } };
  journal.append(intent("t1.0"));
  await assert.rejects(first, { code: "JOURNAL_DAMAGED" });
  await assert.rejects(journal.barrier(), { code: "JOURNAL_DAMAGED" });
  release();
  await journal.close();
});

Deno.test("[A21] a full disk stops the journal; with space again the run goes on without false intents", async () => {
  const { disk, journal } = await freshJournal();
  await fill(journal, [[reply("a")]]);
  const size = disk.peek(JOURNAL).length;
  disk.plan = { fail: { at: disk.operations.length + 1, fault: "full", only: "append" } };
  journal.append(intent("t1.0"));
  journal.append(intent("t1.1"));
  await assert.rejects(journal.barrier(), { code: "RESOURCE_EXHAUSTED", exitCode: 7 });
  assert.ok(disk.peek(JOURNAL).length > size);
  await journal.close();
  // What never was reported durable is taken back, so no call that never left looks like one that may have.
  assert.equal(disk.peek(JOURNAL).length, size);
  const { entries, notices, journal: again } = await reopen(disk);
  assert.deepEqual([entries.length, notices], [1, []]);
  await fill(again, [[intent("t1.0")]]);
  await again.close();
});

Deno.test("[A21] after a crash on a full disk the half-written batch is a torn tail", async () => {
  const { disk, journal } = await freshJournal();
  await fill(journal, [[reply("a")]]);
  disk.plan = { fail: { at: disk.operations.length + 1, fault: "full", only: "append" } };
  journal.append(intent("t1.0"));
  await assert.rejects(journal.barrier(), { code: "RESOURCE_EXHAUSTED" });
  const { entries, notices } = await reopen(disk.crash(KEPT));
  assert.equal(entries.length, 1);
  assert.match(notices[0] ?? "", /damaged at record 2 .* set aside/);
});

Deno.test("[A19] a holder whose lock file was replaced writes nothing more", async () => {
  const { disk, journal } = await freshJournal();
  await fill(journal, [[reply("a")]]);
  await disk.remove(`${RUN_FOLDER}/lock`);
  const second = await reopen(disk);
  journal.append(intent("stale"));
  await assert.rejects(journal.barrier(), {
    code: "JOURNAL_DAMAGED",
    exitCode: 7,
    message: /was replaced/,
  });
  await assert.rejects(journal.putBlob(new Uint8Array(3)), { code: "JOURNAL_DAMAGED" });
  await fill(second.journal, [[intent("t1.0")]]);
  await journal.close();
  await second.journal.close();
  const { entries } = await reopen(disk);
  assert.deepEqual(entries.map((entry) => entry.seq), [1, 2]);
});

Deno.test("[A19] a holder whose lock file was replaced keeps no blob and no checkpoint either", async () => {
  for (const isBlob of [true, false]) {
    const { disk, journal } = await freshJournal();
    await fill(journal, [[reply("a")]]);
    await disk.remove(`${RUN_FOLDER}/lock`);
    const operations = disk.operations.length;
    const work: Promise<unknown> = isBlob
      ? journal.putBlob(new Uint8Array(3))
      : journal.saveCheckpoint({ versions: {}, seq: 1, state: null });
    await assert.rejects(work, { code: "JOURNAL_DAMAGED", message: /was replaced/ });
    assert.throws(() => journal.append(intent("stale")), { code: "JOURNAL_DAMAGED" });
    assert.equal(disk.operations.length, operations);
    await journal.close();
  }
});

Deno.test("[A19] a holder whose journal file was replaced doesn't call durable what has no name", async () => {
  const { disk, journal } = await freshJournal();
  await fill(journal, [[reply("a")]]);
  await disk.rename(JOURNAL, `${JOURNAL}.bak`);
  journal.append(intent("t1.0"));
  await assert.rejects(journal.barrier(), { code: "JOURNAL_DAMAGED", message: /was replaced/ });
  await journal.close();
});

Deno.test("[A19] a holder whose whole folder was replaced writes nothing more", async () => {
  const { disk, journal } = await freshJournal();
  await fill(journal, [[reply("a")]]);
  await disk.rename(RUN_FOLDER, `${RUN_FOLDER}.old`);
  const second = await createJournal(disk, RUN_FOLDER, taker());
  journal.append(intent("stale"));
  await assert.rejects(journal.barrier(), { code: "JOURNAL_DAMAGED", message: /was replaced/ });
  await assert.rejects(journal.saveCheckpoint({ versions: {}, seq: 1, state: null }));
  assert.equal(second.lastSeq, 0);
  await second.close();
});

Deno.test("a failed blob poisons: its entry could never be written", async () => {
  const { disk, journal } = await freshJournal();
  disk.plan = { fail: { at: disk.operations.length + 2, fault: "full" } };
  const preparing = Promise.resolve(journal.prepare(result("t1.0", "x".repeat(70_000))));
  await assert.rejects(preparing, { code: "RESOURCE_EXHAUSTED", exitCode: 7 });
  await assert.rejects(journal.barrier(), { code: "RESOURCE_EXHAUSTED" });
  await journal.close();
});

Deno.test("a blob is durable before the entry that names it can be", async () => {
  const { disk, journal } = await freshJournal();
  const prepared = await journal.prepare(result("t1.0", "x".repeat(70_000)));
  assert.equal((await disk.crash(LOST).list(`${RUN_FOLDER}/blobs`)).length, 1);
  const entry = journal.append(prepared);
  await journal.barrier();
  assert.deepEqual((await reopen(disk.crash(LOST))).entries, [entry]);
});

Deno.test("a blob left by an earlier process is written anew, since it may not be durable", async () => {
  const { disk, journal } = await freshJournal();
  await fill(journal, [[reply("a")]]);
  await journal.prepare(result("t1.0", "x".repeat(70_000)));
  const [name] = await disk.list(`${RUN_FOLDER}/blobs`);
  // As after a crash that kept the name and lost the content.
  const found = disk.crash(KEPT);
  found.damage(`${RUN_FOLDER}/blobs/${name}`, () => new Uint8Array());
  const again = await reopen(found);
  const entry = again.journal.append(
    await again.journal.prepare(result("t1.0", "x".repeat(70_000))),
  );
  await again.journal.close();
  assert.deepEqual((await reopen(found.crash(LOST))).entries[1], entry);
});

Deno.test("a checkpoint that can't be written doesn't end the journal", async () => {
  const { disk, journal } = await freshJournal();
  await fill(journal, [[reply("a")]]);
  disk.plan = { fail: { at: disk.operations.length + 1, fault: "full" } };
  await assert.rejects(journal.saveCheckpoint({ versions: {}, seq: 1, state: null }), {
    code: "RESOURCE_EXHAUSTED",
  });
  await fill(journal, [[intent("t1.0")]]);
  assert.equal(journal.durableSeq, 2);
  await journal.close();
});

Deno.test("a journal that was cut, emptied or written to by someone else is poisoned before the next effect leaves", async () => {
  for (
    const change of [
      (bytes: Uint8Array) => bytes.slice(0, 300),
      () => new Uint8Array(),
      (bytes: Uint8Array) => new Uint8Array([...bytes, 10]),
    ]
  ) {
    const { disk, journal } = await freshJournal();
    for (let turn = 1; turn < 5; turn += 1) journal.append(intent(`t${turn}.1`));
    await journal.barrier();
    disk.damage(JOURNAL, change);
    const found = disk.peek(JOURNAL);
    const entry = journal.append(intent("t9.1"));
    await assert.rejects(journal.barrier(entry.seq), {
      code: "JOURNAL_DAMAGED",
      exitCode: 7,
      message: /changed by someone else: it has \d+ bytes where \d+ were written/,
    });
    assert.throws(() => journal.append(intent("t9.2")), { code: "JOURNAL_DAMAGED" });
    await journal.close();
    assert.deepEqual(disk.peek(JOURNAL), found, "what is found there is left as it is");
  }
});

Deno.test("what is cut away while it is synced is not durable", async () => {
  const { disk, journal } = await freshJournal();
  journal.append(intent("t1.1"));
  await journal.barrier();
  const release = disk.holdSyncs();
  const entry = journal.append(intent("t2.1"));
  const barrier = journal.barrier(entry.seq);
  await settle();
  disk.damage(JOURNAL, (bytes) => bytes.slice(0, 100));
  release();
  await assert.rejects(barrier, { code: "JOURNAL_DAMAGED" });
  assert.equal(journal.durableSeq, 1);
  await journal.close();
});
