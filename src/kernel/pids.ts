/**
 * Pids: they rise, are never reused, and survive restarts; every one names its run for ever.
 *
 * The file `pids.jsonl` in the state folder has a line per pid given out. A pid is taken under a lock and synced before it is given, so two OS processes never get the same one. A torn last line was never given out.
 */
import { type Clock, sleep } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { Storage, StorageFile } from "../base/storage.ts";

const LOCK_WAIT_MS = 5_000;
const LOCK_STEP_MS = 5;
const TAIL_BYTES = 4096;
const FILE_MODE = 0o600;

interface PidLine {
  pid: number;
  run: string;
}

export class Pids {
  readonly #storage: Storage;
  readonly #clock: Clock;
  readonly #path: string;

  constructor(storage: Storage, clock: Clock, stateFolder: string) {
    this.#storage = storage;
    this.#clock = clock;
    this.#path = `${stateFolder}/pids.jsonl`;
  }

  /** A pid that was never given before, durable. Throws TIMEOUT when the lock isn't had within 5 s. */
  async allocate(runId: string): Promise<number> {
    const file = await this.#storage.open(this.#path, { create: true, mode: FILE_MODE });
    try {
      await this.#lock(file);
      const { last, endsWithNewline } = await lastPid(file);
      const pid = last + 1;
      const line = `${endsWithNewline ? "" : "\n"}${JSON.stringify({ pid, run: runId })}\n`;
      file.append(new TextEncoder().encode(line));
      // The file's name too: whoever made the file may have died before it was durable.
      await Promise.all([file.sync(), this.#storage.syncFolder(parent(this.#path))]);
      return pid;
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

  async #lines(): Promise<PidLine[]> {
    try {
      const text = new TextDecoder().decode(await this.#storage.read(this.#path));
      return text.split("\n").map(parseLine).filter((line) => line !== undefined);
    } catch (thrown) {
      if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return [];
      throw thrown;
    }
  }

  async #lock(file: StorageFile): Promise<void> {
    const endMs = this.#clock.monotonic() + LOCK_WAIT_MS;
    while (!file.tryLock("exclusive")) {
      if (this.#clock.monotonic() >= endMs) {
        throw new SysError("TIMEOUT", `The lock was not free within ${LOCK_WAIT_MS / 1000} s`, {
          syscall: "Spawn",
          device: this.#path,
        });
      }
      await sleep(this.#clock, LOCK_STEP_MS);
    }
  }
}

async function lastPid(file: StorageFile): Promise<{ last: number; endsWithNewline: boolean }> {
  const size = file.size();
  for (let length = Math.min(TAIL_BYTES, size);; length = Math.min(length * 2, size)) {
    const text = new TextDecoder().decode(await file.readAt(size - length, length));
    const endsWithNewline = text === "" || text.endsWith("\n");
    const lines = text.split("\n").slice(length < size ? 1 : 0);
    const last = lines.map(parseLine).findLast((line) => line !== undefined);
    if (last !== undefined) return { last: last.pid, endsWithNewline };
    if (length === size) return { last: 0, endsWithNewline };
  }
}

function parseLine(line: string): PidLine | undefined {
  try {
    const { pid, run } = JSON.parse(line);
    return typeof pid === "number" && typeof run === "string" ? { pid, run } : undefined;
  } catch {
    return undefined;
  }
}

function parent(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
