/** One limit over many steps: a signal that aborts when the time is up or the caller wants no more. */
import type { Clock } from "../base/clock.ts";

export class Deadline {
  readonly #clock: Clock;
  readonly #endMs: number;
  readonly #controller = new AbortController();
  readonly #cancelTimer: () => void;
  readonly #outer: AbortSignal | undefined;
  readonly #onOuter = () => this.#controller.abort(this.#outer?.reason);
  #expired = false;

  constructor(clock: Clock, limitMs: number, outer?: AbortSignal) {
    this.#clock = clock;
    this.#endMs = clock.monotonic() + limitMs;
    this.#outer = outer;
    this.#cancelTimer = clock.after(limitMs, () => {
      this.#expired = true;
      this.#controller.abort(new Error("The time is up"));
    });
    if (outer?.aborted) this.#onOuter();
    else outer?.addEventListener("abort", this.#onOuter, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether it was the time, not the caller. */
  get expired(): boolean {
    return this.#expired;
  }

  get remainingMs(): number {
    return Math.max(0, this.#endMs - this.#clock.monotonic());
  }

  /** Frees timer and listener; must be called in the end. */
  release(): void {
    this.#cancelTimer();
    this.#outer?.removeEventListener("abort", this.#onOuter);
  }
}

/** What `work` gives, or a rejection with the signal's reason as soon as it aborts. `work` goes on; its later failure is of no interest. */
export function untilAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) {
      work.catch(() => {});
      return reject(signal.reason);
    }
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
