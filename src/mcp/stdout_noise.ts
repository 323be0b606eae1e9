/**
 * Output that is no message: into the server's log as far as that is worth it, counted beyond that, and an end to the connection when it is a flood.
 *
 * A line costs next to nothing here: it is neither decoded nor redacted once the log's share is used up, and the log is written once for many.
 */
import type { Clock } from "../base/clock.ts";
import { Allowance } from "./flood.ts";
import { LOG_LINE_CHARS_MAX, LOG_OVERLAP_CHARS, type StderrLog } from "./stderr_log.ts";

/** Output without one message that ends a connection, a line counted as {@link LINE_BYTES} more than it has … */
export const NOISE_BYTES_MAX = 8 * 1024 * 1024;
/** … unless it came slower than this. */
export const NOISE_BYTES_PER_SECOND = 64 * 1024;
/** What a line costs besides its bytes: short ones make the most work. */
export const LINE_BYTES = 128;

/** What of it the log takes at once, and every second from then on. */
const LOGGED_BYTES_MAX = 1024 * 1024;
const LOGGED_BYTES_PER_SECOND = 64 * 1024;
const FIRST_CHARS_MAX = 200;
/** Begins the log lines that came from stdout. */
const NOISE_MARK = "[stdout] ";

export class StdoutNoise {
  readonly #log: StderrLog;
  readonly #flood: Allowance;
  readonly #logged: Allowance;
  readonly #decoder = new TextDecoder();
  #batch: string[] = [];
  #first: string | undefined;
  /** Since the last message. */
  #lines = 0;
  #bytes = 0;
  #leftOutLines = 0;
  #leftOutBytes = 0;

  constructor(clock: Clock, log: StderrLog) {
    this.#log = log;
    this.#flood = new Allowance(clock, {
      max: NOISE_BYTES_MAX,
      perSecond: NOISE_BYTES_PER_SECOND,
    });
    this.#logged = new Allowance(clock, {
      max: LOGGED_BYTES_MAX,
      perSecond: LOGGED_BYTES_PER_SECOND,
    });
  }

  /** The first line, redacted and cut; undefined when there was none. */
  get first(): string | undefined {
    return this.#first;
  }

  /** Takes a line. Gives why the connection must end, if it must. */
  take(line: Uint8Array): string | undefined {
    this.#lines += 1;
    this.#bytes += line.length + 1;
    if (!this.#flood.take(line.length + LINE_BYTES)) {
      return `it flooded its stdout: ${this.#lines} lines (${this.#bytes} bytes) without one MCP message`;
    }
    if (isBlank(line)) return undefined;
    if (this.#logged.take(Math.min(line.length, LOG_LINE_CHARS_MAX) + LINE_BYTES)) {
      const text = this.#decoder.decode(line.subarray(0, LOG_LINE_CHARS_MAX + LOG_OVERLAP_CHARS));
      this.#batch.push(NOISE_MARK + text);
    } else {
      this.#leftOutLines += 1;
      this.#leftOutBytes += line.length;
    }
    return undefined;
  }

  /** A message came: the server is one that speaks. */
  messageCame(): void {
    this.#flood.refill();
    this.#lines = 0;
    this.#bytes = 0;
  }

  /** Writes what was taken; resolves with whether it held the first line of all. */
  async flush(): Promise<boolean> {
    if (this.#batch.length === 0) return false;
    const batch = this.#batch;
    this.#batch = [];
    const [first = ""] = await this.#log.notes(batch);
    if (this.#first !== undefined) return false;
    this.#first = first.slice(NOISE_MARK.length, NOISE_MARK.length + FIRST_CHARS_MAX);
    return true;
  }

  /** Writes the rest, and how much was left out. */
  async close(): Promise<void> {
    await this.flush();
    if (this.#leftOutLines === 0) return;
    await this.#log.note(
      `[rnix] ${this.#leftOutLines} more lines (${this.#leftOutBytes} bytes) on stdout that are no MCP messages were left out`,
    );
    this.#leftOutLines = 0;
  }
}

function isBlank(line: Uint8Array): boolean {
  for (const byte of line) if (byte !== 0x20 && (byte < 0x09 || byte > 0x0d)) return false;
  return true;
}
