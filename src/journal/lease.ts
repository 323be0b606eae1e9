/**
 * The lease on a run: flock on the `lock` file of its folder, which names the holder's OS pid and instance.
 *
 * The kernel frees it with the process, so the file's existence means nothing. Holding an open file that is no longer the one at its path means nothing either: `holds` asks for both.
 */
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { isStoppedProcess } from "../base/process_state.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { FILE_MODE, lockPath, runIdOf } from "./folder.ts";

/** How long a taker goes on trying: readers hold a shared lock for a moment. */
export const LEASE_RETRY_MS = 1_000;
const RETRY_PAUSE_MS = 20;
/** A holder's name is far shorter; anything longer isn't one. */
const HOLDER_BYTES_MAX = 4_096;

export interface Holder {
  osPid: number | undefined;
  instance: string | undefined;
}

export interface Lease {
  /** Whether the locked file is still the one at its path. A few microseconds. */
  holds(): boolean;
  /** Frees the lease. Idempotent. */
  release(): void;
}

export interface LeaseTaker {
  clock: Clock;
  osPid: number;
  instance: string;
}

/** Takes the lease, trying for a second. Rejects with INVALID (exit code 2) that names the holder. */
export async function takeLease(
  storage: Storage,
  folder: string,
  taker: LeaseTaker,
): Promise<Lease> {
  const { clock } = taker;
  const deadlineMs = clock.monotonic() + LEASE_RETRY_MS;
  for (;;) {
    const file = await tryTake(storage, folder);
    if (file !== undefined) return heldBy(file, taker);
    if (clock.monotonic() >= deadlineMs) break;
    await sleep(clock, RETRY_PAUSE_MS);
  }
  throw await refusal(storage, folder, clock);
}

async function tryTake(storage: Storage, folder: string): Promise<StorageFile | undefined> {
  const file = await storage.open(lockPath(folder), { create: true, mode: FILE_MODE });
  try {
    // The file may have been replaced between opening and locking it.
    if (file.tryLock("exclusive") && file.isCurrent()) return file;
  } catch (thrown) {
    file.close();
    throw thrown;
  }
  file.close();
  return undefined;
}

function heldBy(file: StorageFile, taker: LeaseTaker): Lease {
  const holder = JSON.stringify({ os_pid: taker.osPid, instance: taker.instance });
  try {
    file.overwrite(new TextEncoder().encode(`${holder}\n`));
  } catch (thrown) {
    file.close();
    throw thrown;
  }
  let released = false;
  return {
    holds: () => !released && file.isCurrent(),
    release() {
      if (released) return;
      released = true;
      file.close();
    },
  };
}

async function refusal(storage: Storage, folder: string, clock: Clock): Promise<SysError> {
  const holder = await probeLease(storage, folder);
  const osPid = holder?.osPid;
  const who = osPid === undefined ? "another process" : `process ${osPid}`;
  const stopped = osPid !== undefined && await isStopped(storage, osPid, clock);
  return new SysError("INVALID", `Run "${runIdOf(folder)}" is held by ${who}`, {
    syscall: "Lock",
    device: lockPath(folder),
    exitCode: EXIT_USAGE,
    hint: stopped
      ? `Process ${osPid} is stopped: continue it with "kill -CONT ${osPid}", or end it and resume again`
      : "A run has one owner at a time: wait for it, or end it first",
  });
}

/** Whether the process is stopped (state T). False where that can't be found out. */
async function isStopped(storage: Storage, osPid: number, clock: Clock): Promise<boolean> {
  try {
    const text = new TextDecoder().decode(await storage.read(`/proc/${osPid}/stat`));
    return text.slice(text.lastIndexOf(")") + 2).startsWith("T");
  } catch (thrown) {
    const isRefused = thrown instanceof SysError && thrown.code === "PERMISSION";
    return isRefused && await isStoppedProcess(osPid, clock);
  }
}

/** Who holds the lease of a run; undefined when it is free. Takes a shared lock for a moment. */
export async function probeLease(storage: Storage, folder: string): Promise<Holder | undefined> {
  let file: StorageFile;
  try {
    file = await storage.openToRead(lockPath(folder));
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
  }
  try {
    if (file.tryLock("shared")) return undefined;
    return parseHolder(await file.readAt(0, HOLDER_BYTES_MAX));
  } finally {
    file.close();
  }
}

function parseHolder(bytes: Uint8Array): Holder {
  const holder: Holder = { osPid: undefined, instance: undefined };
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof parsed !== "object" || parsed === null) return holder;
    if ("os_pid" in parsed && typeof parsed.os_pid === "number") holder.osPid = parsed.os_pid;
    if ("instance" in parsed && typeof parsed.instance === "string") {
      holder.instance = parsed.instance;
    }
  } catch {
    // Being written at this moment: held, by whom isn't known yet.
  }
  return holder;
}
