/**
 * The running system: the operations of `base/operations.ts` on one state folder. It alone knows all parts.
 *
 * Runs live in this OS process; other rnix processes on the same state folder are seen through the files and their locks.
 */
import { agentProgram, type AgentPrompt } from "../agent/agent_program.ts";
import type { AgentState } from "../agent/agent_state.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { type Guard, startGuard } from "../base/guard.ts";
import { type RandomSource, systemRandom } from "../base/ids.ts";
import type { Json } from "../base/json.ts";
import type {
  JournalFindings,
  LogLine,
  ProcessRow,
  ResumePlan,
  ResumeRequest,
  RunHandle,
  RunObserver,
  RunRequest,
  System,
} from "../base/operations.ts";
import { resolvePaths, type RnixPaths } from "../base/paths.ts";
import { makeDurableFolder } from "../base/state_file.ts";
import type { Storage } from "../base/storage.ts";
import { VERSION } from "../base/version.ts";
import { verifyRun } from "../journal/mod.ts";
import { forkRun } from "../kernel/fork.ts";
import { type KernelDeps, type LiveRun, spawnRun } from "../kernel/launch.ts";
import { Pids } from "../kernel/pids.ts";
import { KERNEL_LIMITS } from "../kernel/ports.ts";
import type { Ledger } from "../kernel/ledger.ts";
import { type ResumeParts, resumeRun } from "../kernel/resume.ts";
import { saveSpec } from "../manifest/spec.ts";
import { TrustStore } from "../manifest/trust.ts";
import { AgentSource } from "./agent_source.ts";
import { mountLogLines } from "./mount_logs.ts";
import { planOf } from "./plan.ts";
import { listProcesses } from "./process_list.ts";
import { reportOf } from "./report.ts";
import { RunWatch } from "./run_watch.ts";
import { readyAgent, type ReadyFacts } from "./run_parts.ts";
import { rulesFor } from "./unknown_rules.ts";
import { Runs } from "./runs.ts";

const FOLDER_MODE = 0o700;

/** What the system is handed; everything but the environment has a default. */
export interface SystemOptions {
  /** Environment of the rnix process itself: where its folders are. */
  env: { [name: string]: string };
  uid: number;
  osPid: number;
  storage?: Storage;
  clock?: Clock;
  random?: RandomSource;
}

/** A system and what ends it. */
export interface RunningSystem {
  system: System;
  /** Ends the guard, sweeping what is left of this instance. Idempotent. */
  close(): Promise<void>;
}

/** Opens the state folder. Throws a SysError when it can't be made. */
export async function createSystem(options: SystemOptions): Promise<RunningSystem> {
  const storage = options.storage ?? disk;
  const paths = resolvePaths(options.env, options.uid);
  const system = new LocalSystem(options, storage, paths);
  await makeDurableFolder(storage, paths.state, FOLDER_MODE);
  return { system, close: () => system.close() };
}

class LocalSystem implements System {
  readonly #storage: Storage;
  readonly #kernel: KernelDeps;
  readonly #runs: Runs;
  readonly #agents: AgentSource;
  #guard: Promise<Guard> | undefined;

