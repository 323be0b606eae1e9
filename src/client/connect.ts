/**
 * Finds the daemon of a state folder, or starts it.
 *
 * The lock in the state folder decides who is the daemon, so clients that start one at the same time all end up with the same.
 */
import { type Clock, sleep } from "../base/clock.ts";
import { fallbackFolder, isServed, readDaemonRecord } from "../base/daemon_files.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import { INSTANCE_VARIABLE } from "../base/instance.ts";
import { resolvePaths } from "../base/paths.ts";
import { makeDurableFolder } from "../base/state_file.ts";
import type { Storage } from "../base/storage.ts";
import { type DaemonStatus, PROTOCOL } from "../base/wire.ts";
import { DaemonSocket } from "./daemon_socket.ts";

const START_MS_MAX = 10_000;
const STOP_MS_MAX = 10_000;
const POLL_MS = 10;
const LOG_FILE = "daemon.log";
const LOG_LINES_SHOWN = 5;

export interface ConnectOptions {
  /** Environment of the client: where its folders are, and what the daemon is started with. */
  env: { [name: string]: string };
  uid: number;
  clock: Clock;
  storage: Storage;
  /** The command that starts rnix again. */
  self: readonly string[];
}

export interface DaemonConnection {
  socket: DaemonSocket;
  status: DaemonStatus;
}

/** The daemon that runs now; undefined when there is none. */
export async function findDaemon(options: ConnectOptions): Promise<DaemonConnection | undefined> {
  const { state } = resolvePaths(options.env, options.uid);
  const record = await readDaemonRecord(options.storage, state);
  if (record === undefined || record.stopping) return undefined;
  const socket = new DaemonSocket(record.socket);
  try {
    return { socket, status: await socket.value<DaemonStatus>("status") };
  } catch (thrown) {
    socket.close();
    // Nobody listens there any more; whether a daemon lives is told by the lock, which a new one asks.
    if (thrown instanceof SysError && thrown.exitCode === EXIT_UNREACHABLE) return undefined;
    throw thrown;
  }
}

/** The daemon, started if need be. Rejects with exit code 8 when none comes up, or a busy one speaks another protocol. */
export async function connectDaemon(options: ConnectOptions): Promise<DaemonConnection> {
  const found = await findDaemon(options);
  if (found !== undefined && found.status.protocol === PROTOCOL) return found;
  if (found !== undefined) await replaceOther(found, options);
  let hasFailed = false;
  await startDaemon(options, () => hasFailed = true);
  const endMs = options.clock.monotonic() + START_MS_MAX;
  for (;;) {
    // Read before the look: whoever was faster and made it fail is there by then.
    const isLastLook = hasFailed || options.clock.monotonic() >= endMs;
    const started = await findDaemon(options);
    if (started !== undefined) return started;
    if (isLastLook) throw await notStarted(options, hasFailed);
    await sleep(options.clock, POLL_MS);
  }
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
  await socket.value("stop");
  socket.close();
  await untilGone(status.os_pid, options);
}

/** Waits for a daemon that is stopping already; false when there is none. Rejects with TIMEOUT (exit 8). */
export async function awaitStopping(options: ConnectOptions): Promise<boolean> {
  const { state } = resolvePaths(options.env, options.uid);
  const record = await readDaemonRecord(options.storage, state);
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
      });
    }
    await sleep(options.clock, POLL_MS);
  }
}

/** Starts the daemon in a session of its own, in `/`, without the mark of another instance; what it has to say goes to a log. */
async function startDaemon(options: ConnectOptions, onFailed: () => void): Promise<void> {
  const { state } = resolvePaths(options.env, options.uid);
  await makeDurableFolder(options.storage, state, 0o700);
  const { [INSTANCE_VARIABLE]: _mark, ...env } = options.env;
  const log = `${state}/${LOG_FILE}`;
  try {
    const child = new Deno.Command("/bin/sh", {
      args: ["-c", 'umask 077; exec "$@" >"$0" 2>&1', log, ...options.self, "daemon", "run"],
      cwd: "/",
      clearEnv: true,
      env,
      detached: true,
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    child.unref();
    child.status.then(({ success }) => success || onFailed());
  } catch (thrown) {
    throw new SysError("DRIVER", "The daemon can't be started", {
      exitCode: EXIT_UNREACHABLE,
      cause: thrown,
      hint: "rnix needs /bin/sh",
    });
  }
}

async function notStarted(options: ConnectOptions, hasFailed: boolean): Promise<SysError> {
  const { state } = resolvePaths(options.env, options.uid);
  const log = await options.storage.read(`${state}/${LOG_FILE}`).catch(() => new Uint8Array());
  const last = new TextDecoder().decode(log).trim().split("\n").slice(-LOG_LINES_SHOWN).join("\n");
  const what = hasFailed
    ? "The daemon can't start"
    : `The daemon did not come up within ${START_MS_MAX / 1000} s`;
  return new SysError(
    hasFailed ? "DRIVER" : "TIMEOUT",
    `${what}${last === "" ? "" : `: ${last}`}`,
    {
      exitCode: EXIT_UNREACHABLE,
      hint: `See ${state}/${LOG_FILE}, and whether ${fallbackFolder(options.uid)} is yours`,
    },
  );
}
