/** Reads the state folder: lists, reports, plans, logs. Needs no daemon and takes no lease; what is heavy is loaded only by the operation that needs it. */
import { systemClock } from "../base/clock.ts";
import { disk } from "../base/disk.ts";
import type {
  AttachFrom,
  InFlight,
  JournalFindings,
  LogLine,
  LogReading,
  MountRow,
  ProcessRow,
  Reader,
  ReplayReport,
  ResumePlan,
  ResumeRequest,
  RunEvent,
  RunReport,
  TraceItem,
} from "../base/operations.ts";
import type { ReadinessFault, ReadinessRequest } from "../base/readiness.ts";
import type { GraphRequest, GraphView } from "../base/graph.ts";
import type { VfsAnswer, VfsRequest } from "../base/vfs_operations.ts";
import type { Storage } from "../base/storage.ts";
import { resolvePaths } from "../base/paths.ts";
import { countTools } from "../base/resource_tools.ts";
import { probeLease, verifyRun } from "../journal/mod.ts";
import { Pids } from "../kernel/pids.ts";
import type { AgentSource } from "./agent_source.ts";
import { mountLogLines } from "./mount_logs.ts";
import { listProcesses } from "./process_list.ts";
import { reportOf } from "./report.ts";
import { redactReport } from "./run_watch.ts";
import { runsBelow, viewIfAny, withBelow } from "./below.ts";
import { Runs, type RunView } from "./runs.ts";

/** The reader of the state folder that an environment names. */
export function createReader(env: { [name: string]: string }, uid: number): Reader {
  const { state, config } = resolvePaths(env, uid);
  const runs = new Runs(disk, new Pids(disk, systemClock, state), state);
  return new StateReader(disk, runs, async () => {
    const [{ AgentSource }, { TrustStore }] = await Promise.all([
      import("./agent_source.ts"),
      import("../manifest/trust.ts"),
    ]);
    return new AgentSource({ storage: disk, config, uid, trust: new TrustStore(disk, state) });
  });
}

export class StateReader implements Reader {
  readonly #storage: Storage;
  readonly #runs: Runs;
  readonly #agents: () => Promise<AgentSource>;

  constructor(storage: Storage, runs: Runs, agents: () => Promise<AgentSource>) {
    this.#storage = storage;
    this.#runs = runs;
    this.#agents = agents;
  }

