/** Between the kernel's events and who watches: adds pid and time, takes out secrets, and never lets a watcher's fault reach the run. */
import type { Clock } from "../base/clock.ts";
import type { Json } from "../base/json.ts";
import type { RunEvent, RunObserver, RunReport } from "../base/operations.ts";
import type { Redaction } from "../base/redaction.ts";
import type { Observer, WithoutHead } from "../kernel/ports.ts";

export class RunWatch {
  /** Pid of the run, once it has one. */
  pid = 0;
  /** The run's secrets, once they are known; nothing of a server is told before. */
  redaction: Redaction | undefined;
  readonly observer: Observer;
  readonly #watcher: RunObserver;
  readonly #clock: Clock;

  constructor(watcher: RunObserver, clock: Clock) {
    this.#watcher = watcher;
    this.#clock = clock;
    this.observer = {
      emit: (event) => this.#emit(event),
      ...(watcher.decideUnknown === undefined ? {} : {
        decideUnknown: async (call, signal) => await watcher.decideUnknown?.(call, signal),
      }),
    };
  }

  /** The report without secrets in its error; its result is the model's own text. */
  redactReport(report: RunReport): RunReport {
    const { redaction } = this;
    if (report.error === undefined || redaction === undefined) return report;
    const { message, hint } = report.error;
    return {
      ...report,
      error: {
        ...report.error,
        message: redaction.sink.redact(message),
        ...(hint === undefined ? {} : { hint: redaction.sink.redact(hint) }),
      },
    };
  }

  #emit(event: WithoutHead<RunEvent>): void {
    const { type, ...rest } = event;
    const whole = { type, pid: this.pid, ts: this.#clock.now(), ...rest };
    // Streamed text is the model's own, and it has seen nothing that wasn't redacted.
    const safe = event.type === "model.delta"
      ? whole
      : this.redaction?.sink.redactJson(whole as unknown as Json) ?? whole;
    try {
      this.#watcher.onEvent(safe as unknown as RunEvent);
    } catch {
      // A watcher that fails must not take the run with it.
    }
  }
}
