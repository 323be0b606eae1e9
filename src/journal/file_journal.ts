/**
 * The journal of a run in its folder: what `journal.ts` promises, on a `Storage`.
 *
 * Lines made in one go of the event loop leave as one write, in a microtask; if someone waits, the same microtask starts a sync. While a sync is in flight later lines are written and wait for the next one. The first failure ends the journal for good: after a failed sync the system may have dropped the bytes and call them clean.
 */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { BlobStore, prepareBody } from "./blobs.ts";
import { CheckpointWriter } from "./checkpoint.ts";
import type { BlobRef, Entry, EntryBody } from "./entry.ts";
import { FORMAT_VERSION } from "./entry.ts";
import { journalDamaged, journalFailure, runIdOf } from "./folder.ts";
import type { Checkpoint, Journal, Prepared } from "./journal.ts";
import type { Lease } from "./lease.ts";
import { encodeLine } from "./line.ts";

/** An opened, mended and synced run's folder, ready for appends. */
export interface JournalParts {
  storage: Storage;
  folder: string;
  clock: Clock;
  lease: Lease;
  file: StorageFile;
  /** Seq of the last entry in the file; all up to it is durable. */
  lastSeq: number;
  /** Size of the file, bytes. */
  sizeBytes: number;
  /** Size of the file at its last checkpoint; 0 when there is none. */
  checkpointBytes: number;
  /** Least growth between two checkpoints, bytes; undefined: the usual one. */
  checkpointGrowthBytes?: number | undefined;
}

interface Waiter {
  seq: number;
  resolve: () => void;
  reject: (failure: SysError) => void;
}

export class FileJournal implements Journal {
  readonly runId: string;
  readonly blobs: BlobStore;
  readonly #clock: Clock;
  readonly #lease: Lease;
  readonly #file: StorageFile;
  readonly #checkpoints: CheckpointWriter;
  #lastSeq: number;
  #writtenSeq: number;
  #durableSeq: number;
  #sizeBytes: number;
  #durableBytes: number;
  #pending: Uint8Array[] = [];
  #waiters: Waiter[] = [];
  #scheduled = false;
  #syncing: Promise<void> | undefined;
  #failure: SysError | undefined;
  /** How far the file is good after a failed write or sync. */
  #goodBytes: number | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: JournalParts) {
    this.runId = runIdOf(parts.folder);
    this.blobs = new BlobStore(parts.storage, parts.folder);
    this.#clock = parts.clock;
    this.#lease = parts.lease;
    this.#file = parts.file;
    this.#lastSeq = parts.lastSeq;
    this.#writtenSeq = parts.lastSeq;
    this.#durableSeq = parts.lastSeq;
    this.#sizeBytes = parts.sizeBytes;
    this.#durableBytes = parts.sizeBytes;
    this.#checkpoints = new CheckpointWriter(parts);
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get durableSeq(): number {
    return this.#durableSeq;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  get checkpointDue(): boolean {
    return this.#failure === undefined && this.#checkpoints.isDue(this.#sizeBytes);
  }

  prepare(body: EntryBody): Prepared | Promise<Prepared> {
    return prepareBody(body, (content) => this.putBlob(content));
  }

  append(entry: EntryBody | Prepared): Entry {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closing !== undefined) throw closedError();
    const prepared = "body" in entry ? entry : { body: entry, blobs: {} };
    const head = { seq: this.#lastSeq + 1, ts: this.#clock.now(), synced: this.#durableSeq };
    const line = encodeLine(head, prepared.body, prepared.blobs);
    this.#lastSeq = head.seq;
    this.#pending.push(line.bytes);
    this.#schedule();
    return {
      v: FORMAT_VERSION,
      seq: head.seq,
      ts: head.ts,
      ...line.body,
      synced: head.synced,
    };
  }

