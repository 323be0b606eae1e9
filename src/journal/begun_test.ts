import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import {
  JOURNAL,
  makeRun,
  reopen,
  RUN_FOLDER,
  sampleBatches,
  taker,
} from "../../tests/doubles/sample_entries.ts";
import { signOfLife } from "./begun.ts";
import { createJournal } from "./open.ts";
import { readRun } from "./read.ts";
import { verifyRun } from "./verify.ts";

async function put(disk: FaultyDisk, path: string, text: string): Promise<void> {
  await disk.makeFolder(path.slice(0, path.lastIndexOf("/")), 0o700);
  const file = await disk.open(path, { create: true });
  file.append(new TextEncoder().encode(text));
  file.close();
}

const SIGNS: [what: string, make: (disk: FaultyDisk) => Promise<void>][] = [
  ["a checkpoint", (disk) => put(disk, `${RUN_FOLDER}/checkpoint.json`, "{}")],
  ["records that were set aside", (disk) => put(disk, `${RUN_FOLDER}/journal.cut-3-99`, "x")],
  ["logs of its servers", (disk) => put(disk, `${RUN_FOLDER}/mounts/world.stderr.log`, "")],
  ["traced calls", (disk) => put(disk, `${RUN_FOLDER}/trace.jsonl`, "{}\n")],
  ["traced calls", (disk) => put(disk, `${RUN_FOLDER}/trace.jsonl.1`, "{}\n")],
];

Deno.test("an emptied journal of a run that had begun is damage, not a run that never started", async () => {
  for (const [what, make] of SIGNS) {
    for (const left of ["", "garbage without a record"]) {
      const disk = new FaultyDisk();
      await makeRun(disk, sampleBatches());
      await disk.remove(`${RUN_FOLDER}/blobs`, { recursive: true });
      await make(disk);
      disk.damage(JOURNAL, () => new TextEncoder().encode(left));
      assert.equal(await signOfLife(disk, RUN_FOLDER), what);
      await assert.rejects(reopen(disk), {
        code: "JOURNAL_DAMAGED",
        exitCode: 7,
        message: new RegExp(`no good record, but the run had begun: there are ${what}`),
      });
      assert.equal(new TextDecoder().decode(disk.peek(JOURNAL)), left, "it is left as it was");
      await assert.rejects(readRun(disk, RUN_FOLDER, () => {}), { code: "JOURNAL_DAMAGED" });
      const { ok, problems } = await verifyRun(disk, RUN_FOLDER);
      assert.equal(ok, false);
      assert.ok(problems.some(({ kind }) => kind === "empty"), what);
      assert.ok(problems.every(({ kind }) => kind !== "torn"), "resume won't set it aside");
    }
  }
});

Deno.test("a run that died before its start was durable has left no such sign", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  await journal.putBlob(new TextEncoder().encode("manifest"));
  await journal.putBlob(new TextEncoder().encode("intent"));
  await put(disk, `${RUN_FOLDER}/trace.jsonl`, "");
  await put(disk, `${RUN_FOLDER}/journal.cut-1-99`, "a start that was torn");
  await journal.close();
  assert.equal(await signOfLife(disk, RUN_FOLDER), undefined);
  await (await reopen(disk)).journal.close();
  assert.equal((await readRun(disk, RUN_FOLDER, () => {})).lastSeq, 0);
  assert.equal((await verifyRun(disk, RUN_FOLDER)).ok, true);
});

Deno.test("reading needs no right to write", async () => {
  const disk = new FaultyDisk();
  await makeRun(disk, sampleBatches());
  disk.isReadOnly = true;
  assert.equal((await verifyRun(disk, RUN_FOLDER)).ok, true);
});
