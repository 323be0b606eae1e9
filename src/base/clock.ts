/** Time as a part that is handed in: the real clock here, a virtual one in tests. */

export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Milliseconds that never go back. */
  monotonic(): number;
  /** Calls `fire` once after `ms` (clamped to what a timer can hold); the returned function cancels it. An `idle` timer doesn't keep the process from ending. */
  after(ms: number, fire: () => void, options?: { idle?: boolean }): () => void;
}

/** Longest time a runtime timer can hold; a longer one would fire at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, fire, { idle = false } = {}) {
    const timer = setTimeout(fire, Math.min(Math.max(ms, 0), TIMER_MS_MAX));
    if (idle) Deno.unrefTimer(timer);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** What `work` gives, or what `late` gives when `ms` have passed first. `work` goes on; the caller owns it. */
export function within<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  late: () => T | Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => {
      try {
        resolve(late());
      } catch (thrown) {
        reject(thrown);
      }
    });
    work.then(resolve, reject).finally(cancel);
  });
}
