/**
 * Lines on their way to one client, as a body that is read as fast as the client reads.
 *
 * The queue is bounded: when a client is too slow its streamed text goes first, then its events; it is told how many. What a client must get (the first line, questions, the report) is never dropped.
 */

/** Events that wait for a slow client, and how long all that waits may be before another one doesn't, characters. */
export const EVENTS_WAITING_MAX = 4_096;
export const CHARS_WAITING_MAX = 64 * 1024 * 1024;

/** What a queue says by itself. */
type OwnLine = { line: "alive" } | { line: "missed"; events: number };

export class LineQueue<Line extends { line: string }> {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** As they go out. */
  readonly #lines: string[] = [];
  #chars = 0;
  readonly #encoder = new TextEncoder();
  #events = 0;
  #missed = 0;
  #ended = false;
  #wake: (() => void) | undefined;
  /** Called when the client has gone before the end. */
  onGone: (() => void) | undefined;

  constructor() {
    this.body = new ReadableStream({
      pull: (controller) => this.#pull(controller),
      cancel: () => this.#gone(),
    }, { highWaterMark: 0 });
  }

  /** A line that may be dropped. */
  event(line: Line): void {
    if (this.#ended) return;
    if (this.#events >= EVENTS_WAITING_MAX || this.#chars >= CHARS_WAITING_MAX) {
      this.#missed += 1;
      return;
    }
    this.#events += 1;
    this.push(line);
  }

  push(line: Line | OwnLine): void {
    if (this.#ended) return;
    const text = `${JSON.stringify(line)}\n`;
    this.#lines.push(text);
    this.#chars += text.length;
    this.#wake?.();
  }

  /** That the daemon is alive, unless lines wait that say so. */
  alive(): void {
    if (this.#lines.length === 0) this.push({ line: "alive" });
  }

  /** The last line; the body ends after it. */
  end(line: Line): void {
    this.push(line);
    this.#ended = true;
    this.#wake?.();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> {
    while (this.#lines.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => this.#wake = resolve);
      this.#wake = undefined;
    }
    const text = this.#lines.join("");
    this.#lines.length = 0;
    this.#chars = 0;
    this.#events = 0;
    if (text !== "") controller.enqueue(this.#encoder.encode(text + this.#missedLine()));
    if (this.#ended) controller.close();
  }

  #missedLine(): string {
    if (this.#missed === 0) return "";
    const line: OwnLine = { line: "missed", events: this.#missed };
    this.#missed = 0;
    return `${JSON.stringify(line)}\n`;
  }

  #gone(): void {
    const before = !this.#ended;
    this.#ended = true;
    this.#lines.length = 0;
    if (before) this.onGone?.();
  }
}