  async processes(options: { all: boolean }): Promise<ProcessRow[]> {
    return await listProcesses(this.#storage, this.#runs, options);
  }

  async report(run: string): Promise<RunReport | undefined> {
    const view = await this.#runs.view(await this.#runs.find(run));
    if (view.state === "running") return undefined;
    const { ledger, reason = "interrupted" } = view;
    const end = ledger.state.end ?? { state: "suspended", reason, reasons: [reason] };
    const { storedRedactor } = await import("./stored_secrets.ts");
    const redactor = await storedRedactor(this.#storage, this.#runs.folderOf(view.runId));
    const report = redactReport(reportOf({ end, ledger }, ledger.pid), redactor);
    return await withBelow(this.#runs, report, ledger);
  }

  async planResume(request: ResumeRequest): Promise<ResumePlan> {
    const runId = await this.#runs.find(request.run);
    const { planOf } = await import("./plan.ts");
    const deps = { storage: this.#storage, runs: this.#runs, agents: await this.#agents() };
    return await planOf(deps, runId, request);
  }

  async readiness(request: ReadinessRequest): Promise<ReadinessFault[]> {
    const { readinessOf } = await import("./readiness.ts");
    return await readinessOf(await this.#agents(), request);
  }

  async graph(request: GraphRequest): Promise<GraphView> {
    const { graphOf } = await import("./graph.ts");
    const deps = { storage: this.#storage, runs: this.#runs, agents: this.#agents };
    return await graphOf(deps, request);
  }

  async *pastEvents(run: string): AsyncGenerator<RunEvent> {
    const { eventsOfRun } = await import("./past_events.ts");
    yield* eventsOfRun(this.#storage, this.#runs.folderOf(await this.#runs.find(run)));
  }

  async mounts(): Promise<MountRow[]> {
    const rows = await listProcesses(this.#storage, this.#runs, { all: false });
    // A run whose journal is damaged has nothing mounted.
    const whole = rows.filter((row) => row.reason !== "journal");
    const views = await Promise.all(whole.map((row) => this.#runs.view(row.run_id)));
    return (await Promise.all(views.map((view) => this.#mountRows(view)))).flat();
  }

  async inFlight(run: string, withChildren = false): Promise<InFlight[]> {
    const runId = await this.#runs.find(run);
    const below = withChildren ? await runsBelow(this.#runs, runId) : [];
    const views = await Promise.all([runId, ...below].map((each) => viewIfAny(this.#runs, each)));
    return views.flatMap((view) => view?.inFlight ?? [])
      .toSorted((a, b) => a.started_ms - b.started_ms);
  }

  mountLogs(mount: string, reading?: LogReading): AsyncIterable<LogLine> {
    const place = { storage: this.#storage, runs: this.#runs, clock: systemClock };
    return mountLogLines(place, mount, reading);
  }

  async vfs(request: VfsRequest): Promise<VfsAnswer> {
    const [{ storedVfs }, { readTrace }] = await Promise.all([
      import("./stored_vfs.ts"),
      import("./trace_reader.ts"),
    ]);
    const places = { storage: this.#storage, clock: systemClock, fromNow: false };
    return await storedVfs({
      storage: this.#storage,
      runs: this.#runs,
      mounts: () => this.mounts(),
      // What is there, also of a run at work: nobody waits for more.
      trace: (folder) => readTrace({ ...places, folder, isLive: () => Promise.resolve(false) }),
    }, request);
  }

  async verifyJournal(run: string): Promise<JournalFindings> {
    const runId = await this.#runs.find(run);
    return await verifyRun(this.#storage, this.#runs.folderOf(runId));
  }

  async replay(run: string): Promise<ReplayReport> {
    const { replayRun } = await import("./replay/refold.ts");
    return await replayRun({ storage: this.#storage, runs: this.#runs }, run);
  }

  async compareReplay(run: string): Promise<ReplayReport> {
    const { comparedReplay } = await import("./replay/compared.ts");
    return await comparedReplay({ storage: this.#storage, runs: this.#runs }, run);
  }

  async *trace(
    run: string,
    from: AttachFrom,
    signal?: AbortSignal,
    withChildren = false,
  ): AsyncGenerator<TraceItem> {
    const runId = await this.#runs.find(run);
    const { readTrace } = await import("./trace_reader.ts");
    const storage = this.#storage;
    const clock = systemClock;
    const read = (runId: string, fromNow: boolean) => {
      const folder = this.#runs.folderOf(runId);
      const isLive = async () => await probeLease(storage, folder) !== undefined;
      return readTrace({ storage, clock, folder, fromNow, isLive, signal });
    };
    const isLive = await probeLease(storage, this.#runs.folderOf(runId)) !== undefined;
    const fromNow = from === "now" && isLive;
    if (!withChildren) return yield* read(runId, fromNow);
    const { readTreeTrace } = await import("./tree_trace.ts");
    const below = fromNow ? await runsBelow(this.#runs, runId) : [];
    yield* readTreeTrace({
      read: (runId) => read(runId, false),
      first: [runId, ...below].map((runId) => ({ runId, items: read(runId, fromNow) })),
      isLive,
    });
  }

  async #mountRows(view: RunView): Promise<MountRow[]> {
    if (Object.keys(view.ledger.state.mounts).length === 0) return [];
    const { transportsOf } = await import("./stored_agent.ts");
    const folder = this.#runs.folderOf(view.runId);
    return mountRows(view, await transportsOf(this.#storage, folder, view.ledger.state.spec));
  }
}

function mountRows(
  { ledger, state }: RunView,
  transports: ReadonlyMap<string, string>,
): MountRow[] {
  return Object.values(ledger.state.mounts).map((mount): MountRow => ({
    mount: `${ledger.pid}-${mount.server}`,
    pid: ledger.pid,
    agent: ledger.identity.agent,
    server: mount.server,
    transport: transports.get(mount.server) ?? "unknown",
    status: state === "running" ? "connected" : "unmounted",
    ...countTools(mount.tools),
    protocol_version: mount.protocol_version,
  }));
}
