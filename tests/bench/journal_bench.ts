/** What a durable entry costs, alone and among others, against the bare write and sync and against a row in SQLite (WAL, synchronous FULL), which is how the peers keep theirs; and what reading a long run costs. */
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "../../src/base/clock.ts";
import { disk } from "../../src/base/disk.ts";
import type { EntryBody } from "../../src/journal/entry.ts";
import { createJournal, openJournal, readEnds, verifyRun } from "../../src/journal/mod.ts";
import { RUN_ID } from "../doubles/sample_entries.ts";

const LONG_RUN_ENTRIES = 10_000;
const OPTIONS = { clock: systemClock, osPid: Deno.pid, instance: "bench" };

function replyOf(bytes: number): EntryBody {
  return {
    type: "model.reply",
    turn: 1,
    attempt: 1,
    message: { content: [{ type: "text", text: "x".repeat(bytes - 250) }] },
    usage: { input_tokens: 1, output_tokens: 1 },
    finish_reason: "stop",
    duration_ms: 5,
  };
}

const parent = await Deno.makeTempDir({ prefix: "rnix-bench-" });
globalThis.addEventListener("unload", () => Deno.removeSync(parent, { recursive: true }));

const journal = await createJournal(disk, `${parent}/short/${RUN_ID}`, OPTIONS);
const bare = await disk.open(`${parent}/bare`, { create: true });
const bytes = new TextEncoder().encode(JSON.stringify(replyOf(2_000)));

const database = new DatabaseSync(`${parent}/peer.sqlite`);
database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
database.exec("CREATE TABLE entries (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)");
const insert = database.prepare("INSERT INTO entries (body) VALUES (?)");

const longFolder = `${parent}/long/${RUN_ID}`;
const long = await createJournal(disk, longFolder, OPTIONS);
for (let index = 0; index < LONG_RUN_ENTRIES; index += 1) long.append(replyOf(1_000));
await long.close();

Deno.bench("bare write and sync of 2 KB", { group: "append", baseline: true }, async () => {
  bare.append(bytes);
  await bare.sync();
});

Deno.bench("a row of 2 KB in SQLite, WAL and FULL", { group: "append" }, () => {
  insert.run(JSON.stringify(replyOf(2_000)));
});

for (const appenders of [1, 16, 64]) {
  Deno.bench(`${appenders} × append and barrier of 2 KB`, { group: "append" }, async () => {
    await Promise.all(Array.from({ length: appenders }, async () => {
      const entry = journal.append(replyOf(2_000));
      await journal.barrier(entry.seq);
    }));
  });
}

Deno.bench("open a run of 10,000 entries", { group: "read" }, async () => {
  const opened = await openJournal(disk, longFolder, OPTIONS);
  await opened.journal.close();
});

Deno.bench("open and replay 10,000 entries", { group: "read", baseline: true }, async () => {
  const opened = await openJournal(disk, longFolder, OPTIONS);
  await opened.replay({ entry: () => {} });
  await opened.journal.close();
});

Deno.bench("verify 10,000 entries", { group: "read" }, async () => {
  await verifyRun(disk, longFolder);
});

Deno.bench("first and last of 10,000 entries", { group: "read" }, async () => {
  await readEnds(disk, longFolder);
});
