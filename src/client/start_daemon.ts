/**
 * Starts a daemon, and keeps what it says when it can't.
 *
 * Its word goes to a log in the state folder; where that can't be written (no space, no permission), through a pipe to the client that started it.
 */
import { fallbackFolder } from "../base/daemon_files.ts";
import { ERROR_CODES, SysError, toSysError } from "../base/errors.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import { resolvePaths } from "../base/paths.ts";
import { makeDurableFolder } from "../base/state_file.ts";
import type { ConnectOptions } from "./find_daemon.ts";
import { daemonEnvironment } from "./daemon_environment.ts";

const LOG_FILE = "daemon.log";
const LOG_LINES_SHOWN = 5;
/** Of what comes through the pipe. */
const SAID_CHARS_MAX = 4_096;
/** A line is written first: a disk that is full lets a file be opened, and takes nothing. The log is private, but what servers write keeps the user's own umask. */
const SCRIPT = `mask=$(umask)
umask 077
if { printf '\\n' >"$0"; } 2>/dev/null; then umask "$mask"; exec "$@" >>"$0" 2>&1; fi
umask "$mask"
exec "$@"`;

/** A daemon on its way up. */
export class StartingDaemon {
  readonly #child: Deno.ChildProcess;
  #hasFailed = false;
  #said = "";

  constructor(child: Deno.ChildProcess) {
    this.#child = child;
    child.unref();
    Promise.all([child.status, this.#listen(child.stderr)])
      .then(([{ success }]) => this.#hasFailed = !success);
  }

  /** Whether it has ended already: also when another was faster. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** What it said where no log could be written. */
  get said(): string {
    return this.#said;
  }

  async #listen(stderr: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    try {
      for await (const piece of stderr.pipeThrough(new TextDecoderStream())) {
        this.#said = (this.#said + piece).slice(0, SAID_CHARS_MAX);
      }
    } catch {
      // What was heard so far has to do.
    }
  }
}

/** Starts it in a session of its own, in `/`, with what it needs of the environment. Rejects (exit 8) when there can be no state folder, or no shell. */
export async function startDaemon(options: ConnectOptions): Promise<StartingDaemon> {
  const { state } = resolvePaths(options.env, options.uid);
  try {
    await makeDurableFolder(options.storage, state, 0o700);
  } catch (thrown) {
    throw toSysError(thrown, { exitCode: EXIT_UNREACHABLE });
  }
  try {
    const child = new Deno.Command("/bin/sh", {
      args: ["-c", SCRIPT, logOf(options), ...options.self, "daemon", "run"],
      cwd: "/",
      clearEnv: true,
      env: daemonEnvironment(options.env),
      detached: true,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    return new StartingDaemon(child);
  } catch (thrown) {
    throw new SysError("DRIVER", "The daemon can't be started", {
      exitCode: EXIT_UNREACHABLE,
      cause: thrown,
      hint: "rnix needs /bin/sh",
    });
  }
}

function logOf(options: ConnectOptions): string {
  return `${resolvePaths(options.env, options.uid).state}/${LOG_FILE}`;
}

async function logged(options: ConnectOptions): Promise<string> {
  const log = await options.storage.read(logOf(options)).catch(() => new Uint8Array());
  return new TextDecoder().decode(log).trim();
}

/** Why there is no daemon after `limitMs`: in its own words, where it said any. */
export async function notStarted(
  options: ConnectOptions,
  starting: StartingDaemon,
  limitMs: number,
): Promise<SysError> {
  const said = starting.said.trim() || await logged(options);
  const last = said.split("\n").slice(-LOG_LINES_SHOWN);
  const hint = last.find((line) => line.startsWith("hint: "))?.slice("hint: ".length);
  const what = last.filter((line) => !line.startsWith("hint: ")).join("\n");
  const [, named, sentence = what] = /^\[([A-Z_]+)\] ([^]*)$/.exec(what) ?? [];
  const code = ERROR_CODES.find((each) => each === named);
  const failed = starting.hasFailed
    ? "The daemon can't start"
    : `The daemon did not come up within ${limitMs / 1000} s`;
  return new SysError(
    code ?? (starting.hasFailed ? "DRIVER" : "TIMEOUT"),
    `${failed}${sentence === "" ? "" : `: ${sentence}`}`,
    {
      exitCode: EXIT_UNREACHABLE,
      hint: hint ?? `See ${logOf(options)}, and whether ${fallbackFolder(options.uid)} is yours`,
    },
  );
}
