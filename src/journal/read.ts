/**
 * Reading a journal of any size: lines in order with their offsets, a chunk at a time; and, for lists of runs, only the first and the last entry.
 *
 * Readers hold no lease and change nothing. The size is taken once at the start, so a run that goes on writing doesn't keep a reader busy.
 */
import type { Storage, StorageFile } from "../base/storage.ts";
import { BlobStore, hydrate } from "./blobs.ts";
import type { GetBlob } from "./blobs.ts";
import { refuseEmptied } from "./begun.ts";
import { Assessment, damageMessage } from "./damage.ts";
import type { Entry } from "./entry.ts";
import { journalDamaged, journalPath, runIdOf } from "./folder.ts";
import { probeLease } from "./lease.ts";
import { decodeLine, inspectLine } from "./line.ts";

const CHUNK_BYTES = 256 * 1024;
const ENDS_BYTES = 16 * 1024;
const NEWLINE = 10;

/** A line without its newline. */
export interface Line {
  bytes: Uint8Array;
  offset: number;
  /** Whether a newline follows. Only the last line may lack it. */
  ended: boolean;
}

/** Called with each entry in order; a promise is waited for. */
export type VisitEntry = (entry: Entry) => void | Promise<void>;

/** Lines between two offsets, those that end in one chunk at a time; memory is one chunk and the longest line. */
export async function* linesOf(
  file: StorageFile,
  from: number,
  to: number,
): AsyncGenerator<Line[]> {
  let open: Uint8Array[] = [];
  let lineOffset = from;
  for (let offset = from; offset < to;) {
    const chunk = await file.readAt(offset, Math.min(CHUNK_BYTES, to - offset));
    if (chunk.length === 0) break;
    offset += chunk.length;
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const bytes = open.length === 0
        ? chunk.subarray(start, end)
        : concatenated([...open, chunk.subarray(start, end)]);
      open = [];
      lines.push({ bytes, offset: lineOffset, ended: true });
      lineOffset += bytes.length + 1;
      start = end + 1;
    }
    if (start < chunk.length) open.push(chunk.subarray(start));
    yield lines;
  }
  if (open.length > 0) yield [{ bytes: concatenated(open), offset: lineOffset, ended: false }];
}

function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return first;
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The entry of an inspected line; rejects with JOURNAL_DAMAGED when it or a blob of it can't be understood. */
export function entryOf(
  bytes: Uint8Array,
  at: { device: string; seq: number; offset: number },
  getBlob: GetBlob,
): Entry | Promise<Entry> {
  let decoded;
  try {
    decoded = decodeLine(bytes);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw journalDamaged(`Cannot read record ${at.seq} at offset ${at.offset}: ${why}`, {
      syscall: "Read",
      device: at.device,
      hint: "It was written by another version of rnix, or by something else",
      cause: thrown,
    });
  }
  return decoded.blobs === undefined
    ? decoded.entry
    : hydrate(decoded.entry, decoded.blobs, getBlob);
}

/** Visits the entries of lines that were found good, in order. `seq` is that of the first. */
export async function visitGood(
  file: StorageFile,
  range: { from: number; to: number; seq: number },
  visit: VisitEntry,
  getBlob: GetBlob,
): Promise<void> {
  let seq = range.seq;
  for await (const lines of linesOf(file, range.from, range.to)) {
    for (const line of lines) {
      const entry = entryOf(line.bytes, { device: file.path, seq, offset: line.offset }, getBlob);
      const waits = visit(entry instanceof Promise ? await entry : entry);
      if (waits instanceof Promise) await waits;
      seq += 1;
    }
  }
}

/** What a reader learns besides the entries. */
export interface ReadReport {
  /** Seq of the last good entry; 0 when there is none. */
  lastSeq: number;
  notices: string[];
  /** Whether what is torn off at the end may have been durable: the run goes on only with `--accept-cut`. */
  mayLackDurable: boolean;
}

/**
 * Visits all entries of a run, which may be live. A torn tail is left out, with a notice.
 * Rejects with NOT_FOUND when there is no journal, with JOURNAL_DAMAGED (exit code 7) after the last good entry when there is other damage, or when there is no entry though the run had begun.
 */
