/** A disk that can't be written while a run is made or taken up: the same to a user as a journal that can't be (exit code 7), and nothing of it has happened. */
import { type SysError, toSysError } from "../base/errors.ts";
import { exitOfSuspend } from "../base/exit.ts";

/** What a disk answers that can't be written. */
const DISK_CODES: readonly string[] = ["RESOURCE_EXHAUSTED", "PERMISSION", "DRIVER"];

/** What became of it, and what to do once the disk works, for a hint. */
export interface Tried {
  done: string;
  again: string;
}

/** A start that failed. */
export const STARTED: Tried = { done: "Nothing was started", again: "start it again" };
/** A resume that failed. */
export const TAKEN_UP: Tried = {
  done: "The run is as it was",
  again: "go on: rnix resume RUN",
};

/** What `work` resolves with; its failure told as {@link unwritten} tells it. */
export async function written<T>(work: Promise<T>, tried: Tried): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    throw unwritten(thrown, tried);
  }
}

/** The error with exit code 7 where the disk is why; what else went wrong stays what it is. It says what became of what was tried, and what to do again. */
export function unwritten(thrown: unknown, { done, again }: Tried): SysError {
  const error = toSysError(thrown);
  if (!DISK_CODES.includes(error.code) || error.exitCode !== undefined) return error;
  const mend = error.code === "RESOURCE_EXHAUSTED"
    ? "Free space (or open files)"
    : "Make the state folder writable";
  return error.with({
    exitCode: exitOfSuspend("journal"),
    hint: `${done}. ${mend}, then ${again}`,
  });
}
