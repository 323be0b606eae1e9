/**
 * One entry as one line of the journal, format version 1:
 *
 * `{"v":1,"seq":n,"ts":ms,"type":"…",…payload…[,"blobs":{pointer:{"sha256":"…","bytes":n}}],"synced":m,"crc":"xxxxxxxx"}` and a newline.
 *
 * `crc` is the CRC-32 (as in zlib) of all bytes of the line before `,"crc":"`, as 8 lower-case hex digits. `v` is the first and `crc` the last member in every version. Strings at the pointers in `blobs` are empty in the line and found in the run's `blobs/`.
 * Everything here works on bytes. `inspectLine` needs no JSON parser: a line whose checksum is right is what a journal wrote.
 */
import { crc32 } from "../base/hash.ts";
import type { BlobRef, Entry, EntryBody, EntryType } from "./entry.ts";
import { FORMAT_VERSION } from "./entry.ts";
import { mapText } from "./long_strings.ts";

/** `,"crc":"` + 8 digits + `"}` */
const SEAL_BYTES = 18;
const SEAL_HEAD = `,"crc":"`;
const SEAL_HEAD_BYTES = new TextEncoder().encode(SEAL_HEAD);
const HEAD_BYTES = new TextEncoder().encode(`{"v":`);
const SEQ_BYTES = new TextEncoder().encode(`,"seq":`);
const TS_BYTES = new TextEncoder().encode(`,"ts":`);
const SYNCED_BYTES = new TextEncoder().encode(`,"synced":`);
const NEWLINE = 10;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const ENTRY_TYPES: { [type in EntryType]: true } = {
  "run.started": true,
  "run.resumed": true,
  "mount.ready": true,
  "mount.changed": true,
  "mount.failed": true,
  "model.request": true,
  "model.reply": true,
  "context.exceeded": true,
  "context.compacted": true,
  "call.intent": true,
  "call.result": true,
  "call.settled": true,
  "child.spawned": true,
  "child.exited": true,
  "timer": true,
  "access.intent": true,
  "access.result": true,
  "journal.cut": true,
  "budget.changed": true,
  "signal": true,
  "run.suspended": true,
  "run.exited": true,
};

/** What a line says without being parsed. */
export type LineFacts =
  | { kind: "record"; seq: number; synced: number }
  | { kind: "newer"; version: number }
  | { kind: "damaged"; problem: string };

/** References to the blobs of one entry, by JSON pointer. */
export type BlobPointers = { [pointer: string]: BlobRef };

export interface EncodedLine {
  /** With its newline. */
  bytes: Uint8Array;
  /** What was written: `body` itself, or a copy without lone surrogates. */
  body: EntryBody;
}

export interface LineHead {
  seq: number;
  ts: number;
  synced: number;
}

/** Closes a JSON object, given without its last brace, by the checksum of its bytes. */
export function sealJson(open: string): Uint8Array {
  const bytes = encoder.encode(open);
  const sealed = new Uint8Array(bytes.length + SEAL_BYTES + 1);
  sealed.set(bytes);
  const crc = crc32(bytes).toString(16).padStart(8, "0");
  encoder.encodeInto(`${SEAL_HEAD}${crc}"}\n`, sealed.subarray(bytes.length));
  return sealed;
}

/** Whether `bytes` (without a newline) end in the right checksum of what comes before it. */
export function isSealed(bytes: Uint8Array): boolean {
  const end = bytes.length - SEAL_BYTES;
  if (end < 1 || !matchesAt(bytes, end, SEAL_HEAD_BYTES)) return false;
  if (bytes[bytes.length - 2] !== 0x22 || bytes[bytes.length - 1] !== 0x7d) return false;
  let crc = 0;
  for (let at = end + SEAL_HEAD_BYTES.length; at < bytes.length - 2; at += 1) {
    const digit = hexDigit(bytes[at] ?? 0);
    if (digit < 0) return false;
    crc = crc * 16 + digit;
  }
  return crc32(bytes.subarray(0, end)) === crc;
}

/** The line of an entry. `blobs` names strings of `body` that are kept elsewhere. */
export function encodeLine(head: LineHead, body: EntryBody, blobs: BlobPointers): EncodedLine {
  const pointers = Object.keys(blobs);
  const payload = pointers.length === 0
    ? payloadOf(body)
    : payloadOf(mapText(body, (text, pointer) => pointer in blobs ? "" : text));
  // JSON.stringify escapes lone surrogates, and nothing else, as \ud…; strict readers refuse them.
  if (payload.includes("\\ud") && !isWellFormed(body)) {
    return encodeLine(head, wellFormedBody(body), blobs);
  }
  const kept = pointers.length === 0 ? "" : `,"blobs":${JSON.stringify(blobs)}`;
  const bytes = sealJson(
    `{"v":${FORMAT_VERSION},"seq":${head.seq},"ts":${head.ts},${payload}${kept},"synced":${head.synced}`,
  );
  return { bytes, body };
}

