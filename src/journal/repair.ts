/**
 * Makes a journal that resume refuses one that it takes, by giving up what can't be trusted, and only when told to.
 *
 * Contract
 * 1. Nothing is lost: the original stays in the run's folder as `journal.damaged-<ts>`, and what was cut off also as a side file `journal.cut-<seq>-<ts>`.
 * 2. At every moment the journal is the old one or the new one, whole: the original gets a second name, the side file is written, the new journal is written beside and renamed over the old one, each durable before the next.
 * 3. Nothing is done twice afterwards: the side file makes the cut an open one (`cut.ts`), so that the next resume counts every call that may have left as unknown and uses no turn number again. It is durable before the journal is shorter.
 * 4. Only the holder of the lease does this. What crashed on the way is left as it was, and can be repaired anew.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { refuseEmptied } from "./begun.ts";
import { loadCheckpoint } from "./checkpoint.ts";
import {
  checkpointPath,
  cutPath,
  damagedPath,
  FILE_MODE,
  journalDamaged,
  journalPath,
  runIdOf,
} from "./folder.ts";
import type { LeaseTaker } from "./lease.ts";
import { probeLease, takeLease } from "./lease.ts";
import { linesOf } from "./read.ts";
import type { LostContent, Survey } from "./repair_survey.ts";
import { surveyRun, withoutLost } from "./repair_survey.ts";

const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 10;

export interface RepairOutcome {
  survey: Survey;
  /** Where the original is now; undefined where nothing was changed. */
  original?: string;
}

/** Whether resume refuses the journal for something that a repair deals with. */
export function needsRepair({ cut, lostContents }: Survey): boolean {
  return cut !== undefined || lostContents.length > 0;
}

/**
 * What a repair would do; nothing is changed. Rejects with NOT_FOUND (no such journal), INVALID (held by a process, or a newer format) and, where nothing of it could stay, JOURNAL_DAMAGED (exit code 7).
 */
export async function planRepair(storage: Storage, folder: string): Promise<Survey> {
  const file = await storage.openToRead(journalPath(folder));
  try {
    const holder = await probeLease(storage, folder);
    if (holder !== undefined) throw heldError(folder, holder.osPid);
    const survey = await surveyRun(storage, folder, file);
    await refuseHopeless(storage, folder, survey);
    return survey;
  } finally {
    file.close();
  }
}

/** Repairs; durable when the promise resolves. Rejects as `planRepair` does, and with the storage's errors: the journal is then the old one or the new one. */
export async function repairRun(
  storage: Storage,
  folder: string,
  taker: LeaseTaker,
): Promise<RepairOutcome> {
  // Before the lease, which would make a lock file in a folder that isn't a run's.
  (await storage.openToRead(journalPath(folder))).close();
  const lease = await takeLease(storage, folder, taker);
  try {
    const file = await storage.openToRead(journalPath(folder));
    try {
      const survey = await surveyRun(storage, folder, file);
      await refuseHopeless(storage, folder, survey);
      if (!needsRepair(survey)) return { survey };
      const original = await rewrite(storage, folder, { file, survey, ts: taker.clock.now() });
      return { survey, original };
    } finally {
      file.close();
    }
  } finally {
    lease.release();
  }
}

interface Rewriting {
  file: StorageFile;
  survey: Survey;
  ts: number;
}

async function rewrite(
  storage: Storage,
  folder: string,
  { file, survey, ts }: Rewriting,
): Promise<string> {
  // Another process may have written what the disk doesn't hold yet.
  await file.sync();
  const original = await keepOriginal(storage, folder, { file, ts });
  const { cut, keptBytes } = survey;
  if (cut !== undefined) {
    const lost = endedInNewline(rangeOf(file, keptBytes, file.size()));
    await writeFile(storage, folder, { path: cutPath(folder, cut.seq, ts), content: lost });
  }
  const content = newJournal(file, survey);
  await writeFile(storage, folder, { path: journalPath(folder), content });
  await setCheckpointAside(storage, folder, ts);
  return original;
}

/** A checkpoint of what isn't there any more would only be told as a fault from now on. */
async function setCheckpointAside(storage: Storage, folder: string, ts: number): Promise<void> {
  const path = checkpointPath(folder);
  if (await storage.stat(path) === undefined) return;
  const file = await storage.openToRead(journalPath(folder));
  const fits = await loadCheckpoint(storage, folder, file).finally(() => file.close());
  if (fits !== undefined) return;
  await storage.rename(path, damagedPath(folder, ts, "checkpoint"));
  await storage.syncFolder(folder);
}

