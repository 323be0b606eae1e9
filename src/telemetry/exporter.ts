/**
 * Sends spans to a collector, a batch at a time, behind the run's back.
 *
 * Invariants
 * 1. `add` never throws and never waits. What waits to be sent has a bound; spans beyond it are lost.
 * 2. One request at a time; each has a limit, and a batch is tried a bounded number of times: a collector that is down or slow costs nothing but its spans.
 * 3. `close` sends what is left within a limit of its own, whatever the collector does; nothing is sent afterwards.
 * 4. That spans were lost is told once, without the address and the headers.
 */
import { type Clock, sleep } from "../base/clock.ts";
import { exportRequest, type Origin } from "./otlp.ts";
import type { SpanRecord } from "./span.ts";

/** Spans that may wait. */
export const WAITING_MAX = 2_048;
const BATCH_MAX = 256;
/** How long a first span waits for more, milliseconds. */
export const GATHER_MS = 1_000;
/** Longest time of one request, milliseconds. */
export const REQUEST_MS_MAX = 5_000;
/** Waits before a batch is sent again, milliseconds. */
const RETRY_WAITS_MS = [1_000, 4_000] as const;
/** How long what is left may take at the end, milliseconds. */
export const CLOSE_MS_MAX = 3_000;

/** Answers after which the specification lets a request be sent again. */
const PASSING_STATUS: readonly number[] = [429, 502, 503, 504];

/** Sends one request; gives the status of the answer. Rejects where none came, with the reason of the signal once it aborts. */
export type Post = (body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<number>;

export interface ExporterOptions {
  clock: Clock;
  post: Post;
  origin: Origin;
  /** Told once, the first time that spans are lost. */
  onLost(message: string): void;
}

export class SpanExporter {
  readonly #options: ExporterOptions;
  /** Aborts when the time for what is left is up. */
  readonly #stop = new AbortController();
  /** Aborts when nothing more comes: there is no time left for waits. */
  readonly #hurry = new AbortController();
  #waiting: SpanRecord[] = [];
  #sending: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #closed = false;
  #isToldOfLoss = false;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  add(span: SpanRecord): void {
    if (this.#closed) return;
    if (this.#waiting.length >= WAITING_MAX) return this.#lose("the collector is too slow");
    this.#waiting.push(span);
    if (this.#waiting.length >= BATCH_MAX) void this.#send();
    else this.#gather();
  }

  /** Resolves when what is left has been sent, or its time is up. Idempotent. */
  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#hurry.abort();
      const late = this.#options.clock.after(CLOSE_MS_MAX, () => this.#stop.abort());
      await this.#send();
      late();
      this.#stop.abort();
    }
    await this.#sending;
  }

  #gather(): void {
    this.#cancelTimer ??= this.#options.clock.after(GATHER_MS, () => void this.#send(), {
      idle: true,
    });
  }

  #send(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#sending ??= this.#sendAll().finally(() => this.#sending = undefined);
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#stop.signal.aborted) {
      await this.#sendBatch(this.#waiting.splice(0, BATCH_MAX));
    }
    if (this.#waiting.length > 0) this.#lose("the collector is too slow");
    this.#waiting = [];
  }

  async #sendBatch(batch: readonly SpanRecord[]): Promise<void> {
    const { clock, origin } = this.#options;
    const body = new TextEncoder().encode(JSON.stringify(exportRequest(batch, origin)));
    for (let attempt = 0;; attempt += 1) {
      const { isTaken, why, mayPass } = await this.#post(body);
      if (isTaken) return;
      const waitMs = RETRY_WAITS_MS[attempt];
      if (!mayPass || waitMs === undefined || this.#closed) return this.#lose(why);
      await sleep(clock, waitMs, this.#hurry.signal).catch(() => {});
    }
  }

  async #post(
    body: Uint8Array<ArrayBuffer>,
  ): Promise<{ isTaken: boolean; why: string; mayPass: boolean }> {
    const { clock, post } = this.#options;
    const limit = new AbortController();
    const late = clock.after(REQUEST_MS_MAX, () => limit.abort());
    const signal = AbortSignal.any([this.#stop.signal, limit.signal]);
    try {
      const status = await unlessAborted(post(body, signal), signal);
      const isTaken = status >= 200 && status < 300;
      const mayPass = PASSING_STATUS.includes(status);
      return { isTaken, why: `the collector answers with status ${status}`, mayPass };
    } catch {
      const why = signal.aborted ? "the collector is too slow" : "the collector can't be reached";
      return { isTaken: false, why, mayPass: true };
    } finally {
      late();
    }
  }

  #lose(why: string): void {
    if (this.#isToldOfLoss) return;
    this.#isToldOfLoss = true;
    this.#options.onLost(`Telemetry is incomplete: ${why}`);
  }
}

/** What `work` gives; it is given up, not awaited, once the signal aborts. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    work.catch(() => {});
  }
}
