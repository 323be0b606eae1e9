/** A journal in memory: for tests, and for runs that needn't outlive their process. "Durable" is what a sync that never leaves the process says; all else is as `journal.ts` promises. */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { sha256Hex } from "../base/json.ts";
import { prepareBody } from "./blobs.ts";
import { CHECKPOINT_GROWTH_BYTES_MIN } from "./checkpoint.ts";
import type { BlobRef, Entry, EntryBody } from "./entry.ts";
import { journalDamaged, journalFailure } from "./folder.ts";
import type { Checkpoint, Journal, Prepared } from "./journal.ts";
import { decodeLine, encodeLine } from "./line.ts";

export interface MemoryOptions {
  runId: string;
  clock: Clock;
  /** What earlier journals of the run held; all of it counts as durable. */
  entries?: readonly Entry[];
}

export class MemoryJournal implements Journal {
  readonly runId: string;
  /** All entries, durable or not. */
  readonly entries: Entry[];
  readonly #clock: Clock;
  readonly #blobs = new Map<string, Uint8Array>();
  #durableSeq: number;
  #sizeBytes = 0;
  #checkpointBytes = 0;
  #checkpoint: Checkpoint | undefined;
  #failure: SysError | undefined;
  #closed = false;

  constructor(options: MemoryOptions) {
    this.runId = options.runId;
    this.#clock = options.clock;
    this.entries = [...options.entries ?? []];
    this.#durableSeq = this.entries.length;
  }

  get lastSeq(): number {
    return this.entries.length;
  }

  get durableSeq(): number {
    return this.#durableSeq;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  get checkpointDue(): boolean {
    const grown = this.#sizeBytes - this.#checkpointBytes;
    return this.#failure === undefined &&
      grown >= Math.max(CHECKPOINT_GROWTH_BYTES_MIN, this.#checkpointBytes);
  }

  /** The last one saved. */
  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint;
  }

  prepare(body: EntryBody): Prepared | Promise<Prepared> {
    return prepareBody(body, (content) => this.putBlob(content));
  }

  append(entry: EntryBody | Prepared): Entry {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closed) throw new SysError("INTERNAL", "Journal is closed");
    const body = "body" in entry ? entry.body : entry;
    const head = { seq: this.lastSeq + 1, ts: this.#clock.now(), synced: this.#durableSeq };
    // Through the line format, so that what is kept is what a file would give back.
    const line = encodeLine(head, body, {});
    const kept = decodeLine(line.bytes.subarray(0, -1)).entry;
    this.entries.push(kept);
    this.#sizeBytes += line.bytes.length;
    return kept;
  }

  async barrier(seq = this.lastSeq): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (seq <= this.#durableSeq) return;
    if (this.#closed) throw new SysError("INTERNAL", "Journal is closed");
    if (seq > this.lastSeq) {
      throw new SysError(
        "INTERNAL",
        `Barrier at entry ${seq}, but the last one is ${this.lastSeq}`,
      );
    }
    await Promise.resolve();
    if (this.#failure !== undefined) throw this.#failure;
    this.#durableSeq = Math.max(this.#durableSeq, seq);
  }

  async putBlob(content: Uint8Array): Promise<BlobRef> {
    if (this.#failure !== undefined) throw this.#failure;
    await Promise.resolve();
    const ref = { sha256: sha256Hex(content), bytes: content.length };
    this.#blobs.set(ref.sha256, content.slice());
    return ref;
  }

  async getBlob(ref: BlobRef): Promise<Uint8Array> {
    await Promise.resolve();
    const content = this.#blobs.get(ref.sha256);
    if (content === undefined) throw journalDamaged(`Blob "${ref.sha256}" is missing`);
    return content.slice();
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (checkpoint.seq > this.#durableSeq) {
      throw new SysError("INTERNAL", `Checkpoint at entry ${checkpoint.seq}, which isn't durable`);
    }
    await Promise.resolve();
    this.#checkpoint = structuredClone(checkpoint);
    this.#checkpointBytes = this.#sizeBytes;
  }

  /** From here on as after a failed write or sync. */
  fail(cause: unknown): void {
    this.#failure ??= journalFailure(cause, this.runId);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    if (this.#failure === undefined) await this.barrier();
    this.#closed = true;
  }
}
