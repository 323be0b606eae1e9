/**
 * Pids: they rise, are never reused, and survive restarts; every one names its run for ever.
 *
 * The file `pids.jsonl` in the state folder has a line per pid given out. A pid is taken under a lock and synced before it is given, so two OS processes never get the same one; all who ask in one OS process while one is being taken share the next lock and its sync. A torn last line was never given out. Where the file is damaged otherwise, or gone, the runs' journals tell which pids there were: what was damaged is kept beside, and the file is written anew before a pid is given.
 */
import { type Clock, sleep } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { writeStateFile } from "../base/state_file.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { lastOf, parsePids, type PidLine, pidLines } from "./pid_lines.ts";
import { firstPidOfNewest, pidsInJournals } from "./pids_in_journals.ts";

const LOCK_WAIT_MS = 5_000;
const LOCK_STEP_MS = 5;
const FILE_MODE = 0o600;

/** Who waits for a pid. */
interface Asking {
  runId: string;
  tell(message: string): void;
  resolve(pid: number): void;
  reject(thrown: unknown): void;
}

export class Pids {
  readonly #storage: Storage;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #runsFolder: string;
  /** How far the file was found to be whole, and the last pid up to there. */
  #checked = { bytes: 0, last: 0 };
  #asking: Asking[] = [];
  #isGiving = false;

  constructor(storage: Storage, clock: Clock, stateFolder: string) {
    this.#storage = storage;
    this.#clock = clock;
    this.#path = `${stateFolder}/pids.jsonl`;
    this.#runsFolder = `${stateFolder}/runs`;
  }

