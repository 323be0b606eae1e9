/**
 * Runs at work: starts them, takes them up again, joins followers to them, signals them, and ends them all. It alone knows all parts of a run.
 *
 * Suspended and ended runs are only on disk: what this holds is forgotten with a run's end.
 */
import { agentProgram, type AgentPrompt } from "../agent/agent_program.ts";
import type { AgentState } from "../agent/agent_state.ts";
import { within } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE, type SuspendReason } from "../base/exit.ts";
import { type Guard, startGuard } from "../base/guard.ts";
import { shortRunId } from "../base/ids.ts";
import type { Json } from "../base/json.ts";
import type {
  AttachFrom,
  LiveSystem,
  ResumeRequest,
  RunHandle,
  RunObserver,
  RunRequest,
  RunSignal,
} from "../base/operations.ts";
import { forkRun, removeFork } from "../kernel/fork.ts";
import { endSuspended } from "../kernel/end_suspended.ts";
import { type KernelDeps, type LiveRun, spawnRun } from "../kernel/launch.ts";
import type { Ledger } from "../kernel/ledger.ts";
import { type ResumeParts, resumeRun } from "../kernel/resume.ts";
import { saveSpec } from "../manifest/spec.ts";
import type { AgentSource } from "./agent_source.ts";
import { joinRun } from "./join_run.ts";
import { reportOf } from "./report.ts";
import { RunHub } from "./run_hub.ts";
import { requirePrices } from "./model_parts.ts";
import { programOf } from "./program_of.ts";
import { readyAgent, type ReadyFacts } from "./run_parts.ts";
import { RunWatch } from "./run_watch.ts";
import type { Runs } from "./runs.ts";
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
  readonly #live = new Map<string, RunHub>();
  #guard: Promise<Guard> | undefined;
  #stopping = false;
  /** Called when the last run at work has ended. */
  onIdle: (() => void) | undefined;

  constructor({ kernel, runs, agents }: RunSystemDeps) {
    this.#kernel = kernel;
    this.#runs = runs;
    this.#agents = agents;
  }

  get liveRuns(): number {
    return this.#live.size;
  }

  /** Suspends every run (`shutdown`), ends every server and the guard: one deadline for all, and for what ends `beside` them. Starts nothing any more. Idempotent. */
  async close(beside: Promise<void> = Promise.resolve()): Promise<void> {
    this.#stopping = true;
    const handles = [...this.#live.values()].flatMap(({ handle }) => handle ?? []);
    for (const handle of handles) handle.suspend("shutdown");
    const ended = Promise.all([beside, ...handles.map(({ done }) => done)]).then(() => {});
    await within(this.#kernel.clock, STOP_MS_MAX, ended, () => {});
    // The guard's last sweep ends what didn't go by itself.
    const guard = await this.#guard?.catch(() => undefined);
    await guard?.close();
  }

  async run(request: RunRequest, observer: RunObserver): Promise<RunHandle> {
    this.#refuseWhenStopping();
    const { client, trust, intent } = request;
    const hub = new RunHub(observer);
    const found = await this.#agents.find(request.manifest, client, { trust, observer: hub });
    const watch = new RunWatch(hub, this.#kernel.clock);
    const facts = await this.#readyFacts(client, client.cwd, watch);
    const ready = readyAgent(found.agent, { ...facts, model: request.model });
    watch.redaction = ready.redaction;
    for (const message of found.notices) watch.observer.emit({ type: "notice", message });
    const budget = { ...ready.budget, ...request.budget };
    requirePrices(ready, budget);
    const live = await watch.withoutSecrets(spawnRun(this.#kernel, {
      program: programOf(ready.agent),
      spec: saveSpec(ready.agent),
      agent: ready.agent.manifest.name,
      intent,
      cwd: client.cwd,
      model: ready.modelName,
      budget,
      prepare: (facts) => {
        watch.pid = facts.pid;
        return ready.parts(facts);
      },
    }, watch.observer));
    return this.#hold(hub, live, watch);
  }

  async resume(request: ResumeRequest, observer: RunObserver): Promise<RunHandle> {
    this.#refuseWhenStopping();
    const source = await this.#runs.find(request.run);
    const rules = await rulesFor(this.#runs, request.unknown, [source]);
    const runId = request.fork ? await this.#fork(source, request) : source;
    const hub = new RunHub(observer);
    const watch = new RunWatch(hub, this.#kernel.clock);
    const live = await watch.withoutSecrets(resumeRun(this.#kernel, {
      runId,
      program: agentProgram(""),
      rules,
      acceptCut: request.acceptCut,
      ...(request.intent === undefined ? {} : { intent: request.intent }),
      plan: (ledger, readSpec) => this.#planGoingOn(request, watch, { hub, ledger, readSpec }),
    }, watch.observer)).catch(async (thrown) => {
      if (request.fork) await removeFork(this.#kernel, runId);
      throw thrown;
    });
    return this.#hold(hub, live, watch);
  }

  async attach(run: string, from: AttachFrom, observer: RunObserver): Promise<RunHandle> {
    const runId = await this.#runs.find(run);
    const hub = this.#live.get(runId);
    if (hub?.handle === undefined) throw notAtWork(runId);
    return await joinRun(hub, hub.handle, {
      from,
      observer,
      storage: this.#kernel.storage,
      folder: this.#runs.folderOf(runId),
    });
  }

  async signal(run: string, signal: RunSignal): Promise<void> {
    const runId = await this.#runs.find(run);
    const handle = this.#live.get(runId)?.handle;
    if (handle === undefined) {
      if (signal === "PAUSE") throw notAtWork(runId);
      await endSuspended(this.#kernel, runId, signal);
    } else if (signal === "PAUSE") handle.suspend("paused");
    else handle.kill(signal);
  }

  /** Suspends a run at work. Rejects with INVALID when it isn't. */
  async suspend(run: string, reason: SuspendReason): Promise<void> {
    const runId = await this.#runs.find(run);
    const handle = this.#live.get(runId)?.handle;
    if (handle === undefined) throw notAtWork(runId);
    handle.suspend(reason);
  }

  async #fork(source: string, request: ResumeRequest): Promise<string> {
    return await forkRun(this.#kernel, {
      sourceRunId: source,
      step: request.fromStep,
      confirmed: request.yes,
      hasIntent: request.intent !== undefined,
    });
  }

  async #planGoingOn(
    request: ResumeRequest,
    watch: RunWatch,
    facts: { hub: RunHub; ledger: Ledger; readSpec: () => Promise<Json> },
  ): Promise<ResumeParts<AgentState, AgentPrompt>> {
    const { ledger, hub } = facts;
    const { client, trust } = request;
    const stored = this.#agents.stored(await facts.readSpec());
    const useStored = request.stored || request.fork || ledger.state.end?.state !== "exited";
    const agent = useStored ? stored : await this.#agents.reload(stored, {
      client: { ...client, cwd: ledger.identity.cwd },
      consent: { trust, observer: hub },
    });
    const modelName = request.model ?? (useStored ? ledger.state.model : undefined);
    const ready = readyAgent(agent, {
      ...await this.#readyFacts(client, ledger.identity.cwd, watch),
      model: modelName,
    });
    watch.redaction = ready.redaction;
    const budget = useStored ? ledger.state.budget : ready.budget;
    requirePrices(ready, { ...budget, ...request.budget });
    const onUnknown = request.onUnknown ?? agent.manifest.onUnknown;
    return {
      ...(useStored ? {} : { spec: saveSpec(agent) }),
      model: ready.modelName,
      budget,
      ...(request.budget === undefined ? {} : { budgetChange: request.budget }),
      program: programOf(agent),
      onUnknown,
      prepare: async (facts) => {
        watch.pid = facts.pid;
        return { ...await ready.parts(facts), onUnknown };
      },
    };
  }

  async #readyFacts(
    client: { env: { [name: string]: string } },
    cwd: string,
    watch: RunWatch,
  ): Promise<Omit<ReadyFacts, "model">> {
    if (!cwd.startsWith("/")) {
      throw new SysError("INVALID", `The working folder must be absolute, but is "${cwd}"`, {
        exitCode: EXIT_USAGE,
      });
    }
    this.guard().catch(() => {});
    return {
      storage: this.#kernel.storage,
      clock: this.#kernel.clock,
      guard: () => this.guard(),
      clientEnv: client.env,
      cwd,
      ping: (await this.#agents.settings({ ...client, cwd })).ping,
      notice: (message) => watch.observer.emit({ type: "notice", message }),
    };
  }

  /** One guard for all runs of this process, started with the first. */
  guard(): Promise<Guard> {
    this.#guard ??= startGuard({ instance: this.#kernel.instance, clock: this.#kernel.clock });
    return this.#guard;
  }

  #refuseWhenStopping(): void {
    if (!this.#stopping) return;
    throw new SysError("INTERRUPTED", "rnix is shutting down and starts nothing any more", {
      hint: "Try again in a moment",
    });
  }

  /** Keeps the run while it is at work. */
  #hold(hub: RunHub, live: LiveRun, watch: RunWatch): RunHandle {
    const handle: RunHandle = {
      pid: live.pid ?? 0,
      runId: live.runId,
      suspend: (reason) => live.stop({ kind: "suspend", reason }),
      kill: (signal) => live.stop({ kind: "kill", signal }),
      done: live.done.then((outcome) => watch.redactReport(reportOf(outcome, live.pid))),
    };
    hub.handle = handle;
    this.#live.set(live.runId, hub);
    if (this.#stopping) handle.suspend("shutdown");
    handle.done.finally(() => {
      this.#live.delete(live.runId);
      if (this.#live.size === 0) this.onIdle?.();
    });
    return handle;
  }
}

function notAtWork(runId: string): SysError {
  return new SysError("INVALID", `Run ${shortRunId(runId)} is not at work`, {
    exitCode: EXIT_USAGE,
    hint: "rnix ps -a shows its state; rnix resume takes a suspended one up again",
  });
}
