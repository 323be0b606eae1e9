/** A process of its own that opens or makes a run's journal and appends until it is killed: prints a line per entry once its barrier has passed. Arguments: folder. */
import { systemClock } from "../../src/base/clock.ts";
import { disk } from "../../src/base/disk.ts";
import { createJournal, openJournal } from "../../src/journal/mod.ts";

const [folder = ""] = Deno.args;
const options = { clock: systemClock, osPid: Deno.pid, instance: "writer" };
const exists = await disk.stat(`${folder}/journal.jsonl`) !== undefined;
const journal = exists
  ? (await openJournal(disk, folder, options)).journal
  : await createJournal(disk, folder, options);
const encoder = new TextEncoder();
for (let turn = 1;; turn += 1) {
  const entry = journal.append({
    type: "model.reply",
    turn,
    attempt: 1,
    message: { text: "x".repeat(500) },
    usage: { input_tokens: 1, output_tokens: 1 },
    finish_reason: "stop",
    duration_ms: 1,
  });
  await journal.barrier();
  Deno.stdout.writeSync(encoder.encode(`${entry.seq}\n`));
}
