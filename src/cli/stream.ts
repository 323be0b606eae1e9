/** `run --stream`: one JSON event a line on stdout; the last line is `run.report` with what the envelope would hold. */
import type { Clock } from "../base/clock.ts";
import type { ErrorBody, RunEvent, RunObserver, RunReport } from "../base/operations.ts";
import type { Output } from "./output.ts";
import { jsonText } from "./plain_text.ts";
import { reportError } from "./report.ts";

export class StreamWriter implements RunObserver {
  readonly #output: Output;
  readonly #clock: Clock;
  #missed = 0;

  constructor(output: Output, clock: Clock) {
    this.#output = output;
    this.#clock = clock;
  }

  /** A reader that is far too slow misses events, and is told how many. */
  onEvent(event: RunEvent): void {
    if (this.#missed > 0) {
      const { pid, ts } = event;
      const gap = { type: "stream.missed", pid, ts, events: this.#missed };
      if (this.#output.offer(line(gap))) this.#missed = 0;
    }
    if (this.#missed > 0 || !this.#output.offer(line(event))) this.#missed += 1;
  }

  /** Events were lost on their way here. */
  onMissed(events: number): void {
    this.#missed += events;
  }

  /** The last line, for a run that has ended or is suspended. */
  report(report: RunReport): void {
    const error = reportError(report);
    this.end({ pid: report.pid, data: report, ...(error === undefined ? {} : { error }) });
  }

  /** The last line. */
  end(last: { pid: number | null; data?: RunReport; error?: ErrorBody }): void {
    const { pid, ...rest } = last;
    const ts = this.#clock.now();
    if (this.#missed > 0) {
      this.#output.write(line({ type: "stream.missed", pid, ts, events: this.#missed }));
    }
    const ok = rest.error === undefined;
    this.#output.write(line({ type: "run.report", pid, ts, ok, ...rest }));
  }
}

function line(value: object): string {
  return `${jsonText(value)}\n`;
}
