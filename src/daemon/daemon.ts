/**
 * The daemon's life: lock → sweep of the last instance → socket → record → serve → drain → gone.
 *
 * Invariants
 * 1. Who holds the lock on `daemon.lock` is the daemon of this state folder; nobody else serves it.
 * 2. The record names a socket that is listened on; it is written after the socket is there and removed before the lock is freed.
 * 3. When it ends, by `stop`, a signal or idleness, no run is at work, no server is left, and the socket is gone.
 */
import { dirname } from "node:path";
import { type Clock, sleep, systemClock, within } from "../base/clock.ts";
import {
  fallbackFolder,
  LOCK_FILE,
  readDaemonRecord,
  RECORD_FILE,
  secureSocketFolder,
  socketPath,
} from "../base/daemon_files.ts";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_FAILED } from "../base/exit.ts";
import { sweep } from "../base/guard.ts";
import { resolvePaths } from "../base/paths.ts";
import { makeDurableFolder, writeStateFile } from "../base/state_file.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { VERSION } from "../base/version.ts";
import { type DaemonRecord, type DaemonStatus, PROTOCOL } from "../base/wire.ts";
import { createSystem, type RunningSystem } from "./local_system.ts";
import { createHandler } from "./server.ts";

/** How long a daemon stays without a run at work and without a client, milliseconds. */
export const IDLE_MS = 60_000;
/** How long the lock is waited for. */
const LOCK_MS_MAX = 9_000;
const LOCK_STEP_MS = 20;
/** How long the last answers may take to go out. */
const LAST_ANSWERS_MS_MAX = 500;
/** How often the daemon looks whether its state folder is still there. */
const FOLDER_CHECK_MS = 2_000;

export interface DaemonOptions {
  env: { [name: string]: string };
  uid: number;
  osPid: number;
  clock?: Clock;
  storage?: Storage;
  idleMs?: number;
  /** Hears the signals that end it; the returned function stops hearing. */
  onSignal(signal: "SIGTERM" | "SIGHUP" | "SIGINT", heard: () => void): () => void;
}

/** Runs the daemon to its end. Rejects with a SysError when it can't start; a second daemon is ALREADY_MOUNTED. */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { storage = disk, clock = systemClock, uid, env } = options;
  const { state, runtime } = resolvePaths(env, uid);
  await makeDurableFolder(storage, state, 0o700);
  const lock = await takeLock(storage, clock, state);
  try {
    const last = await readDaemonRecord(storage, state).catch(() => undefined);
    const instance = crypto.randomUUID();
    const [running, path] = await Promise.all([
      createSystem({ ...options, storage, clock, instance }),
      placeSocket(storage, { state, runtime, uid }),
      last === undefined ? undefined : sweep(last.instance),
    ]);
    await new Daemon(running, { ...options, storage, clock, state, path, instance, lock }).serve();
  } finally {
    lock.close();
  }
}

/** The lock, awaited while the daemon before is on its way out. */
async function takeLock(storage: Storage, clock: Clock, state: string): Promise<StorageFile> {
  const path = `${state}/${LOCK_FILE}`;
  const lock = await storage.open(path, { create: true, mode: 0o600 });
  const endMs = clock.monotonic() + LOCK_MS_MAX;
  while (!lock.tryLock("exclusive")) {
    const record = await readDaemonRecord(storage, state).catch(() => undefined);
    if ((record !== undefined && !record.stopping) || clock.monotonic() >= endMs) {
      lock.close();
      throw isServed(path);
    }
    await sleep(clock, LOCK_STEP_MS);
  }
  return lock;
}

function isServed(path: string): SysError {
  return new SysError("ALREADY_MOUNTED", "Another daemon serves this state folder", {
    device: dirname(path),
    exitCode: EXIT_FAILED,
    hint: "rnix daemon status tells about it",
  });
}

