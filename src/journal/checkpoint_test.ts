import assert from "node:assert/strict";
import type { Json } from "../base/json.ts";
import { FaultyDisk, KEPT, LOST, seeded } from "../../tests/doubles/faulty_disk.ts";
import {
  fill,
  intent,
  JOURNAL,
  reopen,
  reply,
  result,
  RUN_FOLDER,
  taker,
} from "../../tests/doubles/sample_entries.ts";
import type { Checkpoint } from "./journal.ts";
import { createJournal, openJournal } from "./open.ts";

const VERSIONS = { agent: 3, gate: 1 };
const STATE: Json = { turn: 2, text: "grüße 🎉" };
const PATH = `${RUN_FOLDER}/checkpoint.json`;

/** A run of five entries with a checkpoint after the third. */
async function runWithCheckpoint() {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  await fill(journal, [[reply("a"), intent("t1.0")], [result("t1.0", "x")]]);
  await journal.saveCheckpoint({ versions: VERSIONS, seq: 3, state: STATE });
  await fill(journal, [[reply("b", 2), intent("t2.0")]]);
  await journal.close();
  return disk;
}

/** What a replay gives with these versions. */
async function replayed(disk: FaultyDisk, versions?: { [reducer: string]: number }) {
  const opened = await openJournal(disk, RUN_FOLDER, taker());
  const seqs: number[] = [];
  const checkpoints: Checkpoint[] = [];
  await opened.replay(
    {
      checkpoint: (checkpoint) => {
        assert.deepEqual(seqs, [], "the state comes before any entry");
        checkpoints.push(checkpoint);
      },
      entry: ({ seq }) => void seqs.push(seq),
    },
    versions === undefined ? {} : { versions },
  );
  await opened.journal.close();
  return { seqs, checkpoint: checkpoints[0], lastSeq: opened.journal.lastSeq };
}

const ALL = { seqs: [1, 2, 3, 4, 5], checkpoint: undefined, lastSeq: 5 };

Deno.test("a checkpoint that fits gives its state and only the entries after it", async () => {
  const disk = await runWithCheckpoint();
  assert.deepEqual(await replayed(disk.crash(LOST), VERSIONS), {
    seqs: [4, 5],
    checkpoint: { versions: VERSIONS, seq: 3, state: STATE },
    lastSeq: 5,
  });
});

Deno.test("a checkpoint of other reducers is ignored", async () => {
  const disk = await runWithCheckpoint();
  for (
    const versions of [{ agent: 4, gate: 1 }, { agent: 3 }, { ...VERSIONS, more: 1 }, undefined]
  ) {
    assert.deepEqual(await replayed(disk.crash(KEPT), versions), ALL);
  }
});

Deno.test("a checkpoint whose bytes were changed is ignored, whichever bit it was", async () => {
  const disk = await runWithCheckpoint();
  const length = disk.peek(PATH).length;
  for (let offset = 0; offset < length - 1; offset += 1) {
    const flipped = disk.crash(KEPT);
    flipped.flipBit(PATH, offset, offset % 8);
    assert.deepEqual(await replayed(flipped, VERSIONS), ALL, `byte ${offset}`);
  }
  for (const content of ["", "{}", "null\n", "\0\0\0\0"]) {
    const changed = disk.crash(KEPT);
    changed.damage(PATH, () => new TextEncoder().encode(content));
    assert.deepEqual(await replayed(changed, VERSIONS), ALL);
  }
});

Deno.test("a checkpoint of another journal, or of a longer one, is ignored", async () => {
  const disk = await runWithCheckpoint();
  const journal = disk.peek(JOURNAL);
  const second = journal.indexOf(10) + 1;
  const shorter = disk.crash(KEPT);
  shorter.damage(JOURNAL, () => journal.slice(0, second));
  assert.deepEqual(await replayed(shorter, VERSIONS), {
    seqs: [1],
    checkpoint: undefined,
    lastSeq: 1,
  });
});

