/** Everything of a journal that can be read, in order, damage told in between: for who shows a run, and not for who goes on with it. */
import type { Storage } from "../base/storage.ts";
import { BlobStore, hydrate } from "./blobs.ts";
import { newerError } from "./damage.ts";
import type { BlobRef, Entry } from "./entry.ts";
import { journalPath } from "./folder.ts";
import { probeLease } from "./lease.ts";
import { decodeLine, inspectLine } from "./line.ts";
import { linesOf } from "./read.ts";
import { problemWith } from "./repair_survey.ts";

/** A record of a journal, or that there was one. */
export type Readable =
  | { kind: "entry"; entry: Entry }
  | { kind: "damaged"; record: number; offset: number; problem: string };

/**
 * Reads a run that may be live or damaged; a sentence stands for each content that is lost. Memory is one chunk and the longest entry.
 * Rejects with NOT_FOUND when there is no journal, with INVALID (exit code 7), naming the version, at a record of a newer format.
 */
export async function* readableEntries(storage: Storage, folder: string): AsyncGenerator<Readable> {
  const file = await storage.openToRead(journalPath(folder));
  const blobs = new BlobStore(storage, folder);
  let record = 0;
  try {
    for await (const lines of linesOf(file, 0, file.size())) {
      for (const { bytes, offset, ended } of lines) {
        record += 1;
        const facts = inspectLine(bytes);
        if (facts.kind === "newer") throw newerError(folder, { version: facts.version, record });
        if (facts.kind === "damaged") {
          // A live run's last line may be half written at this moment.
          if (!ended && await probeLease(storage, folder) !== undefined) return;
          yield { kind: "damaged", record, offset, problem: facts.problem };
          continue;
        }
        const entry = await entryIn(blobs, bytes);
        if (typeof entry === "string") yield { kind: "damaged", record, offset, problem: entry };
        else yield { kind: "entry", entry };
      }
    }
  } finally {
    file.close();
  }
}

/** The entry with its strings in place, or why it can't be understood. */
async function entryIn(blobs: BlobStore, bytes: Uint8Array): Promise<Entry | string> {
  try {
    const { entry, blobs: kept } = decodeLine(bytes);
    return kept === undefined ? entry : await hydrate(entry, kept, contentOrProblem);
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }

  async function contentOrProblem(ref: BlobRef): Promise<Uint8Array> {
    const problem = await problemWith(blobs, ref);
    if (problem === undefined) return await blobs.get(ref);
    return new TextEncoder().encode(`[rnix] This content is lost: ${problem}`);
  }
}
