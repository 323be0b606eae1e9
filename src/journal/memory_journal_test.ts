import assert from "node:assert/strict";
import { SysError } from "../base/errors.ts";
import { intent, reply, RUN_ID } from "../../tests/doubles/sample_entries.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { testJournal } from "../../tests/suites/journal_suite.ts";
import { MemoryJournal } from "./memory_journal.ts";

// deno-lint-ignore require-await -- the suite's form
testJournal("memory journal", async () => {
  const clock = new VirtualClock();
  const journal = new MemoryJournal({ runId: RUN_ID, clock });
  return {
    journal,
    clock,
    breakWriting: () => journal.fail(new SysError("RESOURCE_EXHAUSTED", "No space left")),
    readBack: async () => {
      await journal.close();
      return journal.entries.slice(0, journal.durableSeq);
    },
  };
});

Deno.test("a memory journal goes on after the entries it was given, which are durable", async () => {
  const clock = new VirtualClock();
  const first = new MemoryJournal({ runId: RUN_ID, clock });
  first.append(reply("a"));
  await first.close();
  const second = new MemoryJournal({ runId: RUN_ID, clock, entries: first.entries });
  assert.equal(second.durableSeq, 1);
  const entry = second.append(intent("t1.0"));
  assert.deepEqual([entry.seq, entry.synced], [2, 1]);
  assert.equal(first.entries.length, 1);
});

Deno.test("a memory journal's failure keeps a barrier that waits from succeeding", async () => {
  const journal = new MemoryJournal({ runId: RUN_ID, clock: new VirtualClock() });
  journal.append(reply("a"));
  const waiting = journal.barrier();
  journal.fail(new Error("gone"));
  await assert.rejects(waiting, { code: "JOURNAL_DAMAGED", exitCode: 7 });
  assert.equal(journal.durableSeq, 0);
});

Deno.test("a memory journal keeps the last checkpoint, as it was", async () => {
  const journal = new MemoryJournal({ runId: RUN_ID, clock: new VirtualClock() });
  journal.append(reply("a"));
  await journal.barrier();
  const state = { turn: 1 };
  await journal.saveCheckpoint({ versions: { agent: 1 }, seq: 1, state });
  state.turn = 2;
  assert.deepEqual(journal.checkpoint, { versions: { agent: 1 }, seq: 1, state: { turn: 1 } });
});
