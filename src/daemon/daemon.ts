/**
 * The daemon's life: lock → sweep of the last instance → socket → record → serve → drain → gone.
 *
 * Invariants
 * 1. Who holds the lock on `daemon.lock` is the daemon of this state folder; nobody else serves it.
 * 2. The record names a socket that is listened on; it is written after the socket is there and removed before the lock is freed.
 * 3. A record that was lost or damaged, and a socket that was removed or replaced, are there again within `CHECK_MS`: what is at work stays in reach.
 * 4. When it ends, by `stop`, a signal or idleness, no run is at work, no server is left, and the socket is gone.
 */
import { dirname } from "node:path";
import { type Clock, sleep, systemClock, within } from "../base/clock.ts";
import {
  enginesPath,
  fallbackFolder,
  LOCK_FILE,
  readDaemonRecord,
  RECORD_FILE,
  secureSocketFolder,
  secureStateFolder,
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
import { loadUserConfig } from "../manifest/load_config.ts";
import { GarbageRounds } from "./garbage_rounds.ts";
import { createSystem, type RunningSystem } from "./local_system.ts";
import { createHandler } from "./server.ts";

/** How long a daemon stays without a run at work and without a client where `config.yaml` doesn't say, milliseconds. */
export const IDLE_MS = 60_000;
/** How long the lock is waited for. */
const LOCK_MS_MAX = 9_000;
const LOCK_STEP_MS = 20;
/** How long the last answers may take to go out. */
const LAST_ANSWERS_MS_MAX = 500;
/** A client that looks whether there is a daemon holds the lock for a moment. */
const LOOK_MS_MAX = 200;
/** How often the daemon looks whether its state folder, its record and its socket are still there. */
const CHECK_MS = 2_000;

export interface DaemonOptions {
  env: { [name: string]: string };
  uid: number;
  osPid: number;
  clock?: Clock;
  storage?: Storage;
  idleMs?: number;
  /** How often it looks whether its record and socket are still there, milliseconds. */
  checkMs?: number;
  /** How often followers hear that it is alive, milliseconds. */
  aliveMs?: number;
  /** Hears the signals that end it; the returned function stops hearing. */
  onSignal(signal: "SIGTERM" | "SIGHUP" | "SIGINT", heard: () => void): () => void;
}

/** Runs the daemon to its end. Rejects with a SysError when it can't start; a second daemon is ALREADY_MOUNTED. */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { storage = disk, clock = systemClock, uid, env } = options;
  const { state, runtime, config } = resolvePaths(env, uid);
  await makeDurableFolder(storage, state, 0o700);
  await secureStateFolder(storage, state, uid);
  const lock = await takeLock(storage, clock, state);
  try {
    const last = await readDaemonRecord(storage, state).catch(() => undefined);
    const instance = crypto.randomUUID();
    // A wrong file is told to whoever runs something; the daemon goes on without it, and removes nothing.
    const settings = await loadUserConfig(storage, config).catch(() => undefined);
    const place = () => placeSocket(storage, { state, runtime, uid });
    const [running, path] = await Promise.all([
      createSystem({
        ...options,
        storage,
        clock,
        instance,
        checkpointGrowthBytes: settings?.checkpointBytes,
      }),
      place(),
      last === undefined
        ? undefined
        : sweep(last.instance, clock, enginesPath(state, last.instance)),
    ]);
    const idleMs = options.idleMs ?? settings?.idleTimeoutMs ?? IDLE_MS;
    const garbage = settings === undefined
      ? undefined
      : new GarbageRounds({ storage, clock, state, osPid: options.osPid, instance, settings });
    const facts = {
      ...options,
      storage,
      clock,
      state,
      path,
      place,
      instance,
      lock,
      idleMs,
      garbage,
    };
    await new Daemon(running, facts).serve();
  } finally {
    lock.close();
  }
}

