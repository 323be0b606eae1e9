/**
 * The one typed client of the daemon: runs over the socket as if they were here.
 *
 * A run's connection carries its events and questions; closing it tells the daemon that the client is gone. Answers and signals go as requests of their own.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import { shortRunId } from "../base/ids.ts";
import type {
  AttachFrom,
  LiveSystem,
  ResumeRequest,
  RunHandle,
  RunObserver,
  RunReport,
  RunRequest,
  RunSignal,
} from "../base/operations.ts";
import type { OperationName, Question, RunLine } from "../base/wire.ts";
import { type DaemonSocket, errorOf } from "./daemon_socket.ts";

export class DaemonClient implements LiveSystem {
  readonly #socket: DaemonSocket;

  constructor(socket: DaemonSocket) {
    this.#socket = socket;
  }

  run(request: RunRequest, observer: RunObserver): Promise<RunHandle> {
    return this.#follow("run", request, observer);
  }

  resume(request: ResumeRequest, observer: RunObserver): Promise<RunHandle> {
    return this.#follow("resume", request, observer);
  }

  attach(run: string, from: AttachFrom, observer: RunObserver): Promise<RunHandle> {
    const interactive = observer.decideUnknown !== undefined;
    return this.#follow("attach", { run, from, interactive }, observer);
  }

  async signal(run: string, signal: RunSignal): Promise<void> {
    await this.#socket.value("control", { run, signal });
  }

  async #follow(
    operation: OperationName,
    body: unknown,
    observer: RunObserver,
  ): Promise<RunHandle> {
    const lines = this.#socket.lines<RunLine>(operation, body);
    const follower = new Follower(this.#socket, observer);
    const { pid, run_id } = await follower.accepted(lines);
    const done = follower.report(lines, run_id).catch((thrown) => lostReport(pid, run_id, thrown));
    const tell = (message: object) => {
      this.#socket.value("control", { run: run_id, ...message }).catch(() => {});
    };
    return {
      pid,
      runId: run_id,
      suspend: (reason) => tell({ suspend: reason }),
      kill: (signal) => tell({ signal }),
      done,
    };
  }
}

/** One connection that follows a run. */
class Follower {
  readonly #socket: DaemonSocket;
  readonly #observer: RunObserver;
  readonly #open = new Map<string, AbortController>();

  constructor(socket: DaemonSocket, observer: RunObserver) {
    this.#socket = socket;
    this.#observer = observer;
  }

  /** Up to the line that says that the run is there. */
  async accepted(lines: AsyncGenerator<RunLine>): Promise<{ pid: number; run_id: string }> {
    for (;;) {
      const { done, value: line } = await lines.next();
      if (done) throw lostError();
      if (line.line === "accepted") return line;
      if (line.line === "error") throw errorOf(line);
      this.#take(line);
    }
  }

  async report(lines: AsyncGenerator<RunLine>, runId: string): Promise<RunReport> {
    try {
      for (;;) {
        const { done, value: line } = await lines.next();
        if (done) throw lostError(runId);
        if (line.line === "report") return line.report;
        if (line.line === "error") throw errorOf(line);
        this.#take(line);
      }
    } finally {
      for (const question of this.#open.values()) question.abort();
      await lines.return(undefined);
    }
  }

  #take(line: RunLine): void {
    if (line.line === "event") this.#observer.onEvent(line.event);
    else if (line.line === "missed") this.#observer.onMissed?.(line.events);
    else if (line.line === "question") void this.#ask(line.id, line.question);
    else if (line.line === "withdrawn") this.#open.get(line.id)?.abort();
  }

  async #ask(id: string, question: Question): Promise<void> {
    const abort = new AbortController();
    this.#open.set(id, abort);
    try {
      const answer = question.kind === "unknown"
        ? await this.#observer.decideUnknown?.(question.call, abort.signal)
        : await this.#observer.confirmTrust?.(question.question);
      if (!abort.signal.aborted) await this.#socket.value("answer", { id, answer: answer ?? null });
    } catch {
      // The daemon takes a missing answer as none.
    } finally {
      this.#open.delete(id);
    }
  }
}

function lostError(runId?: string): SysError {
  return new SysError("DEVICE_DISCONNECTED", "The daemon was lost in mid-run", {
    exitCode: EXIT_UNREACHABLE,
    hint: runId === undefined
      ? "rnix ps -a shows what has become of the run"
      : `Go on with: rnix resume ${shortRunId(runId)}`,
  });
}

/** The report where there will be none: the run is interrupted, wherever it was. */
function lostReport(pid: number, runId: string, thrown: unknown): RunReport {
  const error = thrown instanceof SysError ? thrown : lostError(runId);
  return {
    pid,
    run_id: runId,
    state: "suspended",
    reason: "interrupted",
    result: "",
    exit_code: EXIT_UNREACHABLE,
    turns: 0,
    tokens_used: 0,
    cost_usd: null,
    elapsed_ms: 0,
    error: {
      code: error.code,
      message: error.message,
      hint: error.hint ?? `Go on with: rnix resume ${shortRunId(runId)}`,
    },
  };
}