/** Path of the socket, its folder made and found to be ours; what an earlier daemon left there is removed. */
async function placeSocket(
  storage: Storage,
  { state, runtime, uid }: { state: string; runtime: string; uid: number },
): Promise<string> {
  const path = socketPath(await Deno.realPath(state), runtime, uid);
  const folder = dirname(path);
  if (folder === fallbackFolder(uid) || folder === runtime) {
    await secureSocketFolder(storage, folder, uid);
  }
  if (await storage.stat(path) !== undefined) await storage.remove(path);
  return path;
}

interface DaemonFacts extends DaemonOptions {
  storage: Storage;
  clock: Clock;
  state: string;
  path: string;
  instance: string;
  lock: StorageFile;
}

class Daemon {
  readonly #running: RunningSystem;
  readonly #facts: DaemonFacts;
  readonly #ended = Promise.withResolvers<void>();
  readonly #startedMs: number;
  #clients = 0;
  #cancelIdle = () => {};
  #cancelCheck = () => {};

  constructor(running: RunningSystem, facts: DaemonFacts) {
    this.#running = running;
    this.#facts = facts;
    this.#startedMs = facts.clock.monotonic();
  }

  async serve(): Promise<void> {
    const { path, onSignal } = this.#facts;
    const handler = createHandler({
      system: this.#running.runs,
      status: () => this.#status(),
      stop: () => this.#end(),
      onClients: (clients) => {
        this.#clients = clients;
        this.#watchIdle();
      },
    });
    this.#running.runs.onIdle = () => this.#watchIdle();
    const forget = (["SIGTERM", "SIGHUP", "SIGINT"] as const).map((signal) =>
      onSignal(signal, () => this.#end())
    );
    const abort = new AbortController();
    const server = Deno.serve({ path, onListen: () => {}, signal: abort.signal }, handler);
    try {
      await this.#writeRecord();
      this.#watchIdle();
      this.#watchFolder();
      await this.#ended.promise;
      // Whoever looks for a daemon from here on starts a new one, which waits for the lock.
      if (this.#facts.lock.isCurrent()) await this.#writeRecord({ stopping: true });
      await this.#running.close();
      await this.#removeRecord();
    } finally {
      this.#cancelIdle();
      this.#cancelCheck();
      for (const each of forget) each();
      // Answers under way go out; a client that keeps its connection open holds nothing up.
      await within(this.#facts.clock, LAST_ANSWERS_MS_MAX, server.shutdown(), () => abort.abort());
      await this.#facts.storage.remove(path).catch(() => {});
    }
  }

  #end(): void {
    this.#ended.resolve();
  }

  #watchIdle(): void {
    const { clock, idleMs = IDLE_MS } = this.#facts;
    this.#cancelIdle();
    if (this.#running.runs.liveRuns > 0 || this.#clients > 0) return;
    this.#cancelIdle = clock.after(idleMs, () => this.#end());
  }

  /** A daemon whose state folder was removed or replaced serves nobody any more. */
  #watchFolder(): void {
    const { clock, lock } = this.#facts;
    this.#cancelCheck = clock.after(FOLDER_CHECK_MS, () => {
      if (lock.isCurrent()) this.#watchFolder();
      else this.#end();
    });
  }

  #status(): DaemonStatus {
    return {
      ...this.#record(),
      runs: this.#running.runs.liveRuns,
      clients: this.#clients,
      uptime_ms: Math.round(this.#facts.clock.monotonic() - this.#startedMs),
    };
  }

  #record(): DaemonRecord {
    const { path, osPid, instance } = this.#facts;
    return { socket: path, os_pid: osPid, instance, version: VERSION, protocol: PROTOCOL };
  }

  async #writeRecord(more: { stopping?: true } = {}): Promise<void> {
    const { storage, state } = this.#facts;
    const record: DaemonRecord = { ...this.#record(), ...more };
    await writeStateFile(storage, `${state}/${RECORD_FILE}`, `${JSON.stringify(record)}\n`);
  }

  async #removeRecord(): Promise<void> {
    const { storage, state } = this.#facts;
    await storage.remove(`${state}/${RECORD_FILE}`).catch(() => {});
  }
}
