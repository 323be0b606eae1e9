/**
 * Server-sent events on bytes: chunks in, whole events out, however the chunks were cut.
 *
 * Lines end in `\n`, `\r\n` or `\r`; comments and unknown fields are passed over. The cap holds for one event, so a stream may be as long as it likes. An event that the stream's end cuts off is no event.
 */
import { SysError } from "../base/errors.ts";
import { MESSAGE_BYTES_MAX } from "./framing.ts";

/** One event. */
export interface SseEvent {
  /** `message` where the server names none. */
  type: string;
  /** The lines of its data, joined by newlines; undefined where it had none. */
  data: Uint8Array | undefined;
  /** The id that holds from this event on, where it sets one. */
  id: string | undefined;
  /** The pause before reconnecting that it asks for, milliseconds. */
  retryMs: number | undefined;
}

/** What an event may have besides its data. */
const FIELD_BYTES_MAX = 64 * 1024;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;

const decoder = new TextDecoder();

export class SseParser {
  readonly #eventBytesMax: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #afterReturn = false;
  #begun = false;
  #data: Uint8Array[] = [];
  #type = "";
  #id: string | undefined;
  #retryMs: number | undefined;

  constructor(eventBytesMax: number = MESSAGE_BYTES_MAX) {
    this.#eventBytesMax = eventBytesMax;
  }

  /** The events that `chunk` completes, in order. Throws RESOURCE_EXHAUSTED as soon as one is over the cap; the parser is of no use then. */
  push(chunk: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    let start = 0;
    if (this.#afterReturn && chunk.length > 0) {
      this.#afterReturn = false;
      if (chunk[0] === NEWLINE) start = 1;
    }
    let newline = next(chunk, NEWLINE, start);
    let carriage = next(chunk, RETURN, start);
    for (;;) {
      if (newline < start) newline = next(chunk, NEWLINE, start);
      if (carriage < start) carriage = next(chunk, RETURN, start);
      const end = Math.min(newline, carriage);
      if (end === chunk.length) break;
      const event = this.#takeLine(this.#whole(chunk.subarray(start, end)));
      if (event !== undefined) events.push(event);
      start = end + 1;
      if (end !== carriage) continue;
      if (start === chunk.length) this.#afterReturn = true;
      else if (chunk[start] === NEWLINE) start += 1;
    }
    if (start < chunk.length) this.#keep(chunk.slice(start));
    return events;
  }

  #keep(part: Uint8Array): void {
    this.#count(part.length);
    this.#parts.push(part);
  }

  #whole(last: Uint8Array): Uint8Array {
    this.#count(last.length);
    if (this.#parts.length === 0) return last;
    const line = joined([...this.#parts, last], undefined);
    this.#parts = [];
    return line;
  }

  /** Everything between two empty lines counts, comments aside once they are whole. */
  #count(addedBytes: number): void {
    this.#bytes += addedBytes;
    if (this.#bytes <= this.#eventBytesMax + FIELD_BYTES_MAX) return;
    throw new SysError(
      "RESOURCE_EXHAUSTED",
      `An event of the server's stream is over ${this.#eventBytesMax} bytes`,
    );
  }

  #takeLine(raw: Uint8Array): SseEvent | undefined {
    const line = this.#begun ? raw : withoutMark(raw);
    this.#begun = true;
    if (line.length === 0) return this.#dispatch();
    const colon = line.indexOf(COLON);
    if (colon === 0) this.#bytes -= line.length;
    else {
      const name = decoder.decode(colon < 0 ? line : line.subarray(0, colon));
      const from = colon < 0 ? line.length : line[colon + 1] === SPACE ? colon + 2 : colon + 1;
      this.#field(name, line.subarray(from));
    }
    return undefined;
  }

  #field(name: string, value: Uint8Array): void {
    if (name === "data") this.#data.push(value.slice());
    else if (name === "event") this.#type = decoder.decode(value);
    else if (name === "id") {
      const id = decoder.decode(value);
      if (!id.includes("\0")) this.#id = id;
    } else if (name === "retry") {
      const text = decoder.decode(value);
      if (/^\d{1,12}$/.test(text)) this.#retryMs = Number(text);
    }
  }

  #dispatch(): SseEvent | undefined {
    const event: SseEvent = {
      type: this.#type === "" ? "message" : this.#type,
      data: this.#data.length === 0 ? undefined : joined(this.#data, NEWLINE),
      id: this.#id,
      retryMs: this.#retryMs,
    };
    this.#data = [];
    this.#type = "";
    this.#id = undefined;
    this.#retryMs = undefined;
    this.#bytes = 0;
    const empty = event.data === undefined && event.id === undefined &&
      event.retryMs === undefined;
    return empty ? undefined : event;
  }
}

/** Where `byte` comes next; the length of the chunk when it doesn't. */
function next(chunk: Uint8Array, byte: number, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at < 0 ? chunk.length : at;
}

/** A stream may begin with a byte order mark. */
function withoutMark(line: Uint8Array): Uint8Array {
  return line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? line.subarray(3) : line;
}

function joined(parts: readonly Uint8Array[], between: number | undefined): Uint8Array {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) return first;
  const gaps = between === undefined ? 0 : parts.length - 1;
  const whole = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, gaps));
  let at = 0;
  for (const part of parts) {
    if (between !== undefined && at > 0) whole[at++] = between;
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
