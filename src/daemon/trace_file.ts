/**
 * The trace of a run, `trace.jsonl` in its folder: one redacted JSON object per traced call. Written behind the run's back, never synced; a trace that can't be written is given up and the run goes on.
 *
 * Invariants
 * 1. Records of one process are numbered from 1 on without gaps: a reader that finds one knows how many it has missed.
 * 2. The file has a bound: a full one becomes `trace.jsonl.1`, in the place of the one before.
 * 3. What waits to be written has a bound; records beyond it are left out, and their numbers tell.
 */
import type { Redactor } from "../base/redaction.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import type { Json } from "../base/json.ts";
import type { Trace, TraceRecord } from "../kernel/ports.ts";

export const TRACE_FILE = "trace.jsonl";
/** The file that was full, of which there is one. */
export const TRACE_FILE_BEFORE = `${TRACE_FILE}.1`;

/** Size at which a new file is begun. */
export const TRACE_BYTES_MAX = 16 * 1024 * 1024;
/** Longest argument value kept, characters: a trace shows calls, the journal holds their content. */
const VALUE_CHARS_MAX = 2_000;
/** Records that may wait for the disk. */
const WAITING_MAX = 10_000;
const FILE_MODE = 0o600;

/** A record as it stands in the file. */
export interface NumberedRecord extends TraceRecord {
  n: number;
}

export interface TraceOptions {
  storage: Storage;
  /** The run's. */
  folder: string;
  redactor: Redactor;
  bytesMax?: number;
}

export class TraceFile implements Trace {
  readonly #options: TraceOptions;
  readonly #path: string;
  readonly #encoder = new TextEncoder();
  #file: StorageFile | undefined;
  #lines: string[] = [];
  #scheduled = false;
  #turning = false;
  #closed = false;
  #count = 0;

  private constructor(options: TraceOptions, file: StorageFile | undefined) {
    this.#options = options;
    this.#path = `${options.folder}/${TRACE_FILE}`;
    this.#file = file;
  }

  /** Never throws: without a file nothing is traced. */
  static async open(options: TraceOptions): Promise<TraceFile> {
    return new TraceFile(options, await openFile(options));
  }

  record(record: TraceRecord): void {
    if (this.#file === undefined && !this.#turning) return;
    this.#count += 1;
    if (this.#lines.length >= WAITING_MAX) return;
    const numbered: NumberedRecord = { n: this.#count, ...record };
    const safe = this.#options.redactor.redactJson(shorten(numbered as unknown as Json));
    this.#lines.push(`${JSON.stringify(safe)}\n`);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setTimeout(() => this.#flush(), 0);
  }

  /** Writes what is left. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#flush();
    this.#file?.close();
    this.#file = undefined;
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#turning || this.#file === undefined) return;
    const text = this.#lines.join("");
    this.#lines = [];
    if (text === "") return;
    try {
      this.#file.append(this.#encoder.encode(text));
      if (this.#file.size() >= (this.#options.bytesMax ?? TRACE_BYTES_MAX)) void this.#turn();
    } catch {
      this.#giveUp();
    }
  }

  /** The full file gives its name to a new one. */
  async #turn(): Promise<void> {
    if (this.#closed) return;
    this.#turning = true;
    const { storage, folder } = this.#options;
    this.#file?.close();
    this.#file = undefined;
    try {
      await storage.rename(this.#path, `${folder}/${TRACE_FILE_BEFORE}`);
      this.#file = await openFile(this.#options);
    } catch {
      this.#giveUp();
    }
    this.#turning = false;
    this.#flush();
    if (!this.#closed) return;
    this.#file?.close();
    this.#file = undefined;
  }

  #giveUp(): void {
    this.#file?.close();
    this.#file = undefined;
    this.#lines = [];
  }
}

async function openFile({ storage, folder }: TraceOptions): Promise<StorageFile | undefined> {
  try {
    return await storage.open(`${folder}/${TRACE_FILE}`, { create: true, mode: FILE_MODE });
  } catch {
    return undefined;
  }
}

function shorten(value: Json): Json {
  const text = JSON.stringify(value);
  if (text.length <= VALUE_CHARS_MAX || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return `[${value.length} items, ${text.length} characters]`;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const size = JSON.stringify(member).length;
      if (size <= VALUE_CHARS_MAX) return [key, member];
      if (key === "args") return [key, shorten(member)];
      return [key, `[${size} characters]`];
    }),
  );
}
