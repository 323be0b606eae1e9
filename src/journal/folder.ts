/** What lies in a run's folder, and how the journal's errors look. */
import { SysError } from "../base/errors.ts";
import type { ErrorFacts } from "../base/errors.ts";
import { basename } from "../base/posix_path.ts";

export const FOLDER_MODE = 0o700;
export const FILE_MODE = 0o600;
/** Exit code of everything that a damaged or unwritable journal ends (design, section 7). */
export const EXIT_JOURNAL = 7;

const CUT_PREFIX = "journal.cut-";

export function journalPath(folder: string): string {
  return `${folder}/journal.jsonl`;
}

export function checkpointPath(folder: string): string {
  return `${folder}/checkpoint.json`;
}

export function lockPath(folder: string): string {
  return `${folder}/lock`;
}

export function blobsPath(folder: string): string {
  return `${folder}/blobs`;
}

/** A run's folder is named by its run id. */
export function runIdOf(folder: string): string {
  return basename(folder);
}

/** Side file of a tail that was cut at entry `seq`. */
export function cutPath(folder: string, seq: number, ts: number): string {
  return `${folder}/${CUT_PREFIX}${seq}-${ts}`;
}

/** The seq in a side file's name; undefined for other files. */
export function cutSeqOf(name: string): number | undefined {
  const match = /^journal\.cut-(\d+)-\d+$/.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/** Where a repair keeps what it replaces. */
export function damagedPath(
  folder: string,
  ts: number,
  what: "journal" | "checkpoint" = "journal",
): string {
  return `${folder}/${what}.damaged-${ts}`;
}

/** An error about records that can't be trusted, exit code 7. */
export function journalDamaged(message: string, facts: ErrorFacts = {}): SysError {
  return new SysError("JOURNAL_DAMAGED", message, { exitCode: EXIT_JOURNAL, ...facts });
}

/** Any failure as one that ends the journal: RESOURCE_EXHAUSTED stays, all else is JOURNAL_DAMAGED. */
export function journalFailure(thrown: unknown, device: string): SysError {
  if (thrown instanceof SysError) {
    if (thrown.code === "RESOURCE_EXHAUSTED") {
      const hint = "Free space (or open files), then go on: rnix resume RUN";
      return thrown.with({ exitCode: EXIT_JOURNAL, hint });
    }
    if (thrown.code === "JOURNAL_DAMAGED") return thrown.with({ exitCode: EXIT_JOURNAL });
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const isRefused = thrown instanceof SysError && thrown.code === "PERMISSION";
  return journalDamaged(isRefused ? `Journal can't be written: ${message}` : message, {
    syscall: thrown instanceof SysError ? thrown.syscall : undefined,
    device: thrown instanceof SysError ? thrown.device ?? device : device,
    hint: isRefused
      ? "Make the state folder writable again, then go on: rnix resume RUN"
      : "The run goes on from its last durable record once the journal can be written: rnix resume RUN",
    cause: thrown,
  });
}
