/** Runs of many lives, each ended by a crash at some operation, on a disk that keeps some part of what was not synced: what a barrier promised is there, in order, for ever. */
import assert from "node:assert/strict";
import type { Entry, EntryBody } from "../src/journal/entry.ts";
import type { Journal } from "../src/journal/journal.ts";
import { createJournal, openJournal } from "../src/journal/mod.ts";
import { FaultyDisk, seeded } from "./doubles/faulty_disk.ts";
import { intent, reply, result, RUN_FOLDER, taker } from "./doubles/sample_entries.ts";
import { settle } from "./doubles/virtual_clock.ts";

const SEEDS = 150;
const LIVES = 6;
const VERSIONS = { count: 1 };

/** Whole numbers below `n`, the same for the same seed. */
function numbersOf(seed: number): (below: number) => number {
  const choice = seeded(seed);
  return (below) => choice.bytes("", below - 1);
}

function someBody(pick: (below: number) => number, name: string): EntryBody {
  switch (pick(4)) {
    case 0:
      return intent(name);
    case 1:
      return reply(name.repeat(1 + pick(300)));
    case 2:
      return result(name, "grüße 🎉".repeat(pick(60)));
    default:
      return result(name, pick(3) === 0 ? "x".repeat(70_000 + pick(1000)) : "short");
  }
}

/** What the journal itself said was durable, and all that was appended. */
interface Told {
  appended: Entry[];
  durableSeq: number;
}

async function live(journal: Journal, told: Told, pick: (below: number) => number): Promise<void> {
  for (let step = 0; step < 8; step += 1) {
    const batch = 1 + pick(3);
    for (let index = 0; index < batch; index += 1) {
      const body = someBody(pick, `t${step}.${index}`);
      told.appended.push(journal.append(await journal.prepare(body)));
    }
    if (pick(3) > 0) {
      await journal.barrier();
      told.durableSeq = journal.durableSeq;
      if (pick(4) === 0) {
        const seq = journal.durableSeq;
        await journal.saveCheckpoint({ versions: VERSIONS, seq, state: seq });
      }
    }
    if (pick(4) === 0) await Promise.resolve();
  }
}

/** Opens and folds: a checkpoint's state is the number of entries it stands for. */
async function take(disk: FaultyDisk, told: Told) {
  const opened = await openJournal(disk, RUN_FOLDER, taker());
  const entries: Entry[] = [];
  await opened.replay({ entry: (entry) => void entries.push(entry) });
  let count = 0;
  await opened.replay({
    checkpoint: ({ seq, state }) => {
      assert.equal(state, seq);
      count = seq;
    },
    entry: () => void (count += 1),
  }, { versions: VERSIONS });
  assert.equal(count, entries.length);
  assert.ok(entries.length >= told.durableSeq, "what was promised is there");
  assert.deepEqual(entries, told.appended.slice(0, entries.length));
  assert.equal(opened.cut, undefined, "a tear at the end never needs a person");
  return { journal: opened.journal, entries };
}

async function lives(seed: number): Promise<number> {
  const pick = numbersOf(seed);
  let disk = new FaultyDisk();
  const told: Told = { appended: [], durableSeq: 0 };
  await (await createJournal(disk, RUN_FOLDER, taker())).close();
  for (let life = 0; life < LIVES; life += 1) {
    disk = pick(4) === 0 ? disk.kill() : disk.crash(seeded(seed * 100 + life));
    const at = disk.operations.length + 1 + pick(40);
    disk.plan = { stop: { at, when: pick(2) === 0 ? "before" : "after" } };
    const work = (async () => {
      const { journal, entries } = await take(disk, told);
      told.appended = entries;
      told.durableSeq = entries.length;
      await live(journal, told, pick);
    })();
    const failure = work.then(() => undefined, (thrown: unknown) => thrown);
    const ended = await Promise.race([failure, disk.whenStopped]);
    if (!disk.isStopped) assert.equal(ended, undefined);
    disk.stop();
    await settle();
  }
  await take(disk.crash(seeded(seed)), told);
  return told.appended.length;
}

Deno.test("runs of many lives keep what was promised, whatever a crash leaves", async () => {
  let entries = 0;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    try {
      entries += await lives(seed);
    } catch (thrown) {
      throw new Error(`Seed ${seed}`, { cause: thrown });
    }
  }
  assert.ok(entries > SEEDS * 5, `${entries} entries`);
});