Deno.test("damage before a checkpoint isn't hidden by it", async () => {
  const disk = await runWithCheckpoint();
  disk.flipBit(JOURNAL, 50);
  await assert.rejects(replayed(disk, VERSIONS), {
    code: "JOURNAL_DAMAGED",
    message: /record 1 \(offset 0\)/,
  });
});

Deno.test("a torn tail after a checkpoint is cut, with the right record number", async () => {
  const disk = await runWithCheckpoint();
  disk.damage(JOURNAL, (bytes) => bytes.slice(0, -10));
  const opened = await reopen(disk);
  assert.match(opened.notices[0] ?? "", /damaged at record 5 /);
  await opened.journal.close();
  assert.deepEqual((await replayed(disk, VERSIONS)).seqs, [4]);
});

Deno.test("a run goes on after a checkpoint, and makes the next one", async () => {
  const disk = await runWithCheckpoint();
  const opened = await reopen(disk);
  await fill(opened.journal, [[result("t2.0", "y")]]);
  await opened.journal.saveCheckpoint({ versions: VERSIONS, seq: 6, state: 6 });
  await fill(opened.journal, [[reply("c", 3)]]);
  await opened.journal.saveCheckpoint({ versions: VERSIONS, seq: 6, state: "again" });
  await opened.journal.close();
  const { seqs, checkpoint } = await replayed(disk.crash(LOST), VERSIONS);
  assert.deepEqual([seqs, checkpoint?.state], [[7], "again"]);
});

Deno.test("two checkpoints at once: the second is refused", async () => {
  const disk = await runWithCheckpoint();
  const { journal } = await reopen(disk);
  const first = journal.saveCheckpoint({ versions: VERSIONS, seq: 5, state: 1 });
  await assert.rejects(journal.saveCheckpoint({ versions: VERSIONS, seq: 5, state: 2 }), {
    code: "INVALID",
  });
  await first;
  await journal.close();
});

Deno.test("closing waits for a checkpoint that is being written", async () => {
  const disk = await runWithCheckpoint();
  const { journal } = await reopen(disk);
  void journal.saveCheckpoint({ versions: VERSIONS, seq: 5, state: "last" });
  await journal.close();
  assert.equal((await replayed(disk.crash(LOST), VERSIONS)).checkpoint?.state, "last");
});

Deno.test("a crash at every operation of a checkpoint leaves the old state or the new one", async () => {
  const base = await runWithCheckpoint();
  const counting = base.crash(KEPT);
  const opened = await reopen(counting);
  const from = counting.operations.length;
  await opened.journal.saveCheckpoint({ versions: VERSIONS, seq: 5, state: "new" });
  assert.ok(counting.operations.length > from);
  for (let at = from + 1; at <= counting.operations.length; at += 1) {
    for (const when of ["before", "after"] as const) {
      const disk = base.crash(KEPT, { stop: { at, when } });
      const { journal } = await reopen(disk);
      void journal.saveCheckpoint({ versions: VERSIONS, seq: 5, state: "new" });
      await disk.whenStopped;
      for (const choice of [LOST, KEPT, seeded(at)]) {
        const { seqs, checkpoint } = await replayed(disk.crash(choice), VERSIONS);
        const isNew = checkpoint?.state === "new";
        assert.deepEqual(checkpoint?.state, isNew ? "new" : STATE);
        assert.deepEqual(seqs, isNew ? [] : [4, 5]);
      }
    }
  }
});

Deno.test("a checkpoint is due by what the journal was made with, else after a mebibyte", async () => {
  for (const [growth, isDue] of [[undefined, false], [100, true]] as const) {
    const disk = new FaultyDisk();
    const options = growth === undefined ? {} : { checkpointGrowthBytes: growth };
    const made = await createJournal(disk, RUN_FOLDER, { ...taker(), ...options });
    await fill(made, [[reply("one")]]);
    assert.equal(made.checkpointDue, isDue);
    await made.close();
    const opened = await openJournal(disk, RUN_FOLDER, { ...taker(), ...options });
    assert.equal(opened.journal.checkpointDue, isDue);
    await opened.journal.close();
  }
});
