/**
 * Reads a run's trace, and goes on with it while the run is at work: the file is followed, so reading never disturbs the run, and a reader may be as slow as it likes until the file was replaced twice.
 *
 * Half a line at the end of the file is a record on its way. A gap in the numbers of one process is told as missed.
 */
import { type Clock, sleep } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { isJsonObject, type Json } from "../base/json.ts";
import type { TraceItem, TraceRow } from "../base/operations.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { TRACE_FILE, TRACE_FILE_BEFORE } from "./trace_file.ts";

const PIECE_BYTES = 256 * 1024;
/** Pause between two looks at a file that is followed. */
const LOOK_MS = 100;
const NEWLINE = 0x0a;

export interface TraceReading {
  storage: Storage;
  clock: Clock;
  /** The run's. */
  folder: string;
  /** What was traced before this reading began is passed over. */
  fromNow: boolean;
  /** Whether the run is still at work; asked after each look that brought nothing. */
  isLive: () => Promise<boolean>;
  signal?: AbortSignal | undefined;
}

/** Records in their order. Ends with the file of a run that isn't at work, or when the signal aborts. A run without a trace has none. */
export async function* readTrace(reading: TraceReading): AsyncGenerator<TraceItem> {
  const numbers = new Map<number, number>();
  const { fromNow } = reading;
  for await (const line of linesOf(reading)) {
    const row = rowOf(line);
    if (row === undefined) continue;
    const before = numbers.get(row.pid) ?? (fromNow ? row.n - 1 : 0);
    numbers.set(row.pid, row.n);
    const { n, ...record } = row;
    if (n > before + 1) yield { kind: "missed", pid: row.pid, events: n - before - 1 };
    yield { kind: "record", record };
  }
}

async function* linesOf(reading: TraceReading): AsyncGenerator<string> {
  const { storage, folder, fromNow, isLive, clock, signal } = reading;
  if (!fromNow) {
    const before = await openIfThere(storage, `${folder}/${TRACE_FILE_BEFORE}`);
    if (before !== undefined) yield* new LineReader(before, 0).rest();
  }
  let reader: LineReader | undefined;
  let skip = fromNow;
  try {
    for (let last = false;;) {
      if (reader === undefined) {
        const file = await openIfThere(storage, `${folder}/${TRACE_FILE}`);
        if (file !== undefined) reader = new LineReader(file, skip ? file.size() : 0);
      }
      skip = false;
      let found = false;
      for await (const line of reader?.more() ?? []) {
        found = true;
        yield line;
      }
      if (signal?.aborted) return;
      if (found) continue;
      if (reader !== undefined && !reader.isCurrent) {
        // Written on until it was replaced: what came after the last look is read before it is left.
        yield* reader.rest();
        reader = undefined;
        continue;
      }
      if (last) return;
      if (await isLive()) await sleep(clock, LOOK_MS, signal).catch(() => {});
      else last = true;
    }
  } finally {
    reader?.close();
  }
}

/** Whole lines of a file that may grow. */
class LineReader {
  readonly #file: StorageFile;
  readonly #decoder = new TextDecoder();
  #offset: number;
  #rest = new Uint8Array(0);

  constructor(file: StorageFile, offset: number) {
    this.#file = file;
    this.#offset = offset;
  }

  /** Whether the file is still the one at its path. */
  get isCurrent(): boolean {
    return this.#file.isCurrent();
  }

  /** What is there now. */
  async *more(): AsyncGenerator<string> {
    for (;;) {
      const piece = await this.#file.readAt(this.#offset, PIECE_BYTES);
      if (piece.length === 0) return;
      this.#offset += piece.length;
      const bytes = new Uint8Array(this.#rest.length + piece.length);
      bytes.set(this.#rest);
      bytes.set(piece, this.#rest.length);
      const end = bytes.lastIndexOf(NEWLINE) + 1;
      this.#rest = bytes.slice(end);
      if (end === 0) continue;
      yield* this.#decoder.decode(bytes.subarray(0, end - 1)).split("\n");
    }
  }

  /** What is there now, and closes the file. */
  async *rest(): AsyncGenerator<string> {
    try {
      yield* this.more();
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#file.close();
  }
}

async function openIfThere(storage: Storage, path: string): Promise<StorageFile | undefined> {
  try {
    return await storage.openToRead(path);
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
  }
}

/** Undefined for what is no record. */
function rowOf(line: string): (TraceRow & { n: number }) | undefined {
  let value: Json;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const { n, timestamp_ms, pid, syscall, args, result = null, error, duration_ms } = value;
  if (typeof pid !== "number" || typeof timestamp_ms !== "number") return undefined;
  if (typeof syscall !== "string" || !isJsonObject(args ?? null)) return undefined;
  return {
    n: typeof n === "number" ? n : 1,
    timestamp_ms,
    pid,
    syscall,
    args: isJsonObject(args ?? null) ? args as { [name: string]: Json } : {},
    result,
    error: typeof error === "string" ? error : null,
    duration_ms: typeof duration_ms === "number" ? duration_ms : 0,
  };
}
