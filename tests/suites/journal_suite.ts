/** What every `Journal` has to do; run for the one in files and the one in memory. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { Entry } from "../../src/journal/entry.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { intent, reply, result, RUN_ID } from "../doubles/sample_entries.ts";
import type { VirtualClock } from "../doubles/virtual_clock.ts";

/** An empty journal of run `RUN_ID`, and what a test needs around it. */
export interface JournalUnderTest {
  journal: Journal;
  clock: VirtualClock;
  /** From here on writing fails with RESOURCE_EXHAUSTED. */
  breakWriting(): void;
  /** All durable entries as a later reader finds them; the journal is closed. */
  readBack(): Promise<Entry[]>;
  /** Called at the end of each test. */
  clean?(): Promise<void>;
}

type Case = [name: string, check: (test: JournalUnderTest) => Promise<void>];

const CASES: Case[] = [
  ["gives seqs at once, from 1 without gaps, and the time", async ({ journal, clock }) => {
    assert.equal(journal.runId, RUN_ID);
    assert.equal(journal.lastSeq, 0);
    const first = journal.append(reply("a"));
    await clock.advance(5);
    const second = journal.append(intent("t1.0"));
    assert.deepEqual([first.v, first.seq, second.seq, journal.lastSeq], [1, 1, 2, 2]);
    assert.equal(second.ts - first.ts, 5);
    await journal.close();
  }],
  ["knows as durable only what a barrier has covered", async ({ journal }) => {
    journal.append(reply("a"));
    const waiting = journal.barrier();
    const second = journal.append(intent("t1.0"));
    assert.equal(journal.durableSeq, 0);
    assert.equal(second.synced, 0);
    await waiting;
    assert.ok(journal.durableSeq >= 1);
    await journal.barrier(2);
    assert.equal(journal.durableSeq, 2);
    assert.equal(journal.append(result("t1.0", "x")).synced, 2);
    await journal.close();
  }],
  ["a barrier for what is durable already, or for nothing, resolves", async ({ journal }) => {
    await journal.barrier();
    await journal.barrier(0);
    journal.append(reply("a"));
    await journal.barrier();
    await journal.barrier(1);
    await journal.close();
  }],
  ["a barrier for an entry that doesn't exist is refused", async ({ journal }) => {
    await assert.rejects(journal.barrier(1), { code: "INTERNAL" });
    await journal.close();
  }],
  ["many waiters are all served", async ({ journal }) => {
    const order: number[] = [];
    await Promise.all(Array.from({ length: 50 }, async (_, index) => {
      for (let round = 0; round < 3; round += 1) {
        const entry = journal.append(intent(`t${index}.${round}`));
        await journal.barrier(entry.seq);
        assert.ok(journal.durableSeq >= entry.seq);
        order.push(entry.seq);
      }
    }));
    assert.equal(new Set(order).size, 150);
    assert.equal(journal.durableSeq, 150);
    await journal.close();
  }],
  ["gives back what was appended, to the last value", async ({ journal, readBack }) => {
    const entries = [
      journal.append(reply("umlauts äöü, emoji 🎉, line\nbreak, \u0000 and \u2028")),
      journal.append(intent("t1.0")),
      journal.append(result("t1.0", "x".repeat(60_000))),
    ];
    await journal.barrier();
    assert.deepEqual(await readBack(), entries);
  }],
  ["keeps long strings as blobs and folds them whole", async ({ journal, readBack }) => {
    const long = "äß🎉".repeat(30_000);
    const preparing = journal.prepare(result("t1.0", long));
    assert.ok(preparing instanceof Promise);
    const prepared = await preparing;
    assert.deepEqual(Object.keys(prepared.blobs), ["/content/0/text"]);
    const entry = journal.append(prepared);
    assert.ok(entry.type === "call.result" && entry.outcome === "ok");
    assert.deepEqual(entry.content, [{ type: "text", text: long }]);
    const [ref] = Object.values(prepared.blobs);
    assert.ok(ref !== undefined);
    assert.equal(new TextDecoder().decode(await journal.getBlob(ref)), long);
    await journal.barrier();
    assert.deepEqual(await readBack(), [entry]);
  }],
  ["prepares at once what holds no long string", async ({ journal }) => {
    const body = result("t1.0", "short");
    const prepared = journal.prepare(body);
    assert.ok(!(prepared instanceof Promise));
    assert.deepEqual(prepared, { body, blobs: {} });
    await journal.close();
  }],
  ["[D11] lone surrogates never get in, live or read back", async ({ journal, readBack }) => {
    const entry = journal.append(result("t1.0", "broken \ud83d here, not \\ud83d here"));
    assert.ok(entry.type === "call.result" && entry.outcome === "ok");
    assert.deepEqual(entry.content, [{
      type: "text",
      text: "broken \ufffd here, not \\ud83d here",
    }]);
    const long = journal.append(
      await journal.prepare(result("t1.1", `${"y".repeat(70_000)}\udc00`)),
    );
    assert.ok(long.type === "call.result" && long.outcome === "ok");
    await journal.barrier();
    assert.deepEqual(await readBack(), [entry, long]);
  }],
  ["keeps blobs by their hash, once", async ({ journal }) => {
    const content = new TextEncoder().encode("some content");
    const [one, two] = await Promise.all([journal.putBlob(content), journal.putBlob(content)]);
    assert.deepEqual(one, two);
    assert.equal(one.bytes, content.length);
    assert.deepEqual(await journal.getBlob(one), content);
    await assert.rejects(journal.getBlob({ sha256: "f".repeat(64), bytes: 1 }), {
      code: "JOURNAL_DAMAGED",
      exitCode: 7,
    });
    await journal.close();
  }],
  [
    "[A21] the first failure ends it: no barrier, append or blob succeeds any more",
    async (test) => {
      const { journal } = test;
      journal.append(reply("a"));
      await journal.barrier();
      test.breakWriting();
      let failed: unknown;
      try {
        journal.append(intent("t1.0"));
        await journal.barrier();
      } catch (thrown) {
        failed = thrown;
      }
      assert.ok(failed instanceof SysError);
      assert.equal(failed.code, "RESOURCE_EXHAUSTED");
      assert.equal(failed.exitCode, 7);
      assert.equal(journal.failure, failed);
      assert.equal(journal.durableSeq, 1);
      await assert.rejects(journal.barrier(), failed);
      await assert.rejects(journal.barrier(1), failed);
      assert.throws(() => journal.append(intent("t1.1")), failed);
      await assert.rejects(journal.putBlob(new Uint8Array(1)), failed);
      await assert.rejects(journal.saveCheckpoint({ versions: {}, seq: 1, state: null }), failed);
      assert.equal(journal.checkpointDue, false);
      await journal.close();
    },
  ],
  ["a checkpoint is due after 1 MiB, then after as much again as there is", async ({ journal }) => {
    const versions = { agent: 1 };
    const grow = async (bytes: number) => {
      for (let sum = 0; sum < bytes; sum += 60_000) journal.append(reply("x".repeat(60_000)));
      await journal.barrier();
    };
    await grow(900_000);
    assert.equal(journal.checkpointDue, false);
    await grow(200_000);
    assert.equal(journal.checkpointDue, true);
    await journal.saveCheckpoint({ versions, seq: journal.lastSeq, state: {} });
    assert.equal(journal.checkpointDue, false);
    await grow(900_000);
    assert.equal(journal.checkpointDue, false);
    await grow(300_000);
    assert.equal(journal.checkpointDue, true);
    await journal.saveCheckpoint({ versions, seq: journal.lastSeq, state: {} });
    await grow(1_500_000);
    assert.equal(journal.checkpointDue, false);
    await journal.close();
  }],
  ["a checkpoint of what isn't durable is refused", async ({ journal }) => {
    journal.append(reply("a"));
    const checkpoint = { versions: {}, seq: 1, state: null };
    await assert.rejects(journal.saveCheckpoint(checkpoint), { code: "INTERNAL" });
    await journal.barrier();
    await journal.saveCheckpoint(checkpoint);
    await journal.close();
  }],
  ["closing makes durable what was appended; then nothing is taken", async (test) => {
    const { journal, readBack } = test;
    const entry = journal.append(reply("last"));
    await journal.close();
    await journal.close();
    assert.throws(() => journal.append(reply("too late")), { code: "INTERNAL" });
    await journal.barrier(1);
    assert.deepEqual(await readBack(), [entry]);
  }],
];

/** Registers the suite for one kind of journal. */
export function testJournal(kind: string, make: () => Promise<JournalUnderTest>): void {
  for (const [name, check] of CASES) {
    Deno.test(`${kind}: ${name}`, async () => {
      const test = await make();
      try {
        await check(test);
      } finally {
        await test.clean?.();
      }
    });
  }
}
