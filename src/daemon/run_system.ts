/**
 * Runs at work: starts them, takes them up again, joins followers to them, signals them, and ends them all. It alone knows all parts of a run.
 *
 * Suspended and ended runs are only on disk: what this holds is forgotten with a run's end.
 */
import { within } from "../base/clock.ts";
import { enginesPath } from "../base/daemon_files.ts";
import { SysError } from "../base/errors.ts";
import type { EndSignal, SuspendReason } from "../base/exit.ts";
import { type Guard, startGuard } from "../base/guard.ts";
import { newRunId } from "../base/ids.ts";
import { notAtWork } from "../base/not_at_work.ts";
import { dirname } from "../base/posix_path.ts";
import type {
  AttachFrom,
  LiveSystem,
  ResumeRequest,
  RunHandle,
  RunObserver,
  RunRequest,
  RunSignal,
} from "../base/operations.ts";
import type { HealthRow } from "../base/mount_health.ts";
import type { VfsAnswer, VfsRequest } from "../base/vfs_operations.ts";
import { ServerPool } from "../devices/mcp/server_pool.ts";
import { forkRun, removeFork } from "../kernel/fork.ts";
import { endSuspended } from "../kernel/end_suspended.ts";
import type { KernelDeps, LiveRun } from "../kernel/launch.ts";
import type { Ledger } from "../kernel/ledger.ts";
import { ruleFits } from "../kernel/settle_rules.ts";
import { withParameters } from "../manifest/workflow/parameters.ts";
import type { AgentSource } from "./agent_source.ts";
import { ownRules, pastOf, withBelow } from "./below.ts";
import type { ChildHost, ChildSystem, Tree } from "./child_host.ts";
import { joinRun } from "./join_run.ts";
import { reportOf } from "./report.ts";
import { liveVfs } from "./live_vfs.ts";
import { healthRows } from "./vfs_mounts.ts";
import { againOf } from "./run_again.ts";
import { consentBy, RunHub } from "./run_hub.ts";
import { WORKFLOW_PROGRAM } from "../workflow/program_name.ts";
import { type Made, RunMaker } from "./run_maker.ts";
import type { Runs } from "./runs.ts";
import { TelemetrySource } from "./telemetry_source.ts";
import { rulesFor } from "./unknown_rules.ts";

/** One deadline for all runs and servers together when everything is to end, milliseconds. */
const STOP_MS_MAX = 5_000;

export interface RunSystemDeps {
  kernel: KernelDeps;
  runs: Runs;
  agents: AgentSource;
}

export class RunSystem implements LiveSystem {
  readonly #kernel: KernelDeps;
  readonly #runs: Runs;
  readonly #agents: AgentSource;
  /** By run id. */
  readonly #live = new Map<string, { hub: RunHub; live: LiveRun; host: ChildHost }>();
  readonly #maker: RunMaker;
  readonly #telemetry: TelemetrySource;
  #guard: Promise<Guard> | undefined;
  #stopping = false;
  /** Called when the last run at work has ended. */
  onIdle: (() => void) | undefined;

