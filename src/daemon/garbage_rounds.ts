/**
 * The daemon's own removal of old runs: shortly after its start and once a day, quietly, by what the user's `config.yaml` said at its start.
 *
 * It waits a little first, so that the run for which the daemon was started isn't held up; what fails is tried again at the next round.
 */
import { type Clock, within } from "../base/clock.ts";
import type { Storage } from "../base/storage.ts";
import { Pids } from "../kernel/pids.ts";
import type { ConfigFile } from "../manifest/config_file.ts";
import { MAX_RUNS, RETENTION_MS } from "../manifest/load_config.ts";
import { collectGarbage, type GarbageDeps } from "./garbage.ts";
import { Runs } from "./runs.ts";

/** Between the daemon's start and its first round. */
export const FIRST_ROUND_MS = 10_000;
/** Between one round and the next. */
export const ROUND_MS = 24 * 3_600_000;
/** How long the end of the daemon waits for a removal under way. */
const CLOSE_MS_MAX = 1_000;

export interface GarbageRoundsDeps {
  storage: Storage;
  clock: Clock;
  /** The state folder. */
  state: string;
  osPid: number;
  instance: string;
  settings: Pick<ConfigFile, "retentionMs" | "maxRuns">;
}

export class GarbageRounds {
  readonly #clock: Clock;
  readonly #deps: GarbageDeps;
  readonly #limits: { olderThanMs: number; maxRuns: number };
  readonly #abort = new AbortController();
  #cancel = () => {};
  #round: Promise<void> = Promise.resolve();

  constructor({ storage, clock, state, osPid, instance, settings }: GarbageRoundsDeps) {
    this.#clock = clock;
    this.#deps = {
      storage,
      runs: new Runs(storage, new Pids(storage, clock, state), state),
      taker: { clock, osPid, instance },
    };
    const { retentionMs = RETENTION_MS, maxRuns = MAX_RUNS } = settings;
    this.#limits = { olderThanMs: retentionMs, maxRuns };
  }

  start(): void {
    this.#after(FIRST_ROUND_MS);
  }

  /** Ends a round under way between two runs, or leaves what takes longer to the next collection. */
  async close(): Promise<void> {
    this.#abort.abort();
    this.#cancel();
    await within(this.#clock, CLOSE_MS_MAX, this.#round, () => {});
  }

  #after(ms: number): void {
    if (this.#abort.signal.aborted) return;
    this.#cancel = this.#clock.after(ms, () => {
      this.#round = this.#collect().then(() => this.#after(ROUND_MS));
    });
  }

  async #collect(): Promise<void> {
    const { olderThanMs, maxRuns } = this.#limits;
    if (olderThanMs === Infinity && maxRuns === Infinity) return;
    const { signal } = this.#abort;
    await collectGarbage(this.#deps, { olderThanMs, maxRuns, signal }).catch(() => {});
  }
}
