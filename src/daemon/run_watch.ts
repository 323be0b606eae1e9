/** Between the kernel's events and who watches: adds pid and time, takes out secrets, and never lets a watcher's fault reach the run. */
import type { Clock } from "../base/clock.ts";
import type { Json } from "../base/json.ts";
import type { RunEvent, RunObserver, RunReport } from "../base/operations.ts";
import { redactError } from "../base/redacted_error.ts";
import type { RedactingStream, Redaction, Redactor } from "../base/redaction.ts";
import type { Observer, WithoutHead } from "../kernel/ports.ts";

type Delta = Extract<WithoutHead<RunEvent>, { type: "model.delta" }>;

/** An event without secrets. */
export function redactEvent(event: RunEvent, redactor: Redactor): RunEvent {
  return redactor.redactJson(event as unknown as Json) as unknown as RunEvent;
}

/** A report without secrets: its result is text like any that was streamed. */
export function redactReport(report: RunReport, redactor: Redactor): RunReport {
  const { result, error, unknown_calls } = report;
  const redact = (text: string) => redactor.redact(text);
  return {
    ...report,
    result: redact(result),
    ...(error === undefined ? {} : {
      error: {
        ...error,
        message: redact(error.message),
        ...(error.hint === undefined ? {} : { hint: redact(error.hint) }),
      },
    }),
    ...(unknown_calls === undefined ? {} : {
      unknown_calls: unknown_calls.map((call) => ({
        ...call,
        ...(call.message === undefined ? {} : { message: redact(call.message) }),
      })),
    }),
  };
}

export class RunWatch {
  /** Pid of the run, once it has one. */
  pid = 0;
  /** The run's secrets, once they are known; nothing of a server is told before. */
  redaction: Redaction | undefined;
  readonly observer: Observer;
  readonly #watcher: RunObserver;
  readonly #clock: Clock;
  /** Streamed text that isn't all told yet. */
  #held: { event: Delta; stream: RedactingStream } | undefined;

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

  /** The report as it may be shown. */
  redactReport(report: RunReport): RunReport {
    return this.redaction === undefined ? report : redactReport(report, this.redaction.sink);
  }

  /** What `work` gives; what it throws holds no secrets that are known by then. */
  async withoutSecrets<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (thrown) {
      throw this.redaction === undefined ? thrown : redactError(thrown, this.redaction.sink);
    }
  }

  #emit(event: WithoutHead<RunEvent>): void {
    if (event.type === "model.delta" && this.redaction !== undefined) {
      return this.#emitDelta(event, this.redaction.sink);
    }
    this.#flushDelta();
    this.#tell(event);
  }

  /** A secret may come in several pieces: what could be the begin of one is held back until it is clear. */
  #emitDelta(event: Delta, sink: Redactor): void {
    const held = this.#held;
    if (held?.event.turn !== event.turn || held.event.kind !== event.kind) this.#flushDelta();
    this.#held ??= { event, stream: sink.stream() };
    const text = this.#held.stream.push(event.text);
    if (text !== "") this.#tell({ ...event, text });
  }

  #flushDelta(): void {
    const held = this.#held;
    this.#held = undefined;
    const text = held?.stream.flush() ?? "";
    if (held !== undefined && text !== "") this.#tell({ ...held.event, text });
  }

  #tell(event: WithoutHead<RunEvent>): void {
    const { type, ...rest } = event;
    const whole = { type, pid: this.pid, ts: this.#clock.now(), ...rest } as RunEvent;
    const safe = this.redaction === undefined ? whole : redactEvent(whole, this.redaction.sink);
    try {
      this.#watcher.onEvent(safe);
    } catch {
      // A watcher that fails must not take the run with it.
    }
  }
}
