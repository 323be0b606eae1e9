/**
 * Gets at the daemon of a state folder, starting it if need be, and ends it.
 *
 * The lock in the state folder decides who is the daemon, so clients that start one at the same time all end up with the same.
 */
import { sleep } from "../base/clock.ts";
import { isServed, readDaemonRecord, secureStateFolder } from "../base/daemon_files.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import { resolvePaths } from "../base/paths.ts";
import { PROTOCOL } from "../base/wire.ts";
import {
  ANSWER_MS_MAX,
  type ConnectOptions,
  type DaemonConnection,
  findDaemon,
  hintFor,
  silentError,
  stoppingError,
} from "./find_daemon.ts";
import { notStarted, startDaemon } from "./start_daemon.ts";

const START_MS_MAX = 10_000;
const STOP_MS_MAX = 10_000;
const POLL_MS = 10;

/** The daemon if one runs, to be spoken to; an idle one of another version is ended. Rejects with exit code 8 as `findDaemon` does, and for a busy one that speaks another protocol. */
export async function reachDaemon(options: ConnectOptions): Promise<DaemonConnection | undefined> {
  const found = await findDaemon(options);
  if (found === undefined || found.status.protocol === PROTOCOL) return found;
  await replaceOther(found, options);
  return undefined;
}

/** The daemon, started if need be. Rejects with exit code 8 when none comes up, or a busy one speaks another protocol. */
export async function connectDaemon(options: ConnectOptions): Promise<DaemonConnection> {
  const found = await reachDaemon(options);
  if (found !== undefined) return found;
  const starting = await startDaemon(options);
  const endMs = options.clock.monotonic() + START_MS_MAX;
  for (;;) {
    // Read before the look: whoever was faster and made it fail is there by then, or holds the lock.
    const isLastLook = starting.hasFailed || options.clock.monotonic() >= endMs;
    const started = await findDaemon(comingUp(options, endMs));
    if (started !== undefined) return started;
    if (isLastLook) {
      throw await stoppingError(options) ?? await notStarted(options, starting, START_MS_MAX);
    }
    await sleep(options.clock, POLL_MS);
  }
}

/** One that holds the lock may take all of the time that is left until it can be found. */
function comingUp(options: ConnectOptions, endMs: number): ConnectOptions {
  const { clock, answerMs = ANSWER_MS_MAX } = options;
  return { ...options, answerMs: Math.max(answerMs, Math.round(endMs - clock.monotonic())) };
}

/** Ends an idle daemon of another version. */
async function replaceOther(found: DaemonConnection, options: ConnectOptions): Promise<void> {
  const { version, runs, os_pid } = found.status;
  if (runs > 0) {
    throw new SysError(
      "INVALID",
      `The daemon is rnix ${version} and speaks another protocol, and ${
        runs === 1 ? "a run is" : `${runs} runs are`
      } at work in it`,
      {
        device: `process ${os_pid}`,
        exitCode: EXIT_UNREACHABLE,
        hint: "Wait for them, or suspend them with that version's: rnix daemon stop",
      },
    );
  }
  await stopDaemon(found, options);
}

/** Asks a daemon to stop and waits until it has gone, its children too. Rejects with TIMEOUT (exit 8). */
export async function stopDaemon(
  { socket, status }: DaemonConnection,
  options: ConnectOptions,
): Promise<void> {
  try {
    await socket.value("stop", undefined, options.answerMs ?? ANSWER_MS_MAX);
  } catch (thrown) {
    if (!(thrown instanceof SysError) || thrown.code !== "TIMEOUT") throw thrown;
    throw await silentError(status.os_pid, thrown, options);
  } finally {
    socket.close();
  }
  await untilGone(status.os_pid, options);
}

/** Waits for a daemon that is stopping already; false when there is none. Rejects with TIMEOUT (exit 8). */
export async function awaitStopping(options: ConnectOptions): Promise<boolean> {
  const { state } = resolvePaths(options.env, options.uid);
  await secureStateFolder(options.storage, state, options.uid);
  const record = await readDaemonRecord(options.storage, state).catch(() => undefined);
  if (record?.stopping !== true || !await isServed(options.storage, state)) return false;
  await untilGone(record.os_pid, options);
  return true;
}

async function untilGone(osPid: number, options: ConnectOptions): Promise<void> {
  const { state } = resolvePaths(options.env, options.uid);
  const endMs = options.clock.monotonic() + STOP_MS_MAX;
  while (await isServed(options.storage, state)) {
    if (options.clock.monotonic() >= endMs) {
      throw new SysError("TIMEOUT", `The daemon did not stop within ${STOP_MS_MAX / 1000} s`, {
        device: `process ${osPid}`,
        exitCode: EXIT_UNREACHABLE,
        hint: await hintFor(osPid, options.clock),
      });
    }
    await sleep(options.clock, POLL_MS);
  }
}
