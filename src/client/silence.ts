/**
 * Notices that a daemon which is followed has gone silent: told of after a while, given up in the end.
 *
 * It counts looks and not time: a client that was itself stopped (Ctrl-Z, a sleeping machine) finds what the daemon said meanwhile at its next look, and must not take its own absence for the daemon's.
 */
import type { Clock } from "../base/clock.ts";
import { ALIVE_MS } from "../base/wire.ts";

/** When a daemon is called silent, and when it is given up, in looks. */
export interface SilenceLimits {
  /** Between two looks, milliseconds. */
  lookMs: number;
  toldLooks: number;
  lostLooks: number;
}

export const SILENCE_LIMITS: SilenceLimits = {
  lookMs: ALIVE_MS,
  toldLooks: 5,
  lostLooks: 30,
};

/** What comes of it; each with how long nothing was heard, seconds. */
export interface SilenceHearer {
  silent(seconds: number): void;
  /** Something was heard after `silent`. */
  back(): void;
  /** The last that is called. */
  lost(seconds: number): void;
}

export class Silence {
  readonly #clock: Clock;
  readonly #limits: SilenceLimits;
  readonly #hearer: SilenceHearer;
  #looks = 0;
  #cancel = () => {};

  /** Begins to look. */
  constructor(clock: Clock, limits: SilenceLimits, hearer: SilenceHearer) {
    this.#clock = clock;
    this.#limits = limits;
    this.#hearer = hearer;
    this.#wait();
  }

  /** The daemon said something. */
  heard(): void {
    const wasTold = this.#looks >= this.#limits.toldLooks;
    this.#looks = 0;
    if (wasTold) this.#hearer.back();
  }

  /** Looks no more. Idempotent. */
  close(): void {
    this.#cancel();
  }

  #wait(): void {
    this.#cancel = this.#clock.after(this.#limits.lookMs, () => this.#look());
  }

  #look(): void {
    const { lookMs, toldLooks, lostLooks } = this.#limits;
    this.#looks += 1;
    const seconds = this.#looks * lookMs / 1000;
    if (this.#looks >= lostLooks) return this.#hearer.lost(seconds);
    if (this.#looks === toldLooks) this.#hearer.silent(seconds);
    this.#wait();
  }
}
