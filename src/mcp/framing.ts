/**
 * Newline framing on bytes: chunks in, whole lines out, however the chunks were cut.
 *
 * A line may be split at any byte, several may come at once, and `\r\n` counts as a newline. The cap holds for the line, not for the chunk.
 */
import { SysError } from "../base/errors.ts";

/** Largest message taken from a server, its newline aside. */
export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

const NEWLINE = 0x0a;
const RETURN = 0x0d;

export class LineFramer {
  readonly #lineBytesMax: number;
  #parts: Uint8Array[] = [];
  #partsBytes = 0;

  constructor(lineBytesMax: number = MESSAGE_BYTES_MAX) {
    this.#lineBytesMax = lineBytesMax;
  }

  /** The lines that `chunk` completes, in order, without their newlines. Throws RESOURCE_EXHAUSTED as soon as a line is over the cap; the framer is of no use then. */
  push(chunk: Uint8Array): Uint8Array[] {
    const lines: Uint8Array[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      lines.push(this.#take(chunk.subarray(start, end)));
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.slice(start));
    return lines;
  }

  /** What came after the last newline, at the end of the stream; undefined when there is nothing. */
  end(): Uint8Array | undefined {
    return this.#partsBytes === 0 ? undefined : this.#take(new Uint8Array(0));
  }

  #keep(part: Uint8Array): void {
    this.#check(part.length);
    this.#parts.push(part);
    this.#partsBytes += part.length;
  }

  #take(last: Uint8Array): Uint8Array {
    this.#check(last.length);
    let line = last;
    if (this.#partsBytes > 0) {
      line = new Uint8Array(this.#partsBytes + last.length);
      let offset = 0;
      for (const part of [...this.#parts, last]) {
        line.set(part, offset);
        offset += part.length;
      }
      this.#parts = [];
      this.#partsBytes = 0;
    }
    return line.at(-1) === RETURN ? line.subarray(0, -1) : line;
  }

  #check(addedBytes: number): void {
    if (this.#partsBytes + addedBytes <= this.#lineBytesMax) return;
    throw new SysError(
      "RESOURCE_EXHAUSTED",
      `A line on the server's stdout is over ${this.#lineBytesMax} bytes`,
    );
  }
}
