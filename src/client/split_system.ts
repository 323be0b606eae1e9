/** The system as a command sees it: what is live goes to the daemon, what only reads goes to the state folder; each side is loaded when first used. A daemon is started for what has something to do there, and not to say that nothing is at work. */
import type {
  AttachFrom,
  InFlight,
  JournalFindings,
  LiveSystem,
  LogLine,
  LogReading,
  MountRow,
  ProcessRow,
  Reader,
  ReplayReport,
  ResumePlan,
  ResumeRequest,
  RunEvent,
  RunHandle,
  RunObserver,
  RunReport,
  RunRequest,
  RunSignal,
  ServerOpener,
  System,
  TraceItem,
} from "../base/operations.ts";
import type { HealthRow } from "../base/mount_health.ts";
import type { ServerObserver, ServerRequest, ServerSession } from "../base/server_operations.ts";
import type { JudgeObserver, JudgeRequest } from "../base/server_verdict.ts";
import type { ReadinessFault, ReadinessRequest } from "../base/readiness.ts";
import type { GraphRequest, GraphView } from "../base/graph.ts";
import { answererOf, type VfsAnswer, type VfsRequest } from "../base/vfs_operations.ts";
import { vfsBy } from "../base/vfs_route.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { notAtWork } from "../base/not_at_work.ts";
import { systemClock } from "../base/clock.ts";
import { withJournal } from "./lost_run.ts";

/** Where the parts come from. */
export interface SplitSources {
  /** The daemon, started if need be. */
  live(): Promise<LiveSystem & ServerOpener>;
  /** The daemon if one runs. */
  found(): Promise<LiveSystem | undefined>;
  reader(): Promise<Reader>;
}

export class SplitSystem implements System {
  readonly #live: () => Promise<LiveSystem & ServerOpener>;
  readonly #found: () => Promise<LiveSystem | undefined>;
  readonly #reader: () => Promise<Reader>;

  constructor({ live, found, reader }: SplitSources) {
    this.#live = live;
    this.#found = found;
    this.#reader = reader;
  }

  async run(request: RunRequest, observer: RunObserver): Promise<RunHandle> {
    return this.#known(await (await this.#live()).run(request, observer));
  }

  async resume(request: ResumeRequest, observer: RunObserver): Promise<RunHandle> {
    return this.#known(await (await this.#live()).resume(request, observer));
  }

  async attach(run: string, from: AttachFrom, observer: RunObserver): Promise<RunHandle> {
    const daemon = await this.#found();
    if (daemon !== undefined) return this.#known(await daemon.attach(run, from, observer));
    throw idle(await this.#ended(run), run);
  }

  /** A run that is known to its journal also when its daemon is lost. */
  #known(handle: RunHandle): RunHandle {
    return withJournal(handle, this.#reader, systemClock);
  }

  async signal(run: string, signal: RunSignal): Promise<void> {
    const daemon = await this.#found();
    if (daemon !== undefined) return await daemon.signal(run, signal);
    const report = await this.#ended(run);
    if (signal === "PAUSE") throw idle(report, run);
    if (report?.state === "dead") throw hasEnded(report);
    await (await this.#live()).signal(run, signal);
  }

  async vfs(request: VfsRequest, signal?: AbortSignal): Promise<VfsAnswer> {
    const reader = await this.#reader();
    const live = answererOf(request) === "stored" ? undefined : await this.#found();
    return await vfsBy(request, { live, reader }, signal);
  }

  async openServer(request: ServerRequest, observer: ServerObserver): Promise<ServerSession> {
    return await (await this.#live()).openServer(request, observer);
  }

  async judgeServers(request: JudgeRequest, observer: JudgeObserver): Promise<void> {
    await (await this.#live()).judgeServers(request, observer);
  }

  /** What there is of a run without a daemon. Rejects with NOT_FOUND when there is none. */
  async #ended(run: string): Promise<RunReport | undefined> {
    return await (await this.#reader()).report(run);
  }

  async processes(options: { all: boolean }): Promise<ProcessRow[]> {
    return await (await this.#reader()).processes(options);
  }

  async report(run: string): Promise<RunReport | undefined> {
    return await (await this.#reader()).report(run);
  }

  async planResume(request: ResumeRequest): Promise<ResumePlan> {
    return await (await this.#reader()).planResume(request);
  }

  async readiness(request: ReadinessRequest): Promise<ReadinessFault[]> {
    return await (await this.#reader()).readiness(request);
  }

  async graph(request: GraphRequest): Promise<GraphView> {
    return await (await this.#reader()).graph(request);
  }

  async *pastEvents(run: string): AsyncGenerator<RunEvent> {
    yield* (await this.#reader()).pastEvents(run);
  }

  async mounts(): Promise<MountRow[]> {
    const rows = await (await this.#reader()).mounts();
    if (rows.every(({ status }) => status === "unmounted")) return rows;
    const health = new Map((await this.mountHealth()).map((row) => [row.mount, row]));
    return rows.map((row) => {
      const { mount: _, state, ...rest } = health.get(row.mount) ?? {};
      return state === undefined ? row : { ...row, status: state, ...rest };
    });
  }

  /** Nothing where the daemon can't be asked: what the state folder says stands. */
  async mountHealth(): Promise<HealthRow[]> {
    const daemon = await this.#found().catch(() => undefined);
    return await daemon?.mountHealth().catch(() => []) ?? [];
  }

  async *mountLogs(mount: string, reading?: LogReading): AsyncGenerator<LogLine> {
    yield* (await this.#reader()).mountLogs(mount, reading);
  }

  async inFlight(...asked: Parameters<Reader["inFlight"]>): Promise<InFlight[]> {
    return await (await this.#reader()).inFlight(...asked);
  }

  async verifyJournal(run: string): Promise<JournalFindings> {
    return await (await this.#reader()).verifyJournal(run);
  }

  async replay(run: string): Promise<ReplayReport> {
    return await (await this.#reader()).replay(run);
  }

  async compareReplay(run: string): Promise<ReplayReport> {
    return await (await this.#reader()).compareReplay(run);
  }

  async *trace(...asked: Parameters<Reader["trace"]>): AsyncGenerator<TraceItem> {
    yield* (await this.#reader()).trace(...asked);
  }
}

function idle(report: RunReport | undefined, run: string): SysError {
  if (report === undefined) {
    return new SysError("INVALID", `Run "${run}" is held by a process that can't be asked`, {
      exitCode: EXIT_USAGE,
      hint: "A daemon on its way out has it for some seconds; rnix ps -a shows its state",
    });
  }
  return notAtWork(report.run_id, report.state);
}

function hasEnded({ run_id }: RunReport): SysError {
  return new SysError("INVALID", "The run has ended already", {
    syscall: "Kill",
    device: run_id,
    exitCode: EXIT_USAGE,
  });
}