/** A second name for the journal, durable; a copy on a file system that knows no second names. */
async function keepOriginal(
  storage: Storage,
  folder: string,
  { file, ts }: { file: StorageFile; ts: number },
): Promise<string> {
  let time = ts;
  while (await storage.stat(damagedPath(folder, time)) !== undefined) time += 1;
  const path = damagedPath(folder, time);
  try {
    await storage.hardLink(journalPath(folder), path);
    await storage.syncFolder(folder);
  } catch (thrown) {
    if (!(thrown instanceof SysError) || thrown.code === "RESOURCE_EXHAUSTED") throw thrown;
    await writeFile(storage, folder, { path, content: rangeOf(file, 0, file.size()) });
  }
  return path;
}

/** Writes a file in the run's folder whole or not at all, however large it is. The lease makes the temporary name this process's own. */
async function writeFile(
  storage: Storage,
  folder: string,
  { path, content }: { path: string; content: AsyncIterable<Uint8Array> },
): Promise<void> {
  const temporary = `${folder}/.journal.repair`;
  if (await storage.stat(temporary) !== undefined) await storage.remove(temporary);
  const file = await storage.open(temporary, { createNew: true, mode: FILE_MODE });
  try {
    for await (const bytes of content) file.append(bytes);
    await file.sync();
    file.close();
    await storage.rename(temporary, path);
  } catch (thrown) {
    file.close();
    await storage.remove(temporary).catch(() => {});
    throw thrown;
  }
  await storage.syncFolder(folder);
}

async function* rangeOf(
  file: StorageFile,
  from: number,
  to: number,
): AsyncGenerator<Uint8Array> {
  for (let offset = from; offset < to;) {
    const bytes = await file.readAt(offset, Math.min(CHUNK_BYTES, to - offset));
    if (bytes.length === 0) return;
    offset += bytes.length;
    yield bytes;
  }
}

/** A side file without a newline would be taken for records that never were whole. */
async function* endedInNewline(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let last: number | undefined;
  for await (const bytes of chunks) {
    last = bytes.at(-1);
    yield bytes;
  }
  if (last !== NEWLINE) yield Uint8Array.of(NEWLINE);
}

/** What stays, byte for byte but for records that have lost content; and a torn tail, which resume deals with. */
async function* newJournal(file: StorageFile, survey: Survey): AsyncGenerator<Uint8Array> {
  const bySeq = Map.groupBy(survey.lostContents, ({ seq }: LostContent) => seq);
  const { keptBytes, cut } = survey;
  if (bySeq.size === 0) yield* rangeOf(file, 0, keptBytes);
  else {
    let seq = 0;
    for await (const lines of linesOf(file, 0, keptBytes)) {
      for (const { bytes, ended } of lines) {
        const lost = bySeq.get(++seq);
        if (lost !== undefined) yield withoutLost(bytes, lost);
        else {
          yield bytes;
          if (ended) yield Uint8Array.of(NEWLINE);
        }
      }
    }
  }
  if (cut === undefined) yield* rangeOf(file, keptBytes, file.size());
}

function heldError(folder: string, osPid: number | undefined): SysError {
  const who = osPid === undefined ? "another process" : `process ${osPid}`;
  return new SysError("INVALID", `Run "${runIdOf(folder)}" is held by ${who}`, {
    syscall: "Lock",
    device: journalPath(folder),
    exitCode: EXIT_USAGE,
    hint: "A run at work needs no repair: wait for it, or end it first",
  });
}

/** A run of which not even the start is left can't go on. */
async function refuseHopeless(
  storage: Storage,
  folder: string,
  { keptSeq, cut }: Survey,
): Promise<void> {
  if (keptSeq > 0) return;
  if (cut === undefined) return await refuseEmptied(storage, folder);
  throw journalDamaged(
    `Journal of run "${runIdOf(folder)}" can't be repaired: its first record ${
      cut.problem === "" ? "is damaged" : `is no use, ${cut.problem}`
    }`,
    {
      syscall: "Read",
      device: journalPath(folder),
      hint:
        "Nothing was changed; rnix journal export RUN shows what can be read. Run its agent again",
    },
  );
}