  constructor({ kernel, runs, agents }: RunSystemDeps) {
    this.#kernel = kernel;
    this.#runs = runs;
    this.#agents = agents;
    this.#telemetry = new TelemetrySource({
      clock: kernel.clock,
      parentOf: async (runId) => (await runs.view(runId)).ledger.identity.parentRunId,
    });
    this.#maker = new RunMaker({
      kernel,
      agents,
      guard: () => this.guard(),
      children: this.#childSystem(),
    });
  }

  get liveRuns(): number {
    return this.#live.size;
  }

  /** Suspends every run (`shutdown`), ends every server and the guard: one deadline for all, and for what ends `beside` them. Starts nothing any more. Idempotent. */
  async close(beside: Promise<void> = Promise.resolve()): Promise<void> {
    this.#stopping = true;
    const handles = [...this.#live.values()].flatMap(({ hub }) => hub.handle ?? []);
    for (const handle of handles) handle.suspend("shutdown");
    const ended = Promise.all([beside, ...handles.map(({ done }) => done)]).then(() => {});
    await within(this.#kernel.clock, STOP_MS_MAX, ended, () => {});
    // The guard's last sweep ends what didn't go by itself.
    const guard = await this.#guard?.catch(() => undefined);
    await Promise.all([guard?.close(), this.#telemetry.close()]);
  }

  #tree(tree: Omit<Tree, "servers" | "telemetry">): Tree {
    const telemetry = this.#telemetry.forTree(tree.client.env);
    return { ...tree, servers: new ServerPool(), telemetry };
  }

  async run(request: RunRequest, observer: RunObserver): Promise<RunHandle> {
    this.#refuseWhenStopping();
    if (request.replay !== undefined) return await this.#replay(request, request.replay, observer);
    const { client, trust, intent, model, budget, parameters = {} } = request;
    const hub = new RunHub(observer);
    const found = await this.#agents.find(
      request.manifest,
      client,
      consentBy(hub, trust, this.#kernel.clock),
    );
    return this.#hold(
      await this.#maker.spawn({
        agent: withParameters(found.agent, parameters),
        intent,
        tree: this.#tree({ client, rules: [], watcher: hub }),
        hub,
        notices: found.notices,
        model,
        budget,
      }),
    );
  }

  /** A run with the agent and the intent of one that has ended, one side of it played from its records. */
  async #replay(
    { client, model, budget }: RunRequest,
    replay: NonNullable<RunRequest["replay"]>,
    observer: RunObserver,
  ): Promise<RunHandle> {
    const { playedAgent } = await import("./replay/mod.ts");
    const places = { storage: this.#kernel.storage, runs: this.#runs };
    const { agent, recording, parts } = await playedAgent(places, replay);
    const hub = new RunHub(observer);
    const { cwd } = recording.start;
    return this.#hold(
      await this.#maker.spawn({
        agent,
        intent: recording.intent,
        tree: this.#tree({ client: { ...client, cwd }, rules: [], watcher: hub }),
        hub,
        model,
        budget,
        played: { of: { run_id: recording.runId, live: replay.live }, parts },
      }),
    );
  }

  async resume(request: ResumeRequest, observer: RunObserver): Promise<RunHandle> {
    this.#refuseWhenStopping();
    const { client, trust, acceptCut, intent, model, budget, onUnknown } = request;
    const source = await this.#runs.find(request.run);
    const all = await rulesFor(this.#runs, request.unknown, [source]);
    const rules = all.length === 0
      ? []
      : await ownRules(this.#runs, (await this.#runs.view(source)).ledger, all);
    const runId = request.fork ? await this.#fork(source, request) : source;
    const hub = new RunHub(observer);
    const tree = this.#tree({ client, rules: request.unknown, onUnknown, watcher: hub });
    const stored = request.stored || request.fork;
    const facts = { runId, tree, hub, rules, stored, trust, acceptCut };
    const made = await this.#maker.takeUp({ ...facts, intent, model, budget, onUnknown })
      .catch(async (thrown) => {
        if (request.fork) await removeFork(this.#kernel, runId);
        throw thrown;
      });
    return this.#hold(made);
  }

  async attach(run: string, from: AttachFrom, observer: RunObserver): Promise<RunHandle> {
    const runId = await this.#runs.find(run);
    const { hub } = this.#live.get(runId) ?? {};
    if (hub?.handle === undefined) throw await this.#idle(runId);
    return await joinRun(hub, hub.handle, {
      from,
      observer,
      storage: this.#kernel.storage,
      folder: this.#runs.folderOf(runId),
    });
  }

  async vfs(
    request: VfsRequest,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<VfsAnswer> {
    const live = (runId: string) => this.#live.get(runId)?.live;
    return await liveVfs({ runs: this.#runs, live }, request, signal);
  }

  mountHealth(): Promise<HealthRow[]> {
    const runs = [...this.#live.values()];
    return Promise.resolve(runs.flatMap(({ live }) => healthRows(live.look())));
  }

  async signal(run: string, signal: RunSignal): Promise<void> {
    const runId = await this.#runs.find(run);
    const handle = this.#live.get(runId)?.hub.handle;
    if (handle === undefined) {
      if (signal === "PAUSE") throw await this.#idle(runId);
      await this.#endTree(runId, signal);
    } else if (signal === "PAUSE") handle.suspend("paused");
    else handle.kill(signal);
  }

  /** Ends a suspended run and what hasn't ended below it; it first, so that nothing takes the others up again. */
  async #endTree(runId: string, signal: EndSignal): Promise<void> {
    await endSuspended(this.#kernel, runId, signal);
    const { ledger } = await this.#runs.view(runId);
    await this.#endBelow(ledger, signal);
  }

  /** Ends what hasn't ended below a run that has. */
  async #endBelow(ledger: Ledger, signal: EndSignal): Promise<void> {
    for (const { childRunId } of ledger.openChildren()) {
      if (childRunId === undefined) continue;
      const past = await pastOf(this.#kernel, this.#runs, childRunId).catch(() => undefined);
      if (past === undefined || past.end.state === "exited") continue;
      const live = this.#live.get(childRunId)?.hub.handle;
      if (live !== undefined) live.kill(signal);
      else await this.#endTree(childRunId, signal).catch(() => {});
    }
  }

  /** Suspends a run at work. Rejects with INVALID when it isn't. */
  async suspend(run: string, reason: SuspendReason): Promise<void> {
    const runId = await this.#runs.find(run);
    const handle = this.#live.get(runId)?.hub.handle;
    if (handle === undefined) throw await this.#idle(runId);
    handle.suspend(reason);
  }

  async #idle(runId: string): Promise<SysError> {
    const view = await this.#runs.view(runId).catch(() => undefined);
    return notAtWork(runId, view?.state);
  }

  async #fork(source: string, request: ResumeRequest): Promise<string> {
    const deps = { storage: this.#kernel.storage, runs: this.#runs };
    return await forkRun(this.#kernel, {
      again: await againOf(deps, source, request),
      repeatsFailed: (await this.#runs.view(source)).ledger.identity.program === WORKFLOW_PROGRAM,
      sourceRunId: source,
      step: request.fromStep,
      confirmed: request.yes,
      hasIntent: request.intent !== undefined,
    });
  }

  /** One guard for all runs of this process, started with the first. */
  guard(): Promise<Guard> {
    const { instance, clock, runsFolder } = this.#kernel;
    const path = enginesPath(dirname(runsFolder), instance);
    this.#guard ??= startGuard({ instance, clock, enginesPath: path });
    return this.#guard;
  }

  #refuseWhenStopping(): void {
    if (!this.#stopping) return;
    throw new SysError("INTERRUPTED", "rnix is shutting down and starts nothing any more", {
      hint: "Try again in a moment",
    });
  }

  /** Keeps the run while it is at work. */
  #hold({ hub, live, watch, host }: Made): RunHandle {
    const handle: RunHandle = {
      pid: live.pid ?? 0,
      runId: live.runId,
      suspend: (reason) => live.stop({ kind: "suspend", reason }),
      kill: (signal) => live.stop({ kind: "kill", signal }),
      done: live.done.then(async (outcome) => {
        const { end, ledger } = outcome;
        // Those at work were stopped with it; one that was suspended before is nobody's now.
        if (end.state === "exited") await this.#endBelow(ledger, end.signal ?? "TERM");
        const report = watch.redactReport(reportOf(outcome, live.pid));
        return await withBelow(this.#runs, report, outcome.ledger);
      }),
    };
    hub.handle = handle;
    this.#live.set(live.runId, { hub, live, host });
    if (this.#stopping) handle.suspend("shutdown");
    live.done.finally(() => {
      this.#live.delete(live.runId);
      if (this.#live.size === 0) this.onIdle?.();
    });
    return handle;
  }

  /** What a run's children are made through. */
  #childSystem(): ChildSystem {
    return {
      newRunId: () => newRunId(this.#kernel.clock.now(), this.#kernel.random),
      live: (runId) => this.#live.get(runId),
      past: async (runId) => await pastOf(this.#kernel, this.#runs, runId),
      spawn: async ({ runId, agent, intent, model, parameters, parent }) => {
        this.#refuseWhenStopping();
        const hub = childHub(parent);
        const made = await this.#maker.spawn({
          runId,
          agent: withParameters(agent, parameters),
          intent,
          model,
          tree: parent.tree,
          hub,
          above: parent,
        });
        this.#hold(made);
        return made;
      },
      resume: async ({ runId, agent, model, parameters, parent, continues }) => {
        this.#refuseWhenStopping();
        const { tree } = parent;
        const { ledger } = await this.#runs.view(runId);
        const told = await rulesFor(this.#runs, tree.rules, [runId]);
        const rules = told.filter((rule) =>
          ledger.openCalls().some((call) => ruleFits(rule, call))
        );
        const hub = childHub(parent);
        const { onUnknown } = tree;
        const off = { trust: false, acceptCut: false, onUnknown, above: parent };
        // What goes on is as it was; what has ended begins again as it is now.
        const how = continues === undefined ? { stored: true } : {
          stored: false,
          model,
          ended: { pid: continues, agent: withParameters(agent, parameters) },
        };
        const made = await this.#maker.takeUp({ runId, tree, hub, rules, ...off, ...how });
        this.#hold(made);
        return made;
      },
    };
  }
}

/** Nobody watches a child unless it is joined; whoever is asked for its root is asked for it. */
function childHub({ tree }: ChildHost): RunHub {
  const { watcher } = tree;
  return new RunHub({
    onEvent: () => {},
    ...(watcher.decideUnknown === undefined ? {} : {
      decideUnknown: async (call, signal) => await watcher.decideUnknown?.(call, signal),
    }),
  });
}
