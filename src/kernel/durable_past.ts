/** What is on disk of a run whose journal could not be written any more: that, and not what its process knew, is what a resume begins with. */
import type { Storage } from "../base/storage.ts";
import type { Journal } from "../journal/journal.ts";
import { readRun } from "../journal/mod.ts";
import { Ledger } from "./ledger.ts";

/** The fold of what the closed journal kept; `known`, what its process knew, where it can't be read or has lost records since. Never rejects. */
export async function durableLedger(
  storage: Storage,
  folder: string,
  journal: Journal,
  known: Ledger,
): Promise<Ledger> {
  const { durableSeq, lastSeq } = journal;
  const ledger = new Ledger();
  try {
    const read = await readRun(storage, folder, (entry) => {
      // Someone else may go on with the run already.
      if (entry.seq <= lastSeq) ledger.fold(entry);
    });
    return read.lastSeq < durableSeq ? known : ledger;
  } catch {
    return known;
  }
}
