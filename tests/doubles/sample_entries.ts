/** Entries and run folders for tests of the journal. */
import type { Clock } from "../../src/base/clock.ts";
import type { Storage } from "../../src/base/storage.ts";
import type { Entry, EntryBody } from "../../src/journal/entry.ts";
import { createJournal, openJournal } from "../../src/journal/mod.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { VirtualClock } from "./virtual_clock.ts";

export const RUN_ID = "0198c0de-0000-7000-8000-0000000000aa";
export const RUN_FOLDER = `/state/runs/${RUN_ID}`;
export const JOURNAL = `${RUN_FOLDER}/journal.jsonl`;

/** Facts of a lease taker. */
export function taker(clock: Clock = new VirtualClock(), osPid = 4711) {
  return { clock, osPid, instance: `instance-${osPid}` };
}

export function intent(call: string, attempt = 1): EntryBody & { type: "call.intent" } {
  return {
    type: "call.intent",
    call,
    attempt,
    tool: "mcp__bank__pay",
    device: "/mnt/mcp/bank/tools/pay",
    effect: "write",
    input_sha256: "0".repeat(64),
    idempotency_key: `${RUN_ID}/${call}`,
  };
}

/** A model's reply that says `text`. */
export function reply(text: string, turn = 1): EntryBody & { type: "model.reply" } {
  return {
    type: "model.reply",
    turn,
    attempt: 1,
    message: { content: [{ type: "text", text }] },
    usage: { input_tokens: 10, output_tokens: 20 },
    finish_reason: "stop",
    duration_ms: 7,
  };
}

export function result(call: string, text: string): EntryBody & { type: "call.result" } {
  return {
    type: "call.result",
    call,
    attempt: 1,
    duration_ms: 3,
    outcome: "ok",
    content: [{ type: "text", text }],
  };
}

/** Appends each batch and makes it durable before the next; gives all entries. */
export async function fill(journal: Journal, batches: EntryBody[][]): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const batch of batches) {
    for (const body of batch) entries.push(journal.append(await journal.prepare(body)));
    await journal.barrier();
  }
  return entries;
}

/** Makes a run with these batches and closes it. */
export async function makeRun(storage: Storage, batches: EntryBody[][]): Promise<Entry[]> {
  const journal = await createJournal(storage, RUN_FOLDER, taker());
  const entries = await fill(journal, batches);
  await journal.close();
  return entries;
}

/** Opens the run, replays all of it, and leaves it open. */
export async function reopen(storage: Storage, acceptCut = false) {
  const opened = await openJournal(storage, RUN_FOLDER, { ...taker(), acceptCut });
  const entries: Entry[] = [];
  await opened.replay({ entry: (entry) => void entries.push(entry) });
  return { ...opened, entries };
}

/** A batch per step of a run with two calls. */
export function sampleBatches(): EntryBody[][] {
  return [
    [reply("first", 1), intent("t1.0")],
    [result("t1.0", "paid"), reply("second", 2), intent("t2.0"), intent("t2.1")],
    [result("t2.0", "grüße 🎉"), result("t2.1", "b")],
  ];
}