/** Members of the body as JSON text, `type` first. */
function payloadOf(body: EntryBody): string {
  const text = JSON.stringify(body);
  if (text.startsWith(`{"type":`)) return text.slice(1, -1);
  const { type, ...others } = body;
  return JSON.stringify({ type, ...others }).slice(1, -1);
}

function isWellFormed(body: EntryBody): boolean {
  return wellFormedBody(body) === body;
}

/** The same body with U+FFFD in place of lone surrogates; identical when there are none. */
export function wellFormedBody(body: EntryBody): EntryBody {
  return mapText(body, (text) => text.isWellFormed() ? text : text.toWellFormed());
}

/** Checks a line (without its newline) and reads its numbers. */
export function inspectLine(bytes: Uint8Array): LineFacts {
  if (bytes.length === 0) return damaged("it is empty");
  if (!isSealed(bytes)) return damaged("its checksum doesn't match");
  const version = numberAt(bytes, 0, HEAD_BYTES);
  if (version === undefined) return damaged(`it doesn't begin with "v"`);
  if (version.value > FORMAT_VERSION) return { kind: "newer", version: version.value };
  const seq = numberAt(bytes, version.end, SEQ_BYTES);
  if (seq === undefined || numberAt(bytes, seq.end, TS_BYTES) === undefined) {
    return damaged(`its "seq" or "ts" is missing`);
  }
  const synced = syncedOf(bytes);
  if (synced === undefined || synced >= seq.value) return damaged(`its "synced" is wrong`);
  return { kind: "record", seq: seq.value, synced };
}

/**
 * Length of the whole record that `bytes` begin with, without a newline; undefined when there is none.
 * For a last line whose newline was changed into something else: its record is still good.
 */
export function leadingRecord(bytes: Uint8Array): number | undefined {
  for (let from = 0;;) {
    const at = indexOfBytes(bytes, SEAL_HEAD_BYTES, from);
    if (at < 0 || at + SEAL_BYTES > bytes.length) return undefined;
    if (inspectLine(bytes.subarray(0, at + SEAL_BYTES)).kind === "record") return at + SEAL_BYTES;
    from = at + 1;
  }
}

/** The entry of a line that was inspected; throws an `Error` when it can't be understood. */
export function decodeLine(bytes: Uint8Array): { entry: Entry; blobs: BlobPointers | undefined } {
  // Without its checksum from the start: an object that a member was deleted of is a slow one for ever.
  const text = decoder.decode(bytes.subarray(0, bytes.length - SEAL_BYTES));
  const parsed: unknown = JSON.parse(`${text}}`);
  if (!isLine(parsed)) throw new Error(`entry type ${typeOf(parsed)} isn't known`);
  const blobs = parsed.blobs;
  if (blobs !== undefined) delete parsed.blobs;
  return { entry: parsed, blobs };
}

type Line = Entry & { blobs?: BlobPointers };

/** The checksum was right, so the payload of a known type is as a journal wrote it. */
function isLine(parsed: unknown): parsed is Line {
  if (typeof parsed !== "object" || parsed === null || !("type" in parsed)) return false;
  return typeof parsed.type === "string" && Object.hasOwn(ENTRY_TYPES, parsed.type);
}

function typeOf(parsed: unknown): string {
  const isTyped = typeof parsed === "object" && parsed !== null && "type" in parsed;
  return JSON.stringify(isTyped ? parsed.type : null);
}

function damaged(problem: string): LineFacts {
  return { kind: "damaged", problem };
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : -1;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function matchesAt(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let index = 0; index < wanted.length; index += 1) {
    if (bytes[at + index] !== wanted[index]) return false;
  }
  return true;
}

/** The number after `prefix` at `at`, and where it ends. */
function numberAt(
  bytes: Uint8Array,
  at: number,
  prefix: Uint8Array,
): { value: number; end: number } | undefined {
  if (!matchesAt(bytes, at, prefix)) return undefined;
  let end = at + prefix.length;
  let value = 0;
  for (; isDigit(bytes[end]); end += 1) value = value * 10 + (bytes[end] ?? 0) - 0x30;
  return end === at + prefix.length || !Number.isSafeInteger(value) ? undefined : { value, end };
}

function syncedOf(bytes: Uint8Array): number | undefined {
  const end = bytes.length - SEAL_BYTES;
  let start = end;
  while (isDigit(bytes[start - 1])) start -= 1;
  const read = numberAt(bytes, start - SYNCED_BYTES.length, SYNCED_BYTES);
  return read?.end === end ? read.value : undefined;
}

function indexOfBytes(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  const first = wanted[0] ?? NEWLINE;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (matchesAt(bytes, at, wanted)) return at;
  }
  return -1;
}
