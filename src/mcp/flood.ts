/**
 * What keeps one server's output from taking the event loop, the disk and the log.
 *
 * A pace gives other work its turn however much there is to read, and slows down what nobody wants; an allowance says how much of something a while may bring.
 */
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";

/** Longest work on one server's output before all else gets its turn, milliseconds. */
export const TURN_MS_MAX = 8;
/** What a piece of useless output counts for at least: taking it from the pipe isn't seen by the clock here. */
const PIECE_MS_MIN = 0.25;
/** Pause after a turn spent on useless output, in lengths of the turn: it gets a quarter of the time at most. */
const USELESS_PAUSE_TURNS = 3;

/** The reading of one pipe. What is not read stays in the pipe and holds its writer back. */
export class Pace {
  readonly #clock: Clock;
  /** Up to here the work is counted. */
  #sinceMs: number;
  #workedMs = 0;
  /** What the piece at hand counts for besides the work on it. */
  #pieceMs = 0;
  #useful = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonic();
  }

  /** A piece of output is taken up. */
  begin(): void {
    this.#sinceMs = this.#clock.monotonic();
    this.#pieceMs = PIECE_MS_MIN;
  }

  /** Something in this piece was worth reading: it counts for the work on it alone. */
  useful(): void {
    this.#useful = true;
    this.#pieceMs = 0;
  }

  /** Undefined while there is time left; else resolves when it is this reader's turn again. */
  rest(): Promise<void> | undefined {
    const nowMs = this.#clock.monotonic();
    this.#workedMs += nowMs - this.#sinceMs + this.#pieceMs;
    this.#sinceMs = nowMs;
    this.#pieceMs = 0;
    return this.#workedMs < TURN_MS_MAX ? undefined : this.#pause();
  }

  async #pause(): Promise<void> {
    const pauseMs = this.#useful ? 0 : this.#workedMs * USELESS_PAUSE_TURNS;
    this.#useful = false;
    await sleep(this.#clock, pauseMs);
    this.#workedMs = 0;
    this.#sinceMs = this.#clock.monotonic();
  }
}

/** Some at once, and so much more with every second. Once used up it gives nothing until a quarter is there again, so that what it lets through comes in long pieces. */
export class Allowance {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #perSecond: number;
  #left: number;
  #sinceMs: number;
  #spent = false;

  constructor(clock: Clock, { max, perSecond }: { max: number; perSecond: number }) {
    this.#clock = clock;
    this.#max = max;
    this.#perSecond = perSecond;
    this.#left = max;
    this.#sinceMs = clock.monotonic();
  }

  /** Whether there was so much left; if not, nothing is taken. */
  take(amount: number): boolean {
    const nowMs = this.#clock.monotonic();
    this.#left = Math.min(
      this.#max,
      this.#left + (nowMs - this.#sinceMs) / 1000 * this.#perSecond,
    );
    this.#sinceMs = nowMs;
    this.#spent = amount > this.#left || (this.#spent && this.#left < this.#max / 4);
    if (!this.#spent) this.#left -= amount;
    return !this.#spent;
  }

  /** All of it is there again. */
  refill(): void {
    this.#spent = false;
    this.#left = this.#max;
  }
}