/** The lock, awaited while the daemon before is on its way out. */
async function takeLock(storage: Storage, clock: Clock, state: string): Promise<StorageFile> {
  const path = `${state}/${LOCK_FILE}`;
  const lock = await storage.open(path, { create: true, mode: 0o600 });
  const startMs = clock.monotonic();
  while (!lock.tryLock("exclusive")) {
    const record = await readDaemonRecord(storage, state).catch(() => undefined);
    const isStaying = record !== undefined && !record.stopping;
    if (clock.monotonic() - startMs >= (isStaying ? LOOK_MS_MAX : LOCK_MS_MAX)) {
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
  /** Makes room for the socket again. */
  place: () => Promise<string>;
  instance: string;
  lock: StorageFile;
  idleMs: number;
  /** Undefined where `config.yaml` can't be read. */
  garbage: GarbageRounds | undefined;
}

/** A socket that is listened on, and which file it is. */
interface Listening {
  server: Deno.HttpServer;
  file: string | undefined;
}

class Daemon {
  readonly #running: RunningSystem;
  readonly #facts: DaemonFacts;
  readonly #ended = Promise.withResolvers<void>();
  readonly #startedMs: number;
  #clients = 0;
  #isEnding = false;
  #cancelIdle = () => {};
  #cancelCheck = () => {};
  #checking: Promise<void> = Promise.resolve();
  /** The last one is the one that can be found. */
  readonly #listening: Listening[] = [];

  constructor(running: RunningSystem, facts: DaemonFacts) {
    this.#running = running;
    this.#facts = facts;
    this.#startedMs = facts.clock.monotonic();
  }

  async serve(): Promise<void> {
    const { onSignal } = this.#facts;
    this.#running.runs.onIdle = () => this.#watchIdle();
    const forget = (["SIGTERM", "SIGHUP", "SIGINT"] as const).map((signal) =>
      onSignal(signal, () => this.#end())
    );
    const listen = this.#listener();
    try {
      this.#listening.push(listen());
      await this.#writeRecord();
      this.#watchIdle();
      this.#watchFiles(listen);
      this.#facts.garbage?.start();
      await this.#ended.promise;
      this.#cancelCheck();
      await this.#checking;
      // No look comes any more that would make the record that of a daemon which stays. Whoever looks for a daemon from here on starts a new one, which waits for the lock.
      if (this.#facts.lock.isCurrent()) await this.#writeRecord({ stopping: true });
      await this.#running.close();
      await this.#removeRecord();
    } finally {
      this.#cancelIdle();
      this.#cancelCheck();
      for (const each of forget) each();
      await this.#facts.garbage?.close();
      await this.#stopListening();
    }
  }

  #listener(): () => Listening {
    const { path, clock, aliveMs } = this.#facts;
    const handler = createHandler({
      clock,
      ...(aliveMs === undefined ? {} : { aliveMs }),
      system: this.#running.runs,
      servers: this.#running.servers,
      judge: this.#running.judge,
      status: () => this.#status(),
      stop: () => this.#end(),
      onClients: (clients) => {
        this.#clients = clients;
        this.#watchIdle();
      },
    });
    return () => {
      const server = Deno.serve({ path, onListen: () => {} }, handler);
      return { server, file: fileAt(path) };
    };
  }

  /** Answers under way go out; a client that keeps its connection open holds nothing up, and loses it with the process. The runtime can't break off what it shuts down: a signal would throw out of its own listener. */
  async #stopListening(): Promise<void> {
    const { clock, storage, path } = this.#facts;
    const shut = Promise.all(this.#listening.map(({ server }) => server.shutdown())).then(() => {});
    await within(clock, LAST_ANSWERS_MS_MAX, shut, () => {});
    await storage.remove(path).catch(() => {});
  }

  #end(): void {
    this.#isEnding = true;
    this.#ended.resolve();
  }

  #watchIdle(): void {
    const { clock, idleMs } = this.#facts;
    this.#cancelIdle();
    if (this.#running.runs.liveRuns > 0 || this.#clients > 0) return;
    this.#cancelIdle = clock.after(idleMs, () => this.#end());
  }

  /** A daemon whose state folder was removed or replaced serves nobody any more; one that lost its record or socket makes them again. */
  #watchFiles(listen: () => Listening): void {
    const { clock, lock, checkMs = CHECK_MS } = this.#facts;
    if (this.#isEnding) return;
    this.#cancelCheck = clock.after(checkMs, () => {
      if (!lock.isCurrent()) return this.#end();
      // What can't be mended now, for want of space or of rights, is tried again at the next look.
      this.#checking = this.#mend(listen).catch(() => {}).then(() => this.#watchFiles(listen));
    });
  }

  async #mend(listen: () => Listening): Promise<void> {
    const { storage, state, instance, path, place } = this.#facts;
    const record = await readDaemonRecord(storage, state).catch(() => undefined);
    if (record?.instance !== instance || record.socket !== path) await this.#writeRecord();
    const file = fileAt(path);
    if (file !== undefined && file === this.#listening.at(-1)?.file) return;
    await place();
    // Who is connected through the lost one stays so.
    this.#listening.push(listen());
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

/** Tells one file at a path from another that takes its place; undefined when there is none. */
function fileAt(path: string): string | undefined {
  try {
    const { dev, ino } = Deno.lstatSync(path);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
