/**
 * What a run came to, read so that others may build on it.
 *
 * What can be read needn't be durable: where only the process died, it may be in the page cache alone, and a machine that stops later loses it. Whoever writes down what another run came to and goes on with that, or removes what that run has read, would then be ahead of it. So its journal is opened as for a resume, which makes all of it durable, and closed again.
 */
import type { Storage } from "../base/storage.ts";
import type { LeaseTaker } from "../journal/mod.ts";
import { openJournal } from "../journal/mod.ts";
import { Ledger } from "./ledger.ts";

/** The fold of a journal that is durable by then. Rejects as `openJournal` does: also where the run is at work. */
export async function readDurably(
  storage: Storage,
  folder: string,
  taker: LeaseTaker,
): Promise<Ledger> {
  const { journal, replay } = await openJournal(storage, folder, taker);
  try {
    const ledger = new Ledger();
    await replay({ entry: (entry) => ledger.fold(entry) });
    return ledger;
  } finally {
    await journal.close();
  }
}
