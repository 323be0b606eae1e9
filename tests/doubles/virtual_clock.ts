/** A clock that moves only when told to. Timers fire in the order of their times, then of their making; after each one all promise work it caused is let run. */
import { setImmediate } from "node:timers";
import type { Clock } from "../../src/base/clock.ts";

interface Timer {
  dueMs: number;
  order: number;
  fire: () => void;
}

/** Lets promise callbacks (and the runtime's own short I/O) run until the event loop has been round: a message port alone can be served within one turn. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

/** Rounds of the event loop, and real time, after which work that no timer drives is stuck: what it awaits may be the runtime's own I/O, which a busy machine takes its time over. */
const IDLE_ROUNDS_MAX = 200;
const IDLE_MS_MAX = 5_000;

export class VirtualClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;
  #order = 0;
  #jumpedMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
    this.#startMs = startMs;
  }

  now(): number {
    return this.#nowMs + this.#jumpedMs;
  }

  /** The wall clock alone moves: the machine slept. */
  jump(ms: number): void {
    this.#jumpedMs += ms;
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs;
  }

  /** Time passes and no timer fires: this process was stopped. They fire late, at the next move. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  after(ms: number, fire: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(ms, 0), order: this.#order++, fire };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer; undefined when none waits. */
  get nextInMs(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : next.dueMs - this.#nowMs;
  }

  /** Moves by `ms`, firing all that falls due on the way. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    for (let timer = this.#next(); timer && timer.dueMs <= endMs; timer = this.#next()) {
      this.#timers.delete(timer);
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      timer.fire();
      await settle();
    }
    this.#nowMs = endMs;
  }

  /** Moves from timer to timer until `work` is done. Throws when it isn't and no timer waits, or after `timersMax`. */
  async run<T>(work: Promise<T>, timersMax = 10_000): Promise<T> {
    let done = false;
    const watched = work.finally(() => done = true);
    watched.catch(() => {});
    let idleRounds = 0;
    let idleSinceMs = 0;
    for (let fired = 0; fired < timersMax;) {
      await settle();
      if (done) return await watched;
      const timer = this.#next();
      if (timer === undefined) {
        idleRounds += 1;
        if (idleRounds === 1) idleSinceMs = performance.now();
        if (idleRounds <= IDLE_ROUNDS_MAX) continue;
        if (performance.now() - idleSinceMs > IDLE_MS_MAX) {
          throw new Error("Stuck: no timer waits and the work isn't done");
        }
        await new Promise((resolve) => setTimeout(resolve, 1));
        continue;
      }
      idleRounds = 0;
      fired += 1;
      this.#timers.delete(timer);
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      timer.fire();
    }
    throw new Error(`Not done after ${timersMax} timers`);
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (
        next === undefined || timer.dueMs < next.dueMs ||
        (timer.dueMs === next.dueMs && timer.order < next.order)
      ) next = timer;
    }
    return next;
  }
}
