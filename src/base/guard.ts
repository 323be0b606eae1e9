/**
 * The orphan guard: one small sh process per rnix process that outlives it by a moment and kills what it left behind.
 *
 * It is told nothing to start its work: it reads a pipe, and the pipe's end (exit, crash, `kill -9`) is the sign. Then it kills every process whose environment carries `RNIX_INSTANCE=<instance>`, wrappers and `setsid` grandchildren included, until none is left.
 * Containers carry a label instead, and are removed through the engines that were used.
 * Process groups named to it are killed as well: all there is where there is no /proc, and the way to reach a server that emptied its environment.
 */
import type { Clock } from "./clock.ts";
import { systemClock, within } from "./clock.ts";
import { SysError } from "./errors.ts";
import { killChild } from "./process_state.ts";
import { engineLine, labelledArguments } from "./containers.ts";
import script from "./guard.sh" with { type: "text" };
import { INSTANCE_VARIABLE } from "./instance.ts";

export { INSTANCE_VARIABLE } from "./instance.ts";

const SHELL = "/bin/sh";
/** How long the guard may take to come up. */
const START_MS_MAX = 5_000;
/** How long `close` waits for the last sweep. */
const SWEEP_MS_MAX = 3_000;
/** Pause before a guard that was killed is replaced: longer each time, anew after one that lived for a while. Short, since what dies meanwhile leaves orphans until the next start. */
const REPLACE_MS_MIN = 50;
const REPLACE_MS_MAX = 250;
const HEALTHY_MS = 5_000;

export interface Guard {
  readonly instance: string;
  /** Must be in the environment of every child; nothing started without it is swept. */
  readonly mark: { readonly [INSTANCE_VARIABLE]: string };
  /** OS pid of the guard itself; another one after it was replaced. */
  readonly pid: number;
  /** Tells of a process group that must not outlive rnix. Never throws. */
  groupStarted(pgid: number): void;
  /** Tells that a group named before is gone (its number may be reused). Never throws. */
  groupEnded(pgid: number): void;
  /** Arguments for a program that runs a server: a container gets its label, and is swept from here on. Throws DRIVER when that can't be written down. */
  launchArguments(
    program: string,
    args: readonly string[],
    env: { readonly [name: string]: string },
  ): string[];
  /** The clean end: one last sweep of whatever is still there, then the guard ends. Bounded, idempotent, never throws. */
  close(): Promise<void>;
}

export interface GuardOptions {
  /** Unique per rnix process: letters, digits, `-`. */
  instance: string;
  clock?: Clock;
  /** Absolute path of the file in which the instance's container engines are written down; without it containers are left alone. */
  enginesPath?: string;
}

/**
 * Starts the guard and resolves once it is up (about 3 ms): no child may be started before that. Start it while other things load.
 *
 * Throws INVALID for an unusable instance id, DRIVER when it can't be started.
 */
export async function startGuard(options: GuardOptions): Promise<Guard> {
  const { instance, clock = systemClock, enginesPath } = options;
  if (!/^[A-Za-z0-9-]{8,64}$/.test(instance)) {
    throw new SysError("INVALID", `Instance id ${JSON.stringify(instance)} can't mark processes`, {
      hint: "Use 8 to 64 letters, digits or -",
    });
  }
  const child = spawnGuard(instance, enginesPath);
  const guard = new ShellGuard({ instance, enginesPath }, child, clock);
  await within(clock, START_MS_MAX, firstOutput(child.stdout), () => false).then((up) => {
    if (up) return;
    killChild(child);
    throw new SysError("DRIVER", `The orphan guard did not come up within ${START_MS_MAX} ms`, {
      hint: `Check that ${SHELL} works`,
    });
  });
  return guard;
}

