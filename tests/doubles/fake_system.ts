/** A running system that does nothing but what a test tells it to: requests are recorded, events and reports are the test's. */
import type {
  AttachFrom,
  InFlight,
  JournalFindings,
  LogLine,
  LogReading,
  MountRow,
  ProcessRow,
  ReplayReport,
  ResumePlan,
  ResumeRequest,
  RunEvent,
  RunHandle,
  RunObserver,
  RunReport,
  RunRequest,
  RunSignal,
  System,
  TraceItem,
} from "../../src/base/operations.ts";
import type { HealthRow } from "../../src/base/mount_health.ts";
import type {
  ServerObserver,
  ServerRequest,
  ServerSession,
} from "../../src/base/server_operations.ts";
import type { ReadinessFault, ReadinessRequest } from "../../src/base/readiness.ts";
import type { GraphRequest, GraphView } from "../../src/base/graph.ts";
import type { VfsAnswer, VfsRequest } from "../../src/base/vfs_operations.ts";
import type { JudgeObserver, JudgeRequest, ServerVerdict } from "../../src/base/server_verdict.ts";

/** A completed run of two turns. */
export function report(changes: Partial<RunReport> = {}): RunReport {
  return {
    pid: 1,
    run_id: "01990000-0000-7000-8000-00000f3a9c2e",
    state: "dead",
    result: "All is well.",
    exit_code: 0,
    turns: 2,
    tokens_used: 1234,
    cost_usd: null,
    elapsed_ms: 2100,
    ...changes,
  };
}

/** A row of `ps`. */
export function row(changes: Partial<ProcessRow> = {}): ProcessRow {
  return {
    pid: 1,
    ppid: 0,
    run_id: "01990000-0000-7000-8000-00000f3a9c2e",
    state: "running",
    agent: "reviewer",
    intent: "review the change",
    model: "scripted/script",
    turns: 2,
    tokens_used: 1234,
    cost_usd: null,
    elapsed_ms: 2100,
    mounts: ["/mnt/mcp/1-files"],
    started_ms: 0,
    ...changes,
  };
}

/** What the run of a test does between its start and its report. */
export type Play = (run: FakeRun) => Promise<RunReport> | RunReport;

/** A run in the hands of a test. */
export class FakeRun {
  /** `suspend paused`, `kill INT` … in the order they came. */
  readonly told: string[] = [];
  readonly observer: RunObserver;
  #waiting: (() => void)[] = [];

  constructor(observer: RunObserver) {
    this.observer = observer;
  }

  /** Reports events with pid 1 at time 0. */
  events(...events: RunEventBody[]): void {
    for (const event of events) this.observer.onEvent({ pid: 1, ts: 0, ...event });
  }

