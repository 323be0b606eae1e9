/** Counts trials of one suite on one scenario, samples them, and keeps what broke. */
import type { Scenario } from "./scenarios.ts";
import type { Uncut } from "./recovery.ts";

export interface Violation {
  /** Where, in words. */
  at: string;
  what: string[];
}

export interface Sampling {
  /** Of the trials, every n-th; 1: all. */
  every: number;
  /** Of the places at which a run has to be made before its trials are known, every n-th; left out: all. */
  everyPlace?: number;
}

/** Something that goes wrong, tried at every place of a scenario. */
export interface Suite {
  name: string;
  /** Scenarios for which it says something; all without it. */
  applies?(scenario: Scenario): boolean;
  run(scenario: Scenario, uncut: Uncut, tally: Tally): Promise<void>;
}

/** Spreads numbers, so that a sample doesn't fall in step with the variants of a trial. */
function mixed(number: number): number {
  const spread = Math.imul(number + 1, 0x9e3779b1);
  return (spread ^ (spread >>> 15)) >>> 0;
}

export class Tally {
  /** Places at which something was tried. */
  readonly places = new Set<string>();
  readonly violations: Violation[] = [];
  /** Trials that were made. */
  trials = 0;
  readonly #every: number;
  readonly #everyPlace: number;
  #number = 0;
  #place = 0;

  constructor({ every, everyPlace = 1 }: Sampling) {
    this.#every = every;
    this.#everyPlace = everyPlace;
  }

  /** Whether the trials at the next such place are made at all. */
  takesPlace(): boolean {
    const taken = mixed(this.#place) % this.#everyPlace === 0;
    this.#place += 1;
    return taken;
  }

  /** Whether the next trial is in the sample. */
  takes(): boolean {
    const taken = mixed(this.#number) % this.#every === 0;
    this.#number += 1;
    return taken;
  }

  /** Makes a trial if it is in the sample; what it throws is a violation too. */
  async try(place: string, variant: string, trial: () => Promise<string[]>): Promise<void> {
    if (!this.takes()) return;
    this.trials += 1;
    this.places.add(place);
    const what = await trial().catch((thrown) => [
      `threw ${thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown)}`,
    ]);
    if (what.length > 0) this.violations.push({ at: `${place}, ${variant}`, what });
  }

  /** Places of which at least one trial broke a promise. */
  get placesBroken(): number {
    return new Set(this.violations.map(({ at }) => at.split(",")[0])).size;
  }
}
