/** Reads the text files an agent is made of, and says in a sentence why one can't be one: too large, a folder, binary, not UTF-8. */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import { FILE_START, type Position } from "./problems.ts";

/** No instructions or script are larger. */
export const SOURCE_BYTES_MAX = 1024 * 1024;
/** No manifest is larger: checking one takes seconds per megabyte. */
export const MANIFEST_BYTES_MAX = 256 * 1024;

/** What reading one file gave. */
export type SourceText =
  | { kind: "text"; text: string }
  | { kind: "absent" }
  | { kind: "unusable"; position: Position; message: string };

/** Reads a file. Never throws for what is wrong with the file itself. */
export async function readSourceText(
  storage: Storage,
  path: string,
  bytesMax = SOURCE_BYTES_MAX,
): Promise<SourceText> {
  try {
    const own = await storage.stat(path);
    if (own === undefined) return { kind: "absent" };
    // What a link leads to may be without end, or be a pipe that nobody writes to.
    const facts = own.kind === "link" ? await storage.statTarget(path) : own;
    if (facts === undefined) return unusable("This link leads nowhere");
    if (facts.kind === "folder") return unusable("This is a folder, not a file");
    if (facts.kind === "other") return unusable("This is not a regular file");
    if (facts.sizeBytes > bytesMax) return unusable(tooLarge(facts.sizeBytes, bytesMax));
    return decodeSource(await storage.read(path), bytesMax);
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    if (thrown.code === "NOT_FOUND") return unusable("This link leads nowhere");
    return unusable(`The file can't be read: ${thrown.message}`);
  }
}

/** Bytes as text, if they are text. */
export function decodeSource(bytes: Uint8Array, bytesMax = SOURCE_BYTES_MAX): SourceText {
  if (bytes.length > bytesMax) return unusable(tooLarge(bytes.length, bytesMax));
  const binaryAt = bytes.indexOf(0);
  if (binaryAt >= 0) {
    return unusable("This is a binary file (it has NUL bytes)", placeOf(bytes, binaryAt));
  }
  try {
    return { kind: "text", text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return unusable("This is not UTF-8; save it in that encoding", firstUndecodable(bytes));
  }
}

function unusable(message: string, position: Position = FILE_START): SourceText {
  return { kind: "unusable", position, message };
}

function tooLarge(sizeBytes: number, bytesMax: number): string {
  return `The file has ${sizeBytes} bytes; at most ${bytesMax} are read`;
}

const NEWLINE = 10;

function placeOf(bytes: Uint8Array, offset: number): Position {
  const before = bytes.subarray(0, offset);
  const lineStart = before.lastIndexOf(NEWLINE) + 1;
  return {
    line: before.reduce((lines, byte) => byte === NEWLINE ? lines + 1 : lines, 1),
    column: offset - lineStart + 1,
  };
}

/** The line that can't be decoded; a newline byte is never part of a longer character. */
function firstUndecodable(bytes: Uint8Array): Position {
  let line = 1;
  for (let start = 0; start < bytes.length; line += 1) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline;
    try {
      new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(start, end));
    } catch {
      return { line, column: 1 };
    }
    start = end + 1;
  }
  return FILE_START;
}