  barrier(seq = this.#lastSeq): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (seq <= this.#durableSeq) return Promise.resolve();
    if (this.#closing !== undefined) return Promise.reject(closedError());
    if (seq > this.#lastSeq) {
      return Promise.reject(
        new SysError("INTERNAL", `Barrier at entry ${seq}, but the last one is ${this.#lastSeq}`),
      );
    }
    return this.#durable(seq);
  }

  async putBlob(content: Uint8Array): Promise<BlobRef> {
    if (this.#failure !== undefined) throw this.#failure;
    const foreign = this.#poisonIfForeign();
    if (foreign !== undefined) throw foreign;
    try {
      return await this.blobs.put(content);
    } catch (thrown) {
      throw this.#poison(thrown);
    }
  }

  getBlob(ref: BlobRef): Promise<Uint8Array> {
    return this.blobs.get(ref);
  }

  saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (checkpoint.seq > this.#durableSeq) {
      return Promise.reject(
        new SysError("INTERNAL", `Checkpoint at entry ${checkpoint.seq}, which isn't durable`),
      );
    }
    const foreign = this.#poisonIfForeign();
    if (foreign !== undefined) return Promise.reject(foreign);
    return this.#checkpoints.save(checkpoint, this.#file);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#failure === undefined && this.#durableSeq < this.#lastSeq) {
      await this.#durable(this.#lastSeq).catch(() => {});
    }
    await this.#syncing;
    await this.#checkpoints.idle();
    // Nothing of a failed write was ever reported durable, and what isn't there can't be taken for a call that left.
    if (this.#goodBytes !== undefined && this.#isOurs()) {
      await this.#file.truncate(this.#goodBytes).catch(() => {});
    }
    this.#file.close();
    this.#lease.release();
  }

  /** Whether lock and journal are still those at their paths: bytes in a file without a name are lost. */
  #isOurs(): boolean {
    return this.#lease.holds() && this.#file.isCurrent();
  }

  /** Ends the journal when someone else had a hand in the file that only this process may change. Cheap: two looks at the file's facts. */
  #poisonIfForeign(): SysError | undefined {
    const { path } = this.#file;
    try {
      if (!this.#isOurs()) return this.#poison(lostLease(path));
      const size = this.#file.size();
      return size === this.#sizeBytes
        ? undefined
        : this.#poison(changed(path, size, this.#sizeBytes));
    } catch (thrown) {
      return this.#poison(thrown);
    }
  }

  #durable(seq: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ seq, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#write();
      if (this.#waiters.length > 0 && this.#syncing === undefined) this.#syncing = this.#sync();
    });
  }

  #write(): void {
    if (this.#pending.length === 0 || this.#failure !== undefined) return;
    const lines = this.#pending;
    this.#pending = [];
    if (this.#poisonIfForeign() !== undefined) return;
    try {
      this.#file.append(joined(lines));
    } catch (thrown) {
      this.#goodBytes = this.#sizeBytes;
      this.#poison(thrown);
      return;
    }
    for (const line of lines) {
      this.#sizeBytes += line.length;
      this.#checkpoints.entryEnds(this.#sizeBytes);
    }
    this.#writtenSeq = this.#lastSeq;
  }

  async #sync(): Promise<void> {
    const covered = this.#writtenSeq;
    const coveredBytes = this.#sizeBytes;
    try {
      await this.#file.sync();
      // What was cut away meanwhile isn't durable, and nobody may act on it.
      if (this.#failure !== undefined || this.#poisonIfForeign() === undefined) {
        this.#durableSeq = covered;
        this.#durableBytes = coveredBytes;
      }
    } catch (thrown) {
      // What the system gave up writing reads well until the machine stops, and later syncs don't write it.
      this.#goodBytes = this.#durableBytes;
      this.#poison(thrown);
    }
    this.#syncing = undefined;
    if (this.#failure !== undefined) return;
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.seq > covered);
    for (const waiter of waiters) if (waiter.seq <= covered) waiter.resolve();
    // In a microtask, so that those just woken can append and ride along.
    if (this.#waiters.length > 0) this.#schedule();
  }

  #poison(thrown: unknown): SysError {
    if (this.#failure !== undefined) return this.#failure;
    const failure = journalFailure(thrown, this.#file.path);
    this.#failure = failure;
    this.#pending = [];
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(failure);
    return failure;
  }
}

function joined(lines: readonly Uint8Array[]): Uint8Array {
  const [first] = lines;
  if (first !== undefined && lines.length === 1) return first;
  const bytes = new Uint8Array(lines.reduce((sum, line) => sum + line.length, 0));
  let at = 0;
  for (const line of lines) {
    bytes.set(line, at);
    at += line.length;
  }
  return bytes;
}

function closedError(): SysError {
  return new SysError("INTERNAL", "Journal is closed");
}

function lostLease(device: string): SysError {
  return journalDamaged("Lock file, journal or folder of the run was replaced by someone else", {
    syscall: "Write",
    device,
    hint: "Nothing more was written; go on from what is at its path now: rnix resume RUN",
  });
}

function changed(device: string, size: number, written: number): SysError {
  return journalDamaged(
    `Journal was changed by someone else: it has ${size} bytes where ${written} were written`,
    {
      syscall: "Write",
      device,
      hint: "Nothing more was written; rnix journal verify RUN says what is left of it",
    },
  );
}
