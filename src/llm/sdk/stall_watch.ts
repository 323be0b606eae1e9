/** Aborts its signal when nothing was touched for a while. One timer, moved only when it fires. */
import type { Clock } from "../../base/clock.ts";
import { formatDuration } from "../../base/duration.ts";
import { SysError } from "../../base/errors.ts";

export class StallWatch {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #limitMs: number;
  #touchedMs: number;
  #cancel: () => void;

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#touchedMs = clock.monotonic();
    this.#cancel = clock.after(limitMs, () => this.#check());
  }

  /** Aborts with TIMEOUT. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  touch(): void {
    this.#touchedMs = this.#clock.monotonic();
  }

  stop(): void {
    this.#cancel();
  }

  #check(): void {
    const restMs = this.#touchedMs + this.#limitMs - this.#clock.monotonic();
    if (restMs > 0) {
      this.#cancel = this.#clock.after(restMs, () => this.#check());
      return;
    }
    this.#controller.abort(
      new SysError(
        "TIMEOUT",
        `The model sent nothing for ${formatDuration(this.#limitMs)} (models.timeout)`,
      ),
    );
  }
}