  constructor(options: SystemOptions, storage: Storage, paths: RnixPaths) {
    const clock = options.clock ?? systemClock;
    const pids = new Pids(storage, clock, paths.state);
    this.#storage = storage;
    this.#runs = new Runs(storage, pids, paths.state);
    this.#agents = new AgentSource({
      storage,
      config: paths.config,
      uid: options.uid,
      trust: new TrustStore(storage, paths.state),
    });
    this.#kernel = {
      storage,
      clock,
      random: options.random ?? systemRandom,
      pids,
      runsFolder: this.#runs.folder,
      osPid: options.osPid,
      instance: crypto.randomUUID(),
      limits: KERNEL_LIMITS,
      version: VERSION,
    };
  }

  async close(): Promise<void> {
    const guard = await this.#guard?.catch(() => undefined);
    await guard?.close();
  }

  async run(request: RunRequest, observer: RunObserver): Promise<RunHandle> {
    const { client, trust, intent } = request;
    const consent = { trust, observer, interactive: client.interactive };
    const found = await this.#agents.find(request.manifest, client, consent);
    const watch = new RunWatch(observer, client.interactive, this.#kernel.clock);
    const facts = this.#readyFacts(client, client.cwd, watch);
    const ready = readyAgent(found.agent, { ...facts, model: request.model });
    watch.redaction = ready.redaction;
    for (const message of found.notices) watch.observer.emit({ type: "notice", message });
    const live = await spawnRun(this.#kernel, {
      program: agentProgram(ready.agent.manifest.instructions),
      spec: saveSpec(ready.agent),
      agent: ready.agent.manifest.name,
      intent,
      cwd: client.cwd,
      model: ready.modelName,
      budget: { ...ready.budget, ...request.budget },
      prepare: (facts) => {
        watch.pid = facts.pid;
        return ready.parts(facts);
      },
    }, watch.observer);
    return handleOf(live, watch);
  }

  async resume(request: ResumeRequest, observer: RunObserver): Promise<RunHandle> {
    const source = await this.#runs.find(request.run);
    const runId = request.fork ? await this.#fork(source, request) : source;
    const watch = new RunWatch(observer, request.client.interactive, this.#kernel.clock);
    const live = await resumeRun(this.#kernel, {
      runId,
      program: agentProgram(""),
      rules: rulesFor(request.unknown, [source, runId]),
      acceptCut: request.acceptCut,
      ...(request.intent === undefined ? {} : { intent: request.intent }),
      plan: (ledger, readSpec) => this.#planGoingOn(request, watch, { observer, ledger, readSpec }),
    }, watch.observer);
    return handleOf(live, watch);
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
    facts: { observer: RunObserver; ledger: Ledger; readSpec: () => Promise<Json> },
  ): Promise<ResumeParts<AgentState, AgentPrompt>> {
    const { ledger, observer } = facts;
    const { client, trust } = request;
    const stored = this.#agents.stored(await facts.readSpec());
    const useStored = request.stored || request.fork || ledger.state.end?.state !== "exited";
    const agent = useStored
      ? stored
      : await this.#agents.reload(stored, { trust, observer, interactive: client.interactive });
    const modelName = request.model ?? (useStored ? ledger.state.model : undefined);
    const ready = readyAgent(agent, {
      ...this.#readyFacts(client, ledger.identity.cwd, watch),
      model: modelName,
    });
    watch.redaction = ready.redaction;
    const onUnknown = request.onUnknown ?? agent.manifest.onUnknown;
    return {
      ...(useStored ? {} : { spec: saveSpec(agent) }),
      model: ready.modelName,
      budget: useStored ? ledger.state.budget : ready.budget,
      ...(request.budget === undefined ? {} : { budgetChange: request.budget }),
      program: agentProgram(agent.manifest.instructions),
      onUnknown,
      prepare: async (facts) => {
        watch.pid = facts.pid;
        return { ...await ready.parts(facts), onUnknown };
      },
    };
  }

  async planResume(request: ResumeRequest): Promise<ResumePlan> {
    const runId = await this.#runs.find(request.run);
    return await planOf(this.#storage, this.#runs, runId, {
      request,
      stored: (spec) => this.#agents.stored(spec),
    });
  }

  async processes(options: { all: boolean }): Promise<ProcessRow[]> {
    return await listProcesses(this.#storage, this.#runs, options);
  }

  mountLogs(mount: string): AsyncIterable<LogLine> {
    return mountLogLines(this.#storage, this.#runs, mount);
  }

  async verifyJournal(run: string): Promise<JournalFindings> {
    const runId = await this.#runs.find(run);
    return await verifyRun(this.#storage, this.#runs.folderOf(runId));
  }

  #readyFacts(
    client: { env: { [name: string]: string } },
    cwd: string,
    watch: RunWatch,
  ): Omit<ReadyFacts, "model"> {
    if (!cwd.startsWith("/")) {
      throw new SysError("INVALID", `The working folder must be absolute, but is "${cwd}"`, {
        exitCode: EXIT_USAGE,
      });
    }
    this.#startGuard().catch(() => {});
    return {
      storage: this.#storage,
      clock: this.#kernel.clock,
      guard: () => this.#startGuard(),
      clientEnv: client.env,
      cwd,
      notice: (message) => watch.observer.emit({ type: "notice", message }),
    };
  }

  /** One guard for all runs of this process, started with the first. */
  #startGuard(): Promise<Guard> {
    this.#guard ??= startGuard({ instance: this.#kernel.instance, clock: this.#kernel.clock });
    return this.#guard;
  }
}

function handleOf(live: LiveRun, watch: RunWatch): RunHandle {
  return {
    pid: live.pid ?? 0,
    runId: live.runId,
    suspend: (reason) => live.stop({ kind: "suspend", reason }),
    kill: (signal) => live.stop({ kind: "kill", signal }),
    done: live.done.then((outcome) => watch.redactReport(reportOf(outcome, live.pid))),
  };
}
