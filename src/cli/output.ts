/**
 * stdout and stderr as bounded queues that never block the running system and never crash it.
 *
 * Writes are queued and sent in the background: a reader that stalls must not stop a run that lives in the same OS process. A reader that has gone (EPIPE) makes
 * the stream silent; any other failure, such as a full disk, is kept for who must tell of it. Text that may be dropped is refused while more than `BUFFERED_CHARS_MAX` wait.
 */

/** How much may wait for a slow reader before droppable text is refused. */
export const BUFFERED_CHARS_MAX = 16 * 1024 * 1024;

/** Where bytes go: a file of the OS, or memory in tests. */
export interface Sink {
  write(bytes: Uint8Array): Promise<number>;
  isTerminal(): boolean;
}

export class Output {
  /** Whether a person reads it on a terminal. */
  readonly isTerminal: boolean;
  readonly #sink: Sink;
  readonly #encoder = new TextEncoder();
  #queue: string[] = [];
  #queuedChars = 0;
  #broken = false;
  #failure: unknown;
  #pump: Promise<void> | undefined;

  constructor(sink: Sink) {
    this.#sink = sink;
    this.isTerminal = sink.isTerminal();
  }

  /** Why text could not be written, though its reader is still there; undefined while all was. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Queues text that must not be lost. */
  write(text: string): void {
    if (this.#broken || text === "") return;
    this.#queue.push(text);
    this.#queuedChars += text.length;
    this.#pump ??= this.#drain();
  }

  /** Queues text unless too much waits already; says whether it did. */
  offer(text: string): boolean {
    if (this.#queuedChars > BUFFERED_CHARS_MAX) return false;
    this.write(text);
    return true;
  }

  /** Resolves once everything queued was taken by the reader, or the reader has gone. */
  async flush(): Promise<void> {
    while (this.#pump) await this.#pump;
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0 && !this.#broken) {
      const bytes = this.#encoder.encode(this.#queue.join(""));
      const taken = this.#queuedChars;
      this.#queue = [];
      await this.#send(bytes);
      this.#queuedChars -= taken;
    }
    this.#pump = undefined;
  }

  async #send(bytes: Uint8Array): Promise<void> {
    let sent = 0;
    try {
      while (sent < bytes.length) sent += await this.#sink.write(bytes.subarray(sent));
    } catch (thrown) {
      this.#broken = true;
      if (!this.#isGone(thrown)) this.#failure = thrown;
      this.#queue = [];
    }
  }

  /** A closed pipe, or a terminal that was hung up: nobody is left to read. */
  #isGone(thrown: unknown): boolean {
    if (thrown instanceof Deno.errors.BrokenPipe) return true;
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
    return this.isTerminal && code === "EIO";
  }
}
