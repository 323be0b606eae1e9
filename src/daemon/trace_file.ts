/**
 * The trace of a run, `trace.jsonl` in its folder: one redacted JSON object per traced call. Written behind the run's back, never synced; a trace that can't be written is given up and the run goes on.
 */
import type { Redactor } from "../base/redaction.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import type { Json } from "../base/json.ts";
import type { Trace, TraceRecord } from "../kernel/ports.ts";

export const TRACE_FILE = "trace.jsonl";

/** Longest argument value kept, characters: a trace shows calls, the journal holds their content. */
const VALUE_CHARS_MAX = 2_000;

export class TraceFile implements Trace {
  readonly #redactor: Redactor;
  #file: StorageFile | undefined;
  #lines: string[] = [];
  #scheduled = false;

  private constructor(file: StorageFile | undefined, redactor: Redactor) {
    this.#file = file;
    this.#redactor = redactor;
  }

  /** Never throws: without a file nothing is traced. */
  static async open(storage: Storage, folder: string, redactor: Redactor): Promise<TraceFile> {
    try {
      const path = `${folder}/${TRACE_FILE}`;
      return new TraceFile(await storage.open(path, { create: true, mode: 0o600 }), redactor);
    } catch {
      return new TraceFile(undefined, redactor);
    }
  }

  record(record: TraceRecord): void {
    if (this.#file === undefined) return;
    const safe = this.#redactor.redactJson(shorten(record as unknown as Json));
    this.#lines.push(`${JSON.stringify(safe)}\n`);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setTimeout(() => this.#flush(), 0);
  }

  /** Writes what is left. Idempotent. */
  close(): void {
    this.#flush();
    this.#file?.close();
    this.#file = undefined;
  }

  #flush(): void {
    this.#scheduled = false;
    const text = this.#lines.join("");
    this.#lines = [];
    if (text === "" || this.#file === undefined) return;
    try {
      this.#file.append(new TextEncoder().encode(text));
    } catch {
      this.#file.close();
      this.#file = undefined;
    }
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
