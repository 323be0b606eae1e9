/**
 * Making a run's journal and taking up an old one.
 *
 * Opening: lease, checkpoint, judge every line after it, mend the tail, write what nothing says is durable once more and sync it: what is read from the page cache may not be on the disk yet, and after a failed sync never will be. Only then is the journal's `durableSeq` the seq of its last entry, and that is the truth.
 */
import { dirname } from "../base/posix_path.ts";
import { SysError } from "../base/errors.ts";
import { makeDurableFolder } from "../base/state_file.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { refuseEmptied } from "./begun.ts";
import type { SavedCheckpoint } from "./checkpoint.ts";
import { isOfVersions, loadCheckpoint } from "./checkpoint.ts";
import type { Cut } from "./cut.ts";
import { mendTail, openCut, refuseUnaccepted } from "./cut.ts";
import { Assessment } from "./damage.ts";
import { FileJournal } from "./file_journal.ts";
import { blobsPath, FILE_MODE, FOLDER_MODE, journalPath, runIdOf } from "./folder.ts";
import type { Checkpoint, Journal } from "./journal.ts";
import type { LeaseTaker } from "./lease.ts";
import { takeLease } from "./lease.ts";
import type { VisitEntry } from "./read.ts";
import { linesOf, visitGood } from "./read.ts";

/** What is written once more at a time: nothing says how much of it there is. */
const REWRITE_BYTES = 1024 * 1024;

/** What a journal is made or taken up with. */
export interface CreateOptions extends LeaseTaker {
  /** Least growth between two checkpoints, bytes; left out: the usual one. */
  checkpointGrowthBytes?: number;
}

export interface OpenOptions extends CreateOptions {
  /** Goes on though a tail that may have been durable has to be cut. */
  acceptCut?: boolean;
}

/** What a replay calls, in order. */
export interface ReplayVisitor {
  /** The state to begin with; called at most once, before any entry, and only with a checkpoint of the wanted versions. */
  checkpoint?(checkpoint: Checkpoint): void;
  /** Every entry after the checkpoint. */
  entry: VisitEntry;
}

export interface OpenedJournal {
  journal: Journal;
  /** Gives the state so far: a checkpoint if one fits, and the entries after it. Without `versions`, all entries. To be called before the first append. */
  replay(
    visitor: ReplayVisitor,
    options?: { versions?: { [reducer: string]: number } },
  ): Promise<void>;
  /** What was mended, in sentences for the user. */
  notices: string[];
  /** Set when records were cut that may have been durable, until the journal knows of something durable after them. */
  cut?: Cut;
}

/** A new run's journal, empty; the folder (named by the run id) and its names are durable. Rejects with INVALID when there is one already. */
export async function createJournal(
  storage: Storage,
  folder: string,
  options: CreateOptions,
): Promise<Journal> {
  await makeDurableFolder(storage, folder, FOLDER_MODE);
  const lease = await takeLease(storage, folder, options);
  try {
    const file = await storage.open(journalPath(folder), { createNew: true, mode: FILE_MODE });
    try {
      await storage.makeFolder(blobsPath(folder), FOLDER_MODE);
      await storage.syncFolder(folder);
    } catch (thrown) {
      file.close();
      throw thrown;
    }
    return new FileJournal({
      storage,
      folder,
      clock: options.clock,
      lease,
      file,
      lastSeq: 0,
      sizeBytes: 0,
      checkpointBytes: 0,
      checkpointGrowthBytes: options.checkpointGrowthBytes,
    });
  } catch (thrown) {
    lease.release();
    throw thrown;
  }
}

/**
 * Takes the lease of a run and its journal.
 *
 * Rejects with NOT_FOUND (no such run), INVALID (held by another process, naming it; or a newer format), JOURNAL_DAMAGED (exit code 7: damage that isn't a torn tail, or a cut that has to be accepted), RESOURCE_EXHAUSTED. Nothing is held then.
 */
export async function openJournal(
  storage: Storage,
  folder: string,
  options: OpenOptions,
): Promise<OpenedJournal> {
  // Before the lease, which would make a lock file in a folder that isn't a run's.
  if (await storage.stat(journalPath(folder)) === undefined) {
    throw new SysError("NOT_FOUND", `Run "${runIdOf(folder)}" has no journal`, {
      syscall: "Open",
      device: journalPath(folder),
      exitCode: 2,
    });
  }
  const lease = await takeLease(storage, folder, options);
  let file: StorageFile | undefined;
  try {
    file = await storage.open(journalPath(folder));
    await storage.makeFolder(blobsPath(folder), FOLDER_MODE);
    await Promise.all([storage.syncFolder(folder), storage.syncFolder(dirname(folder))]);
    const checkpoint = await loadCheckpoint(storage, folder, file);
    const assessment = await assess(file, checkpoint);
    assessment.refuse(folder);
    if (assessment.lastSeq === 0) await refuseEmptied(storage, folder);
    const { damage } = assessment;
    if (damage !== undefined) refuseUnaccepted(folder, damage, options.acceptCut ?? false);
    const notices = await mendTail(storage, folder, file, assessment, options.clock.now());
    await makeDurable(file, assessment.doubtfulFrom);
    const durableAfter = Math.max(assessment.syncedMax, checkpoint?.seq ?? 0);
    const cut = await openCut(storage, folder, durableAfter);
    const journal = new FileJournal({
      storage,
      folder,
      clock: options.clock,
      lease,
      file,
      lastSeq: assessment.lastSeq,
      sizeBytes: file.size(),
      checkpointBytes: checkpoint?.offset ?? 0,
      checkpointGrowthBytes: options.checkpointGrowthBytes,
    });
    const replay = replayOf(journal, file, checkpoint);
    return cut === undefined ? { journal, replay, notices } : { journal, replay, notices, cut };
  } catch (thrown) {
    file?.close();
    lease.release();
    throw thrown;
  }
}

async function makeDurable(file: StorageFile, from: number): Promise<void> {
  const end = file.size();
  for (let offset = from; offset < end;) {
    const bytes = await file.readAt(offset, Math.min(REWRITE_BYTES, end - offset));
    if (bytes.length === 0) break;
    file.rewrite(offset, bytes);
    offset += bytes.length;
  }
  await file.sync();
}

async function assess(
  file: StorageFile,
  checkpoint: SavedCheckpoint | undefined,
): Promise<Assessment> {
  const assessment = new Assessment(checkpoint);
  for await (const lines of linesOf(file, checkpoint?.offset ?? 0, file.size())) {
    for (const line of lines) assessment.take(line);
  }
  return assessment;
}

function replayOf(
  journal: FileJournal,
  file: StorageFile,
  saved: SavedCheckpoint | undefined,
): OpenedJournal["replay"] {
  const to = file.size();
  return async (visitor, options = {}) => {
    const { versions } = options;
    const fits = saved !== undefined && visitor.checkpoint !== undefined &&
      versions !== undefined && isOfVersions(saved, versions);
    if (fits) {
      const { seq, state } = saved;
      visitor.checkpoint?.({ versions: saved.versions, seq, state });
    }
    const range = fits ? { from: saved.offset, to, seq: saved.seq + 1 } : { from: 0, to, seq: 1 };
    await visitGood(file, range, visitor.entry, (ref) => journal.getBlob(ref));
  };
}
