import assert from "node:assert/strict";
import { result, RUN_FOLDER, taker } from "../../tests/doubles/sample_entries.ts";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { createJournal } from "../journal/mod.ts";
import { RunLog } from "./run_log.ts";

const DELAY_MS = 3;

async function freshLog() {
  const disk = new FaultyDisk();
  const clock = new VirtualClock();
  await disk.makeFolder("/state/runs", 0o700);
  const journal = await createJournal(disk, RUN_FOLDER, taker(clock));
  const folded: number[] = [];
  const log = new RunLog(journal, {
    clock,
    fold: (entry) => void folded.push(entry.seq),
    showDelayMs: DELAY_MS,
  });
  return { disk, clock, journal, log, folded };
}

Deno.test("an entry is folded at once, and the owner is woken once for a round of them", async () => {
  const { log, folded, clock } = await freshLog();
  let woken = 0;
  log.onEntries = () => woken += 1;
  log.append(result("a", "1"));
  log.append(result("b", "2"));
  assert.deepEqual(folded, [1, 2]);
  assert.equal(woken, 0);
  await clock.advance(0);
  assert.equal(woken, 1);
});

Deno.test("what the woken owner appends leaves in the same write", async () => {
  const { log, disk, clock } = await freshLog();
  const before = disk.operations.length;
  let more = true;
  log.onEntries = () => {
    if (more) log.append(result("b", "2"));
    more = false;
  };
  const entry = log.append(result("a", "1"));
  await clock.run(log.barrier(entry.seq));
  assert.deepEqual(disk.operations.slice(before).map(({ name }) => name), ["append", "sync"]);
  assert.equal(log.journal.durableSeq, 2);
});

Deno.test("what is shown waits for a sync that happens anyway, or after the delay for one of its own", async () => {
  const { log, clock, disk } = await freshLog();
  const shown: string[] = [];
  log.show(log.append(result("a", "1")).seq, () => shown.push("a"));
  await clock.advance(DELAY_MS - 1);
  assert.equal(shown.length, 0);
  await clock.run(log.barrier(log.append(result("b", "2")).seq));
  assert.deepEqual(shown, ["a"]);
  assert.equal(clock.pending, 0, "no sync of its own is needed any more");
  log.show(log.append(result("c", "3")).seq, () => shown.push("c"));
  const syncs = () => disk.operations.filter(({ name }) => name === "sync").length;
  const before = syncs();
  await clock.advance(DELAY_MS);
  assert.deepEqual(shown, ["a", "c"]);
  assert.equal(syncs(), before + 1);
});

Deno.test("shows come in the order of their entries, whatever order they were asked for in", async () => {
  const { log, clock } = await freshLog();
  const shown: string[] = [];
  const first = log.append(result("a", "1"));
  const second = log.append(result("b", "2"));
  log.show(second.seq, () => shown.push("b"));
  log.show(first.seq, () => shown.push("a"));
  await clock.advance(DELAY_MS);
  assert.deepEqual(shown, ["a", "b"]);
});

Deno.test("a show that comes while a sync is under way isn't shown by it, and isn't forgotten", async () => {
  const { log, clock, disk } = await freshLog();
  const shown: string[] = [];
  log.show(log.append(result("a", "1")).seq, () => shown.push("a"));
  const release = disk.holdSyncs();
  await clock.advance(DELAY_MS);
  log.show(log.append(result("b", "2")).seq, () => shown.push("b"));
  release();
  await clock.advance(0);
  assert.deepEqual(shown, ["a"]);
  await clock.advance(DELAY_MS);
  assert.deepEqual(shown, ["a", "b"]);
});

Deno.test("the first failure is told once, ends all waiting shows, and meets every later append", async () => {
  const { log, clock, disk } = await freshLog();
  const shown: string[] = [];
  const failures: string[] = [];
  log.onFailure = ({ code }) => failures.push(code);
  disk.plan = {
    fail: { at: disk.operations.length + 1, fault: "full", forGood: true },
  };
  log.show(log.append(result("a", "1")).seq, () => shown.push("a"));
  await clock.advance(DELAY_MS + 1);
  assert.deepEqual(failures, ["RESOURCE_EXHAUSTED"]);
  assert.equal(log.failure?.exitCode, 7);
  assert.throws(() => log.append(result("b", "2")), { code: "RESOURCE_EXHAUSTED" });
  await assert.rejects(log.barrier(1), { code: "RESOURCE_EXHAUSTED" });
  await assert.rejects(log.appendLarge(result("c", "x".repeat(100_000))), {
    code: "RESOURCE_EXHAUSTED",
  });
  assert.deepEqual([failures.length, shown.length, clock.pending], [1, 0, 0]);
});

Deno.test("long strings are durable in a blob before the entry that names them is appended", async () => {
  const { log, disk, clock } = await freshLog();
  const body = result("a", "x".repeat(100_000));
  const entry = await clock.run(log.appendLarge(body));
  assert.equal(
    entry.type === "call.result" && entry.outcome !== "unknown" && entry.content.length,
    1,
  );
  const [name] = await disk.list(`${RUN_FOLDER}/blobs`);
  assert.equal(disk.peekDurable(`${RUN_FOLDER}/blobs/${name}`)?.length, 100_000);
});
