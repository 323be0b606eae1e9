/**
 * Answers of a person: lines of stdin, one question at a time.
 *
 * A read that nobody waits for any more can't be taken back, so it stays pending and its line goes to the next question.
 */

/** Where bytes come from; `null` at the end. */
export interface Source {
  read(buffer: Uint8Array): Promise<number | null>;
  isTerminal(): boolean;
}

const LINE_BYTES_MAX = 64 * 1024;

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

  /** The next line without its break; undefined at the end of input or when the signal aborts first. */
  async line(signal: AbortSignal): Promise<string | undefined> {
    const gone = aborted(signal);
    try {
      while (!signal.aborted) {
        const end = this.#text.indexOf("\n");
        if (end >= 0 || this.#ended || this.#text.length > LINE_BYTES_MAX) return this.#take(end);
        this.#reading ??= this.#read();
        await Promise.race([this.#reading, gone.promise]);
      }
      return undefined;
    } finally {
      gone.forget();
    }
  }

  #take(end: number): string | undefined {
    if (end < 0 && this.#text === "") return undefined;
    const cut = end < 0 ? this.#text.length : end;
    const line = this.#text.slice(0, cut).replace(/\r$/, "");
    this.#text = this.#text.slice(cut + 1);
    return line;
  }

  async #read(): Promise<void> {
    const buffer = new Uint8Array(4096);
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