  tell(what: string): void {
    this.told.push(what);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves once the run was told `count` things. */
  async untilTold(count: number): Promise<void> {
    while (this.told.length < count) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

type WithoutHead<E> = E extends unknown ? Omit<E, "pid" | "ts"> : never;
export type RunEventBody = WithoutHead<RunEvent>;

export class FakeSystem implements System {
  readonly runs: RunRequest[] = [];
  readonly resumes: ResumeRequest[] = [];
  readonly asked: string[] = [];
  play: Play = () => report();
  /** Thrown by the next operation. */
  failure: Error | undefined;
  rows: ProcessRow[] = [];
  lines: LogLine[] = [];
  readonly logReadings: LogReading[] = [];
  /** Logs end only when they are left. */
  logsGoOn = false;
  plan: ResumePlan | undefined;
  drawn: GraphView | undefined;
  findings: JournalFindings | undefined;
  /** Report of a run that isn't at work; undefined: it is. */
  ended: RunReport | undefined;
  past: RunEvent[] = [];
  mounted: MountRow[] = [];
  flying: InFlight[] = [];
  health: HealthRow[] = [];
  replayed: ReplayReport | undefined;
  traced: TraceItem[] = [];
  readonly opened: ServerRequest[] = [];
  /** Requests for a judge, and what it says of their servers. */
  readonly judged: JudgeRequest[] = [];
  verdicts: ServerVerdict[] = [];
  readonly used: VfsRequest[] = [];
  vfsAnswer: VfsAnswer | undefined;
  /** The server that is connected to. */
  server: ((observer: ServerObserver) => ServerSession) | undefined;

  run(request: RunRequest, observer: RunObserver): Promise<RunHandle> {
    this.runs.push(request);
    return this.#start(observer);
  }

  resume(request: ResumeRequest, observer: RunObserver): Promise<RunHandle> {
    this.resumes.push(request);
    return this.#start(observer);
  }

  // deno-lint-ignore require-await
  async #start(observer: RunObserver): Promise<RunHandle> {
    if (this.failure) throw this.failure;
    const run = new FakeRun(observer);
    const done = (async () => await this.play(run))();
    return {
      pid: 1,
      runId: report().run_id,
      suspend: (reason) => run.tell(`suspend ${reason}`),
      kill: (signal) => run.tell(`kill ${signal}`),
      done,
    };
  }

  async openServer(request: ServerRequest, observer: ServerObserver): Promise<ServerSession> {
    this.opened.push(request);
    return (await this.#answer(this.server))(observer);
  }

  judgeServers(request: JudgeRequest, observer: JudgeObserver): Promise<void> {
    this.judged.push(request);
    this.verdicts.forEach((verdict, index) => observer.onVerdict(index, verdict));
    return this.#answer(null).then(() => {});
  }

  attach(run: string, from: AttachFrom, observer: RunObserver): Promise<RunHandle> {
    this.asked.push(`attach ${run} from ${from}`);
    return this.#start(observer);
  }

  signal(run: string, signal: RunSignal): Promise<void> {
    this.asked.push(`signal ${run} ${signal}`);
    return this.#answer(null).then(() => {});
  }

  report(run: string): Promise<RunReport | undefined> {
    this.asked.push(`report ${run}`);
    return this.#answer(this.ended ?? null).then((ended) => ended ?? undefined);
  }

  async *pastEvents(run: string): AsyncIterable<RunEvent> {
    this.asked.push(`events ${run}`);
    yield* await this.#answer(this.past);
  }

  mounts(): Promise<MountRow[]> {
    this.asked.push("mounts");
    return this.#answer(this.mounted);
  }

  mountHealth(): Promise<HealthRow[]> {
    this.asked.push("mountHealth");
    return this.#answer(this.health);
  }

  planResume(request: ResumeRequest): Promise<ResumePlan> {
    this.resumes.push(request);
    return this.#answer(this.plan);
  }

  readiness({ of }: ReadinessRequest): Promise<ReadinessFault[]> {
    this.asked.push(`readiness ${of}`);
    return Promise.resolve([]);
  }

  graph(request: GraphRequest): Promise<GraphView> {
    this.asked.push(`graph ${request.of} ${JSON.stringify(request.parameters ?? null)}`);
    return this.#answer(this.drawn);
  }

  processes(options: { all: boolean }): Promise<ProcessRow[]> {
    this.asked.push(`processes all=${options.all}`);
    return this.#answer(this.rows);
  }

  async *mountLogs(mount: string, reading: LogReading = {}): AsyncIterable<LogLine> {
    const { signal: _, ...asked } = reading;
    this.logReadings.push(asked);
    this.asked.push(`logs ${mount}`);
    yield* await this.#answer(this.lines);
    if (!this.logsGoOn) return;
    await new Promise<void>((resolve) =>
      reading.signal?.addEventListener("abort", () => resolve())
    );
  }

  vfs(request: VfsRequest, _signal?: AbortSignal): Promise<VfsAnswer> {
    this.used.push(request);
    return this.#answer(this.vfsAnswer);
  }

  verifyJournal(run: string): Promise<JournalFindings> {
    this.asked.push(`verify ${run}`);
    return this.#answer(this.findings);
  }

  replay(run: string): Promise<ReplayReport> {
    this.asked.push(`replay ${run}`);
    return this.#answer(this.replayed);
  }

  compareReplay(run: string): Promise<ReplayReport> {
    this.asked.push(`compare ${run}`);
    return this.#answer(this.replayed);
  }

  inFlight(run: string, withChildren?: boolean): Promise<InFlight[]> {
    this.asked.push(`in flight ${run}${withChildren === true ? " with children" : ""}`);
    return this.#answer(this.flying);
  }

  async *trace(
    ...[run, from, , withChildren]: Parameters<System["trace"]>
  ): AsyncIterable<TraceItem> {
    this.asked.push(`trace ${run} from ${from}${withChildren === true ? " with children" : ""}`);
    yield* await this.#answer(this.traced);
  }

  // deno-lint-ignore require-await
  async #answer<T>(value: T | undefined): Promise<T> {
    if (this.failure) throw this.failure;
    if (value === undefined) throw new Error("the test gave no answer");
    return value;
  }
}
