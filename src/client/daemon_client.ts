/**
 * The one typed client of the daemon: runs over the socket as if they were here.
 *
 * A run's connection carries its events and questions; closing it tells the daemon that the client is gone. Answers and signals go as requests of their own.
 */
import { type Clock, systemClock } from "../base/clock.ts";
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
  ServerOpener,
} from "../base/operations.ts";
import type { HealthRow } from "../base/mount_health.ts";
import type { ServerObserver, ServerRequest, ServerSession } from "../base/server_operations.ts";
import type { JudgeObserver, JudgeRequest } from "../base/server_verdict.ts";
import type { VfsAnswer, VfsRequest } from "../base/vfs_operations.ts";
import type { OperationName, Question, RunLine } from "../base/wire.ts";
import { type DaemonSocket, errorOf } from "./daemon_socket.ts";
import { hintFor } from "./find_daemon.ts";
import { judgeServers } from "./judge_client.ts";
import { useVfs } from "./vfs_client.ts";
import { openServer } from "./server_client.ts";
import { Silence, SILENCE_LIMITS, type SilenceLimits } from "./silence.ts";

/** What a client knows of its daemon, and how it judges its silence. */
export interface DaemonFacts {
  /** OS pid of the daemon. */
  osPid?: number;
  clock?: Clock;
  silence?: SilenceLimits;
}

/** A look at what a daemon knows shows less where it doesn't answer so soon, milliseconds. */
const LOOK_MS_MAX = 2_000;

export class DaemonClient implements LiveSystem, ServerOpener {
  readonly #socket: DaemonSocket;
  readonly #facts: DaemonFacts;

  constructor(socket: DaemonSocket, facts: DaemonFacts = {}) {
    this.#socket = socket;
    this.#facts = facts;
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
    try {
      await this.#socket.value("control", { run, signal });
    } catch (thrown) {
      const { osPid, clock = systemClock } = this.#facts;
      const isSilent = thrown instanceof SysError && thrown.code === "TIMEOUT" &&
        thrown.exitCode === EXIT_UNREACHABLE;
      if (!isSilent || osPid === undefined) throw thrown;
      throw thrown.with({ hint: await hintFor(osPid, clock) });
    }
  }

  async openServer(request: ServerRequest, observer: ServerObserver): Promise<ServerSession> {
    const { clock = systemClock, silence } = this.#facts;
    return await openServer(this.#socket, request, observer, { clock, silence });
  }

  async judgeServers(request: JudgeRequest, observer: JudgeObserver): Promise<void> {
    const { clock = systemClock, silence } = this.#facts;
    await judgeServers(this.#socket, request, observer, { clock, silence });
  }

  async mountHealth(): Promise<HealthRow[]> {
    const answer = this.#socket.value<{ rows: HealthRow[] }>("mountHealth", undefined, LOOK_MS_MAX);
    return (await answer).rows;
  }

  async vfs(request: VfsRequest, signal?: AbortSignal): Promise<VfsAnswer> {
    const { clock = systemClock, silence } = this.#facts;
    return await useVfs(this.#socket, request, { clock, silence, signal });
  }

  async #follow(
    operation: OperationName,
    body: unknown,
    observer: RunObserver,
  ): Promise<RunHandle> {
    const follower = new Follower(this.#socket, observer, this.#facts);
    const lines = this.#socket.lines<RunLine>(operation, body, follower.gaveUp);
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
  readonly #clock: Clock;
  readonly #osPid: number | undefined;
  readonly #silence: Silence;
  readonly #open = new Map<string, AbortController>();
  readonly #gaveUp = new AbortController();
  #pid = 0;

  constructor(socket: DaemonSocket, observer: RunObserver, facts: DaemonFacts) {
    this.#socket = socket;
    this.#observer = observer;
    this.#clock = facts.clock ?? systemClock;
    this.#osPid = facts.osPid;
    this.#silence = new Silence(this.#clock, facts.silence ?? SILENCE_LIMITS, {
      silent: (seconds) => void this.#tellSilent(seconds),
      back: () => this.#notice(`${this.#name()} is back`),
      lost: (seconds) => void this.#giveUp(seconds),
    });
  }

  /** Aborts once the daemon was silent for too long. */
  get gaveUp(): AbortSignal {
    return this.#gaveUp.signal;
  }

  /** Up to the line that says that the run is there. */
  async accepted(lines: AsyncGenerator<RunLine>): Promise<{ pid: number; run_id: string }> {
    try {
      for (;;) {
        const line = await this.#next(lines, lostError());
        if (line.line === "accepted") {
          this.#pid = line.pid;
          return line;
        }
        if (line.line === "error") throw errorOf(line);
        this.#take(line);
      }
    } catch (thrown) {
      this.#silence.close();
      throw thrown;
    }
  }

  async report(lines: AsyncGenerator<RunLine>, runId: string): Promise<RunReport> {
    try {
      for (;;) {
        const line = await this.#next(lines, lostError(runId));
        if (line.line === "report") return line.report;
        if (line.line === "error") throw errorOf(line);
        this.#take(line);
      }
    } finally {
      this.#silence.close();
      for (const question of this.#open.values()) question.abort();
      await lines.return(undefined);
    }
  }

  async #next(lines: AsyncGenerator<RunLine>, atEnd: SysError): Promise<RunLine> {
    const { done, value } = await lines.next();
    if (done) throw atEnd;
    this.#silence.heard();
    return value;
  }

  #name(): string {
    return this.#osPid === undefined ? "The daemon" : `The daemon (process ${this.#osPid})`;
  }

  /** Told as the system's other notices are, wherever those go. */
  #notice(message: string): void {
    const ts = this.#clock.now();
    this.#observer.onEvent({ type: "notice", pid: this.#pid, ts, message });
  }

  async #tellSilent(seconds: number): Promise<void> {
    const hint = await this.#hint();
    this.#notice(`${this.#name()} has said nothing for ${seconds} s${hint ? `. ${hint}` : ""}`);
  }

  async #giveUp(seconds: number): Promise<void> {
    this.#gaveUp.abort(
      new SysError("TIMEOUT", `${this.#name()} has said nothing for ${seconds} s`, {
        exitCode: EXIT_UNREACHABLE,
        hint: await this.#hint(),
      }),
    );
  }

  async #hint(): Promise<string | undefined> {
    return this.#osPid === undefined ? undefined : await hintFor(this.#osPid, this.#clock);
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