  /** A pid that was never given before, durable. `tell` hears once that the list was damaged and has been made anew. Throws TIMEOUT when the lock isn't had within 5 s. */
  allocate(runId: string, tell: (message: string) => void = () => {}): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#asking.push({ runId, tell, resolve, reject });
      if (!this.#isGiving) void this.#give();
    });
  }

  /** Never rejects. */
  async #give(): Promise<void> {
    this.#isGiving = true;
    while (this.#asking.length > 0) {
      const asking = this.#asking;
      this.#asking = [];
      try {
        const first = await this.#allocateAll(asking);
        asking.forEach(({ resolve }, index) => resolve(first + index));
      } catch (thrown) {
        for (const { reject } of asking) reject(thrown);
      }
    }
    this.#isGiving = false;
  }

  /** The first of as many pids as are asked for, one after another. */
  async #allocateAll(asking: readonly Asking[]): Promise<number> {
    const file = await this.#locked();
    try {
      const last = await this.#lastPid(file);
      if (last === undefined) return await this.#allocateAnew(asking);
      file.append(new TextEncoder().encode(pidLines(numbered(asking, last + 1))));
      // The file's name too: whoever made the file may have died before it was durable.
      await Promise.all([file.sync(), this.#storage.syncFolder(parent(this.#path))]);
      this.#checked = { bytes: file.size(), last: last + asking.length };
      return last + 1;
    } finally {
      file.close();
    }
  }

  /** Run that had this pid. */
  async runOf(pid: number): Promise<string | undefined> {
    return (await this.#lines()).find((line) => line.pid === pid)?.run;
  }

  /** The newest pid of each run. */
  async newest(): Promise<Map<string, number>> {
    return new Map((await this.#lines()).map(({ pid, run }) => [run, pid]));
  }

  /** Reads only: a damaged list is made good in memory. */
  async #lines(): Promise<PidLine[]> {
    const { lines, isWhole } = parsePids(await this.#read());
    return isWhole && lines.length > 0 ? lines : await this.#recovered(lines);
  }

  async #read(): Promise<Uint8Array> {
    try {
      return await this.#storage.read(this.#path);
    } catch (thrown) {
      if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return new Uint8Array();
      throw thrown;
    }
  }

  /** The highest pid of a list that is whole; undefined for one that has to be made anew. A torn last line is cut off. */
  async #lastPid(file: StorageFile): Promise<number | undefined> {
    const { bytes, last } = this.#checked;
    // What lies before was looked at; where the rest doesn't fit it is another file now.
    if (bytes > 0 && bytes <= file.size()) {
      const known = await this.#lastFrom(file, bytes, last);
      if (known !== undefined) return known;
    }
    const known = await this.#lastFrom(file, 0, 0);
    if (known === undefined) return undefined;
    // A list that lost its end is whole to look at.
    const newest = known === 0
      ? lastOf(await this.#recovered([]))
      : await firstPidOfNewest(this.#storage, this.#runsFolder);
    return newest > known ? undefined : known;
  }

  async #lastFrom(file: StorageFile, from: number, last: number): Promise<number | undefined> {
    const bytes = await file.readAt(from, file.size() - from);
    const { lines, isWhole, wholeBytes, lacksNewline } = parsePids(bytes, last);
    if (!isWhole) return undefined;
    if (wholeBytes < bytes.length) await file.truncate(from + wholeBytes);
    if (lacksNewline) file.append(new Uint8Array([NEWLINE]));
    return Math.max(last, lastOf(lines));
  }

  /** What can be read of the list and what the journals have, which is the truth. */
  async #recovered(readable: readonly PidLine[]): Promise<PidLine[]> {
    const found = await pidsInJournals(this.#storage, this.#runsFolder);
    const runs = new Map(readable.map(({ pid, run }) => [pid, run]));
    for (const { pid, run } of found) runs.set(pid, run);
    return [...runs].map(([pid, run]) => ({ pid, run })).sort((a, b) => a.pid - b.pid);
  }

  /** Called under the lock of the damaged file, which the new one replaces with the first pids in it. */
  async #allocateAnew(asking: readonly Asking[]): Promise<number> {
    const damaged = await this.#read();
    const known = await this.#recovered(parsePids(damaged).lines);
    const pid = lastOf(known) + 1;
    const aside = damaged.length === 0 ? undefined : await this.#keepAside();
    await writeStateFile(
      this.#storage,
      this.#path,
      pidLines([...known, ...numbered(asking, pid)]),
      FILE_MODE,
    );
    this.#checked = { bytes: 0, last: 0 };
    asking[0]?.tell(
      `The list of pids was ${aside === undefined ? "gone" : "damaged"}; it was made anew from ` +
        `the runs' journals, and goes on at ${pid}` +
        (aside === undefined ? "" : `. What was there is kept as "${aside}"`),
    );
    return pid;
  }

  async #keepAside(): Promise<string> {
    for (let number = 0;; number += 1) {
      const path = `${this.#path}.damaged-${number}`;
      try {
        await this.#storage.hardLink(this.#path, path);
        return path;
      } catch (thrown) {
        if (!(thrown instanceof SysError) || thrown.code !== "INVALID") throw thrown;
      }
    }
  }

  /** The file at the path, made where there is none, under its lock. */
  async #locked(): Promise<StorageFile> {
    const endMs = this.#clock.monotonic() + LOCK_WAIT_MS;
    for (;;) {
      const file = await this.#storage.open(this.#path, { create: true, mode: FILE_MODE });
      try {
        // It may have been made anew by someone else meanwhile.
        while (file.isCurrent()) {
          if (file.tryLock("exclusive")) {
            if (file.isCurrent()) return file;
            break;
          }
          if (this.#clock.monotonic() >= endMs) throw lockError(this.#path);
          await sleep(this.#clock, LOCK_STEP_MS);
        }
      } catch (thrown) {
        file.close();
        throw thrown;
      }
      file.close();
      if (this.#clock.monotonic() >= endMs) throw lockError(this.#path);
    }
  }
}

const NEWLINE = 10;

function numbered(asking: readonly Asking[], first: number): PidLine[] {
  return asking.map(({ runId }, index) => ({ pid: first + index, run: runId }));
}

function lockError(device: string): SysError {
  return new SysError("TIMEOUT", `The lock was not free within ${LOCK_WAIT_MS / 1000} s`, {
    syscall: "Spawn",
    device,
  });
}

function parent(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