function spawnGuard(instance: string, enginesPath = ""): Deno.ChildProcess {
  try {
    return new Deno.Command(SHELL, {
      args: ["-c", script, "rnix-guard", instance, enginesPath],
      cwd: "/",
      clearEnv: true,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" },
      detached: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
  } catch (thrown) {
    throw new SysError("DRIVER", `Cannot start the orphan guard with ${SHELL}`, {
      cause: thrown,
      hint: "rnix starts no server without it; check that the shell exists and may be run",
    });
  }
}

/**
 * Kills what an earlier instance left behind: the guard's own work, for the case that it was killed as well. Bounded; rejects with DRIVER when the shell can't be started.
 *
 * Only for an instance that is known to be gone: everything that carries its mark is killed.
 */
export async function sweep(
  instance: string,
  clock: Clock = systemClock,
  enginesPath?: string,
): Promise<void> {
  const child = spawnGuard(instance, enginesPath);
  // Its word that it is up is read: with nobody to hear it, it would die of the broken pipe.
  const done = Promise.all([firstOutput(child.stdout), child.stdin.close(), child.status]);
  await within(clock, SWEEP_MS_MAX, done.then(() => {}, () => {}), () => child.unref());
}

function noteEngine(path: string, line: string): void {
  try {
    Deno.writeTextFileSync(path, `${line}\n`, { append: true, create: true, mode: 0o600 });
  } catch (thrown) {
    throw new SysError("DRIVER", "Cannot write down which container engine is used", {
      cause: thrown,
      device: path,
      hint: "No container is started that might be left behind; make the state folder writable",
    });
  }
}

async function firstOutput(stdout: ReadableStream<Uint8Array>): Promise<boolean> {
  const reader = stdout.getReader();
  const { done } = await reader.read();
  await reader.cancel();
  return !done;
}

class ShellGuard implements Guard {
  readonly instance: string;
  readonly mark: { readonly [INSTANCE_VARIABLE]: string };
  readonly #clock: Clock;
  readonly #enginesPath: string | undefined;
  readonly #engines = new Set<string>();
  readonly #encoder = new TextEncoder();
  readonly #groups = new Set<number>();
  #child: Deno.ChildProcess;
  #pipe: WritableStreamDefaultWriter<Uint8Array>;
  #startedMs: number;
  #replaceMs = REPLACE_MS_MIN;
  #cancelReplace = () => {};
  #closing: Promise<void> | undefined;

  constructor(
    { instance, enginesPath }: Pick<GuardOptions, "instance"> & { enginesPath: string | undefined },
    child: Deno.ChildProcess,
    clock: Clock,
  ) {
    this.instance = instance;
    this.#enginesPath = enginesPath;
    this.mark = { [INSTANCE_VARIABLE]: instance };
    this.#clock = clock;
    this.#child = child;
    this.#pipe = pipeTo(child);
    this.#startedMs = clock.monotonic();
    this.#watch(child);
  }

  get pid(): number {
    return this.#child.pid;
  }

  launchArguments(
    program: string,
    args: readonly string[],
    env: { readonly [name: string]: string },
  ): string[] {
    const path = this.#enginesPath;
    const labelled = labelledArguments(program, args, this.instance);
    if (labelled === undefined || path === undefined) return [...args];
    const line = engineLine({ program, env });
    if (!this.#engines.has(line)) {
      noteEngine(path, line);
      this.#engines.add(line);
    }
    return labelled;
  }

  groupStarted(pgid: number): void {
    this.#groups.add(pgid);
    this.#tell(`+${pgid}\n`);
  }

  groupEnded(pgid: number): void {
    this.#groups.delete(pgid);
    this.#tell(`-${pgid}\n`);
  }

  close(): Promise<void> {
    this.#cancelReplace();
    this.#closing ??= this.#end();
    return this.#closing;
  }

  #tell(line: string): void {
    if (this.#closing !== undefined) return;
    this.#pipe.write(this.#encoder.encode(line)).catch(() => {});
  }

  /** A guard that was killed is replaced, sooner or later: without one a crash would leave orphans. */
  #watch(child: Deno.ChildProcess): void {
    child.unref();
    child.status.then(() => {
      if (this.#closing !== undefined) return;
      const lived = this.#clock.monotonic() - this.#startedMs;
      this.#replaceMs = lived >= HEALTHY_MS
        ? REPLACE_MS_MIN
        : Math.min(2 * this.#replaceMs, REPLACE_MS_MAX);
      this.#cancelReplace = this.#clock.after(this.#replaceMs, () => this.#replace());
    });
  }

  #replace(): void {
    try {
      this.#child = spawnGuard(this.instance, this.#enginesPath);
    } catch {
      this.#cancelReplace = this.#clock.after(REPLACE_MS_MAX, () => this.#replace());
      return;
    }
    this.#pipe = pipeTo(this.#child);
    this.#startedMs = this.#clock.monotonic();
    firstOutput(this.#child.stdout).catch(() => {});
    for (const group of this.#groups) this.#tell(`+${group}\n`);
    this.#watch(this.#child);
  }

  /** A guard that is still sweeping after the limit goes on without us: it needs nothing but itself. */
  async #end(): Promise<void> {
    const child = this.#child;
    child.ref();
    await this.#pipe.close().catch(() => {});
    const ended = await within<Deno.CommandStatus | undefined>(
      this.#clock,
      SWEEP_MS_MAX,
      child.status,
      () => undefined,
    );
    if (ended === undefined) child.unref();
    // It was killed and not replaced yet: its work is done here.
    else if (!ended.success) await sweep(this.instance, this.#clock, this.#enginesPath);
  }
}

function pipeTo(child: Deno.ChildProcess): WritableStreamDefaultWriter<Uint8Array> {
  const pipe = child.stdin.getWriter();
  pipe.closed.catch(() => {});
  return pipe;
}
