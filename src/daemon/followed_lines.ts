/**
 * The lines of a file that another process writes and now and then replaces: `path` becomes `before`, and a new `path` is begun. What is there is read in its order, and then what is added, by looking again and again: reading never disturbs the writer.
 *
 * Invariants
 * 1. Every whole line comes once, in order, also across replacements, as long as the file isn't replaced three times between two looks.
 * 2. `undefined` comes each time that everything written so far has been given.
 * 3. It ends once `isLive` says no and one more look has found nothing, or when the signal aborts; without `isLive` at the first `undefined`.
 */
import { type Clock, sleep } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { Storage, StorageFile } from "../base/storage.ts";

const PIECE_BYTES = 256 * 1024;
/** Pause between two looks at a file that is followed. */
export const LOOK_MS = 100;
/** Times that a file may be replaced while it is opened. */
const OPENINGS_MAX = 10;
const NEWLINE = 0x0a;

export interface FollowedFile {
  storage: Storage;
  clock: Clock;
  path: string;
  /** Where the file goes when it is replaced. */
  before: string;
  /** What was written before this reading began is passed over. */
  fromNow?: boolean;
  /** Whether the writer may go on; asked after each look that brought nothing. Not given: it doesn't. */
  isLive?: (() => Promise<boolean>) | undefined;
  signal?: AbortSignal | undefined;
  /** Also gives a last line that never got its end. */
  withHalf?: boolean;
}

/** Lines without their ends. A file that isn't there has none. */
export async function* followLines(file: FollowedFile): AsyncGenerator<string | undefined> {
  const { isLive, clock, signal, fromNow = false } = file;
  let reader: LineReader | undefined;
  try {
    if (fromNow) reader = (await openNewer(file, undefined, true)).at(-1);
    for (let last = isLive === undefined;;) {
      let found = false;
      for await (const line of reader?.more() ?? []) {
        found = true;
        yield line;
      }
      if (signal?.aborted) return;
      if (found) continue;
      if (reader === undefined || !reader.isAt(file.path)) {
        // Written on until it was replaced: what came after the last look is read before it is left.
        yield* reader?.more() ?? [];
        const newer = await openNewer(file, reader);
        if (newer.length > 0) {
          reader?.close();
          reader = newer.pop();
          for (const before of newer) yield* before.rest();
          continue;
        }
      }
      if (last && file.withHalf === true && reader?.half !== undefined) yield reader.half;
      yield undefined;
      if (last) return;
      if (await isLive?.()) await sleep(clock, LOOK_MS, signal).catch(() => {});
      else last = true;
    }
  } finally {
    reader?.close();
  }
}

/** What was begun after `known`, oldest first: the replaced file and the one at the path, neither twice nor one left out. A replacement meanwhile begins it anew. */
async function openNewer(
  file: FollowedFile,
  known: LineReader | undefined,
  atEnd = false,
): Promise<LineReader[]> {
  for (let opening = 1;; opening += 1) {
    const current = await openReader(file.storage, file.path, atEnd);
    const before = await openReader(file.storage, file.before, atEnd);
    const isNews = before !== undefined && known?.isAt(file.before) !== true;
    if (current === undefined || current.isAt(file.path) || opening >= OPENINGS_MAX) {
      if (!isNews) before?.close();
      return [isNews ? before : undefined, current].filter((reader) => reader !== undefined);
    }
    current.close();
    before?.close();
  }
}

async function openReader(
  storage: Storage,
  path: string,
  atEnd: boolean,
): Promise<LineReader | undefined> {
  try {
    const file = await storage.openToRead(path);
    return new LineReader(file, atEnd ? file.size() : 0);
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
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

  /** Whether this very file is at a path. */
  isAt(path: string): boolean {
    return this.#file.isCurrent(path);
  }

  /** A line that has no end yet. */
  get half(): string | undefined {
    return this.#rest.length === 0 ? undefined : this.#decoder.decode(this.#rest);
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
