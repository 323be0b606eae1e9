/**
 * Finds the daemon of a state folder.
 *
 * The lock in the state folder says whether there is one, its record where it listens. While the lock is held there is a daemon, so "not running" is never said then: one that doesn't answer, or can't be reached, is an error with exit code 8.
 */
import { type Clock, sleep } from "../base/clock.ts";
import { isServed, LOCK_FILE, readDaemonRecord, secureStateFolder } from "../base/daemon_files.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import { resolvePaths } from "../base/paths.ts";
import { isStoppedProcess } from "../base/process_state.ts";
import type { Storage } from "../base/storage.ts";
import type { DaemonRecord, DaemonStatus } from "../base/wire.ts";
import { DaemonSocket } from "./daemon_socket.ts";

/** How long a daemon may take to answer at first contact, and how long one is waited for that is coming up or makes its lost record again, milliseconds. */
export const ANSWER_MS_MAX = 5_000;
const POLL_MS = 10;

export interface ConnectOptions {
  /** Environment of the client: where its folders are, and what the daemon is started with. */
  env: { [name: string]: string };
  uid: number;
  clock: Clock;
  storage: Storage;
  /** The command that starts rnix again. */
  self: readonly string[];
  /** In place of `ANSWER_MS_MAX`. */
  answerMs?: number;
}

export interface DaemonConnection {
  socket: DaemonSocket;
  status: DaemonStatus;
}

/** The daemon that runs now; undefined when there is none, or only one on its way out. Rejects (exit 8) when one holds the lock and doesn't answer, and with PERMISSION when the state folder isn't to be trusted. */
export async function findDaemon(options: ConnectOptions): Promise<DaemonConnection | undefined> {
  const { clock, storage, answerMs = ANSWER_MS_MAX } = options;
  const { state } = resolvePaths(options.env, options.uid);
  await secureStateFolder(storage, state, options.uid);
  const endMs = clock.monotonic() + answerMs;
  for (;;) {
    // A damaged record is the daemon's to mend.
    const record = await readDaemonRecord(storage, state).catch(() => undefined);
    if (record?.stopping) return undefined;
    const found = record === undefined ? undefined : await ask(record, options);
    if (found !== undefined) return found;
    // Nobody listens: whether a daemon lives is told by the lock.
    if (!await isServed(storage, state)) return undefined;
    if (clock.monotonic() >= endMs) throw await outOfReach(record, state, options);
    await sleep(clock, POLL_MS);
  }
}

/** Undefined when nobody listens there. Rejects when somebody does and doesn't answer. */
async function ask(
  record: DaemonRecord,
  options: ConnectOptions,
): Promise<DaemonConnection | undefined> {
  const limitMs = options.answerMs ?? ANSWER_MS_MAX;
  const socket = new DaemonSocket(record.socket);
  try {
    return { socket, status: await socket.value<DaemonStatus>("status", undefined, limitMs) };
  } catch (thrown) {
    socket.close();
    if (!(thrown instanceof SysError)) throw thrown;
    if (thrown.code === "TIMEOUT") throw await silentError(record.os_pid, thrown, options);
    if (thrown.exitCode === EXIT_UNREACHABLE) return undefined;
    throw thrown;
  }
}

async function outOfReach(
  record: DaemonRecord | undefined,
  state: string,
  { clock, answerMs = ANSWER_MS_MAX }: ConnectOptions,
): Promise<SysError> {
  const facts = { device: `${state}/${LOCK_FILE}`, exitCode: EXIT_UNREACHABLE };
  const within = `within ${answerMs / 1000} s`;
  if (record === undefined) {
    return new SysError("TIMEOUT", `A daemon holds the lock, and did not say ${within} where`, {
      ...facts,
      hint: "It may be hung; lslocks names its process",
    });
  }
  return new SysError("TIMEOUT", `A daemon holds the lock, and could not be reached ${within}`, {
    ...facts,
    hint: await hintFor(record.os_pid, clock),
  });
}

/** That a daemon, known by its OS pid, didn't answer within its limit. */
export async function silentError(
  osPid: number,
  cause: SysError,
  { clock, answerMs = ANSWER_MS_MAX }: ConnectOptions,
): Promise<SysError> {
  const seconds = answerMs / 1000;
  return new SysError(
    "TIMEOUT",
    `The daemon (process ${osPid}) doesn't answer within ${seconds} s`,
    { exitCode: EXIT_UNREACHABLE, hint: await hintFor(osPid, clock), cause },
  );
}

/** That it is on its way out, and not yet gone; undefined when none is. */
export async function stoppingError(options: ConnectOptions): Promise<SysError | undefined> {
  const { clock, storage } = options;
  const { state } = resolvePaths(options.env, options.uid);
  const record = await readDaemonRecord(storage, state).catch(() => undefined);
  if (record?.stopping !== true || !await isServed(storage, state)) return undefined;
  const { os_pid } = record;
  return new SysError("INTERRUPTED", `The daemon (process ${os_pid}) is on its way out`, {
    exitCode: EXIT_UNREACHABLE,
    hint: await isStoppedProcess(os_pid, clock)
      ? await hintFor(os_pid, clock)
      : "rnix daemon stop waits for its end",
  });
}

/** What to do about a daemon that is silent. */
export async function hintFor(osPid: number, clock: Clock): Promise<string> {
  return await isStoppedProcess(osPid, clock)
    ? `Process ${osPid} is stopped: kill -CONT ${osPid} lets it go on, kill -9 ${osPid} ends it`
    : `Process ${osPid} may be hung: kill -9 ${osPid} ends it, and rnix resume goes on with its runs`;
}
