/**
 * Whether a run had begun although its journal is empty.
 *
 * Its start was durable before anything else of it was done, so what lies beside the journal tells: a checkpoint, a side file, a server's log, a traced call. Then the records were taken away, and calls may have left. Blobs say nothing: those of a start, and of a fork, are there before its first record.
 */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import { checkpointPath, cutSeqOf, journalDamaged, journalPath } from "./folder.ts";

/** The trace, and the one before it that a full one became. */
const TRACES = ["trace.jsonl", "trace.jsonl.1"];

/** What shows that a run with an empty journal had begun, in words; undefined where nothing does. */
export async function signOfLife(storage: Storage, folder: string): Promise<string | undefined> {
  if (await storage.stat(checkpointPath(folder)) !== undefined) return "a checkpoint";
  if ((await namesIn(storage, folder)).some((name) => (cutSeqOf(name) ?? 0) > 1)) {
    return "records that were set aside";
  }
  if ((await namesIn(storage, `${folder}/mounts`)).length > 0) return "logs of its servers";
  for (const name of TRACES) {
    if (((await storage.stat(`${folder}/${name}`))?.sizeBytes ?? 0) > 0) return "traced calls";
  }
  return undefined;
}

/** The sentence for a journal without a record beside such a sign. */
export function emptiedMessage(sign: string): string {
  return `Journal holds no good record, but the run had begun: there are ${sign}`;
}

/** Throws JOURNAL_DAMAGED (exit code 7) when a journal without a good record is that of a run that had begun. */
export async function refuseEmptied(storage: Storage, folder: string): Promise<void> {
  const sign = await signOfLife(storage, folder);
  if (sign === undefined) return;
  throw journalDamaged(emptiedMessage(sign), {
    syscall: "Open",
    device: journalPath(folder),
    hint: "What it did is not known any more, so it can't go on; run its agent again",
  });
}

async function namesIn(storage: Storage, folder: string): Promise<string[]> {
  try {
    return await storage.list(folder);
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return [];
    throw thrown;
  }
}
