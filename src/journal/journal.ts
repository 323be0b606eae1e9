/**
 * The journal as the kernel sees it: appends, barriers, blobs, a checkpoint. `file_journal.ts` keeps it in a run's folder, `memory_journal.ts` in memory; both pass `testJournal`.
 *
 * **Contract**
 * 1. `append` gives the entry its seq at once and never waits. Entries appended in one go of the event loop leave as one write.
 * 2. `barrier(seq)` resolves when every entry up to `seq` is durable, its blobs included. At most one sync is in flight; waiters share it.
 * 3. After any failed write or sync the journal is **poisoned**: every open and later barrier and every later append fails with the same JOURNAL_DAMAGED or RESOURCE_EXHAUSTED error (exit code 7). Nothing that failed is ever reported durable.
 * 4. Each write first makes sure that the lease still holds: the locked file is the one at its path.
 */
import type { BlobRef, Entry, EntryBody } from "./entry.ts";
import type { Json } from "../base/json.ts";

/** An entry whose long strings are in blobs already: what `prepare` gives. */
export interface Prepared {
  body: EntryBody;
  /** JSON pointer (RFC 6901) of each string kept in a blob. Empty when the body holds none. */
  blobs: { [pointer: string]: BlobRef };
}

export interface Checkpoint {
  /** Versions of the reducers that made `state`; a checkpoint of other versions is ignored. */
  versions: { [reducer: string]: number };
  seq: number;
  state: Json;
}

export interface Journal {
  readonly runId: string;
  /** Seq of the last appended entry; 0 in an empty journal. */
  readonly lastSeq: number;
  /** Highest seq known durable. */
  readonly durableSeq: number;
  /** Why the journal takes no more entries, once it doesn't. */
  readonly failure: Error | undefined;
  /** Puts strings over 64 KiB into blobs, written and synced. Returns at once, without a promise, when there are none. */
  prepare(body: EntryBody): Prepared | Promise<Prepared>;
  /** Appends; the entry returned (and folded by the caller) has all its strings in place. */
  append(entry: EntryBody | Prepared): Entry;
  /** Resolves when all up to `seq` (default: all so far) is durable. */
  barrier(seq?: number): Promise<void>;
  /** Keeps content by its hash, durable when the promise resolves. */
  putBlob(content: Uint8Array): Promise<BlobRef>;
  getBlob(ref: BlobRef): Promise<Uint8Array>;
  /** Whether the journal has grown enough since the last checkpoint: max(1 MiB, size at the last one). */
  readonly checkpointDue: boolean;
  /** Writes `state` as of `seq`, which must be durable. */
  saveCheckpoint(checkpoint: Checkpoint): Promise<void>;
  /** Flushes what was appended (without failing on a poisoned journal), frees the lease. Idempotent. */
  close(): Promise<void>;
}
