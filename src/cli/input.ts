/**
 * Answers of a person: lines of stdin, one question at a time.
 *
 * A read that nobody waits for any more can't be taken back, so it stays pending and its line goes to the next question.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";

/** Where bytes come from; `null` at the end. */
export interface Source {
  read(buffer: Uint8Array): Promise<number | null>;
  isTerminal(): boolean;
  /** Of a terminal: every key at once and unseen, or lines as they are typed. */
  setRaw?(raw: boolean): void;
}

/** A sequence that a key sends, or one character. */
// deno-lint-ignore no-control-regex
const KEY = /^(?:\x1b\[[0-9;]*[A-Za-z~]|[^])/u;
const LINE_BYTES_MAX = 64 * 1024;
/** What is read at once: a long line is looked through again with each piece. */
const READ_BYTES = 64 * 1024;

export class Input {
  readonly isTerminal: boolean;
  readonly #source: Source;
  readonly #decoder = new TextDecoder();
  #text = "";
  #ended = false;
  #reading: Promise<void> | undefined;

  constructor(source: Source) {
    this.#source = source;
    this.isTerminal = source.isTerminal();
  }

  /** The next line without its break, or `bytesMax` of a longer one; undefined at the end of input or when the signal aborts first. */
  async line(signal: AbortSignal, bytesMax = LINE_BYTES_MAX): Promise<string | undefined> {
    const gone = aborted(signal);
    try {
      while (!signal.aborted) {
        const end = this.#text.indexOf("\n");
        if (end >= 0 || this.#ended || this.#text.length > bytesMax) return this.#take(end);
        this.#reading ??= this.#read();
        await Promise.race([this.#reading, gone.promise]);
      }
      return undefined;
    } finally {
      gone.forget();
    }
  }

  /** Takes keys one by one, or lines again. Nothing where there is no terminal. */
  setRaw(raw: boolean): void {
    if (this.isTerminal) this.#source.setRaw?.(raw);
  }

  /** The next key of a terminal that takes keys one by one: a character, or a sequence such as `\x1b[A`; undefined at the end of input or when the signal aborts first. */
  async key(signal: AbortSignal): Promise<string | undefined> {
    const gone = aborted(signal);
    try {
      while (this.#text === "") {
        if (signal.aborted || this.#ended) return undefined;
        this.#reading ??= this.#read();
        await Promise.race([this.#reading, gone.promise]);
      }
      const [key = ""] = KEY.exec(this.#text) ?? [];
      this.#text = this.#text.slice(key.length);
      return key;
    } finally {
      gone.forget();
    }
  }

  /** All that is left, once it has ended. Throws INVALID (exit 2) when it is more than `charsMax` UTF-16 units. */
  async rest(charsMax: number): Promise<string> {
    while (!this.#ended && this.#text.length <= charsMax) {
      this.#reading ??= this.#read();
      await this.#reading;
    }
    if (this.#text.length > charsMax) {
      throw new SysError("INVALID", `More than ${charsMax} characters came on stdin`, {
        exitCode: EXIT_USAGE,
      });
    }
    const text = this.#text;
    this.#text = "";
    return text;
  }

  #take(end: number): string | undefined {
    if (end < 0 && this.#text === "") return undefined;
    const cut = end < 0 ? this.#text.length : end;
    const line = this.#text.slice(0, cut).replace(/\r$/, "");
    this.#text = this.#text.slice(cut + 1);
    return line;
  }

  async #read(): Promise<void> {
    const buffer = new Uint8Array(READ_BYTES);
    try {
      const count = await this.#source.read(buffer);
      if (count === null) this.#ended = true;
      else this.#text += this.#decoder.decode(buffer.subarray(0, count), { stream: true });
    } catch {
      this.#ended = true;
    }
    this.#reading = undefined;
  }
}

function aborted(signal: AbortSignal): { promise: Promise<void>; forget(): void } {
  let stop = () => {};
  const promise = new Promise<void>((resolve) => {
    stop = () => resolve();
    signal.addEventListener("abort", stop, { once: true });
  });
  return { promise, forget: () => signal.removeEventListener("abort", stop) };
}