export async function readRun(
  storage: Storage,
  folder: string,
  visit: VisitEntry,
): Promise<ReadReport> {
  const file = await storage.openToRead(journalPath(folder));
  const blobs = new BlobStore(storage, folder);
  try {
    const assessment = new Assessment();
    for await (const lines of linesOf(file, 0, file.size())) {
      for (const line of lines) {
        const good = assessment.take(line);
        if (good === undefined) continue;
        const at = { device: file.path, seq: assessment.lastSeq, offset: line.offset };
        await visit(await entryOf(good, at, (ref) => blobs.get(ref)));
      }
    }
    assessment.refuse(folder);
    if (assessment.lastSeq === 0) await refuseEmptied(storage, folder);
    const damage = assessment.damage;
    // A live run's last line may be half written at this moment.
    const isHalfWritten = damage !== undefined && !damage.endedInNewline &&
      await probeLease(storage, folder) !== undefined;
    return {
      lastSeq: assessment.lastSeq,
      mayLackDurable: damage?.endedInNewline ?? false,
      notices: damage === undefined || isHalfWritten
        ? []
        : [`Journal of run "${runIdOf(folder)}" ${damageMessage(damage)}; read up to there`],
    };
  } finally {
    file.close();
  }
}

/** Visits every record that can be understood, damaged ones stepped over; content in blobs is left out. For what has to be found out of a damaged journal. Rejects with NOT_FOUND when there is none. */
export async function visitReadable(
  storage: Storage,
  folder: string,
  visit: (entry: Entry) => void,
): Promise<void> {
  const file = await storage.openToRead(journalPath(folder));
  try {
    for await (const lines of linesOf(file, 0, file.size())) {
      for (const { bytes } of lines) {
        if (inspectLine(bytes).kind !== "record") continue;
        const entry = readable(bytes);
        if (entry !== undefined) visit(entry);
      }
    }
  } finally {
    file.close();
  }
}

function readable(bytes: Uint8Array): Entry | undefined {
  try {
    return decodeLine(bytes).entry;
  } catch {
    return undefined;
  }
}

/** The first and the last entry of a run, without reading what is between. */
export interface RunEnds {
  first: Entry | undefined;
  last: Entry | undefined;
  sizeBytes: number;
}

/** For lists of runs. What can't be read is undefined; rejects with NOT_FOUND when there is no journal. */
export async function readEnds(storage: Storage, folder: string): Promise<RunEnds> {
  const file = await storage.openToRead(journalPath(folder));
  const blobs = new BlobStore(storage, folder);
  try {
    const sizeBytes = file.size();
    const decode = async (line: Uint8Array | undefined): Promise<Entry | undefined> => {
      if (line === undefined || inspectLine(line).kind !== "record") return undefined;
      return await entryOf(line, { device: file.path, seq: 0, offset: 0 }, (ref) => blobs.get(ref));
    };
    return {
      first: await decode(await firstLine(file, sizeBytes)),
      last: await decode(await lastGoodLine(file, sizeBytes)),
      sizeBytes,
    };
  } finally {
    file.close();
  }
}

async function firstLine(file: StorageFile, sizeBytes: number): Promise<Uint8Array | undefined> {
  for (let length = ENDS_BYTES;; length *= 4) {
    const bytes = await file.readAt(0, Math.min(length, sizeBytes));
    const end = bytes.indexOf(NEWLINE);
    if (end >= 0) return bytes.subarray(0, end);
    if (length >= sizeBytes) return bytes.length === 0 ? undefined : bytes;
  }
}

/** Looks back from the end, over a torn tail if need be, in windows that grow. */
async function lastGoodLine(
  file: StorageFile,
  sizeBytes: number,
): Promise<Uint8Array | undefined> {
  for (let length = ENDS_BYTES;; length *= 4) {
    const from = Math.max(0, sizeBytes - length);
    const bytes = await file.readAt(from, sizeBytes - from);
    for (let end = bytes.length; end > 0;) {
      const start = bytes.lastIndexOf(NEWLINE, end - 1) + 1;
      const isWhole = start > 0 || from === 0;
      if (!isWhole) break;
      if (inspectLine(bytes.subarray(start, end)).kind === "record") {
        return bytes.subarray(start, end);
      }
      end = start - 1;
    }
    if (from === 0) return undefined;
  }
}
