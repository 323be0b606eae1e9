/**
 * A kernel in a world that lies in memory: servers whose tools are functions, a model that plays replies in order, a disk and a clock that the test moves.
 *
 * `start` and `resume` give a live run; `run` and `resumeToEnd` its outcome, with the clock moved as far as it takes.
 */
import { NO_CHILDREN } from "../../src/kernel/children.ts";
import { agentProgram, type AgentPrompt } from "../../src/agent/agent_program.ts";
import type { AgentState } from "../../src/agent/agent_state.ts";
import type { Budget } from "../../src/base/budget.ts";
import type { Json } from "../../src/base/json.ts";
import type { OnUnknown } from "../../src/base/effect.ts";
import type { RunEvent } from "../../src/base/operations.ts";
import { Redactor } from "../../src/base/redaction.ts";
import type { Entry, EntryType } from "../../src/journal/entry.ts";
import { readRun } from "../../src/journal/mod.ts";
import { type ForkRequest, forkRun } from "../../src/kernel/fork.ts";
import { createIntake } from "../../src/kernel/intake.ts";
import {
  type KernelDeps,
  type LiveRun,
  type RunOutcome,
  type RunParts,
  spawnRun,
} from "../../src/kernel/launch.ts";
import type { MountFailure } from "../../src/kernel/mount.ts";
import { Pids } from "../../src/kernel/pids.ts";
import {
  KERNEL_LIMITS,
  type KernelLimits,
  type Observer,
  type TraceRecord,
  type WithoutHead,
} from "../../src/kernel/ports.ts";
import { resumeRun } from "../../src/kernel/resume.ts";
import { RunState } from "../../src/kernel/run_state.ts";
import type { SettleRule } from "../../src/kernel/settler.ts";
import { FaultyDisk } from "../doubles/faulty_disk.ts";
import { VirtualClock } from "../doubles/virtual_clock.ts";
import { ModelDouble, type ModelFacts, type PlannedReply } from "./model_double.ts";
import { ServerDouble, ServerDoubles } from "./server_double.ts";

export const RUNS_FOLDER = "/state/runs";
const SYSTEM = "You are a test.";

export type Event = WithoutHead<RunEvent>;
/** Members of a union whose `type` may be `T`. */
type Of<U, T> = U extends { type: infer Type } ? T extends Type ? U : never : never;

export interface StageOptions {
  servers?: ServerDouble[];
  own?: RunParts<AgentState, AgentPrompt>["own"];
  children?: RunParts<AgentState, AgentPrompt>["children"];
  agents?: RunParts<AgentState, AgentPrompt>["agents"];
  unavailable?: MountFailure[];
  /** Values that errors must not show. */
  secrets?: string[];
  replies?: PlannedReply[];
  /** Facts of the model, and replies of the one that stands in for it. */
  model?: ModelFacts;
  fallback?: { replies: PlannedReply[]; model?: ModelFacts };
  /** Window of the model, tokens. */
  contextWindow?: number | undefined;
  budget?: Budget;
  onUnknown?: OnUnknown;
  intent?: string;
  limits?: Partial<KernelLimits>;
  decideUnknown?: Observer["decideUnknown"];
  /** The stored manifest; one that means nothing when left out. */
  spec?: Json;
}

export interface ResumeFacts {
  rules?: SettleRule[];
  intent?: string;
  budget?: Budget;
  budgetChange?: Budget;
  acceptCut?: boolean;
}

export class KernelStage {
  readonly clock = new VirtualClock();
  readonly model: ModelDouble;
  readonly fallback: ModelDouble | undefined;
  readonly events: Event[] = [];
  readonly traces: TraceRecord[] = [];
  readonly options: StageOptions;
  servers: ServerDoubles;
  disk = new FaultyDisk();
  #instances = 0;

  constructor(options: StageOptions = {}) {
    this.options = options;
    this.model = new ModelDouble(this.clock, options.replies ?? [], options.model);
    const { fallback } = options;
    this.fallback = fallback === undefined ? undefined : new ModelDouble(
      this.clock,
      fallback.replies,
      { provider: "other", model: "second", ...fallback.model },
    );
    this.servers = new ServerDoubles(this.clock, options.servers ?? []);
  }

  get kernel(): KernelDeps {
    this.#instances += 1;
    return {
      storage: this.disk,
      clock: this.clock,
      random: (bytes) => crypto.getRandomValues(bytes),
      pids: new Pids(this.disk, this.clock, "/state"),
      runsFolder: RUNS_FOLDER,
      osPid: this.#instances,
      instance: `instance-${this.#instances}`,
      limits: { ...KERNEL_LIMITS, ...this.options.limits },
      version: "0.0.0",
    };
  }

  get observer(): Observer {
    const { decideUnknown } = this.options;
    const { disk } = this;
    const emit = (event: Event) => {
      if (!disk.isStopped) this.events.push(event);
    };
    return decideUnknown === undefined ? { emit } : { emit, decideUnknown };
  }

  get #program() {
    return agentProgram(SYSTEM, { contextWindow: this.options.contextWindow });
  }

  async #parts(): Promise<RunParts<AgentState, AgentPrompt>> {
    await Promise.resolve();
    const { disk } = this;
    return {
      program: this.#program,
      specs: this.servers.specs,
      unavailable: this.options.unavailable ?? [],
      own: this.options.own ?? [],
      children: this.options.children ?? NO_CHILDREN,
      agents: this.options.agents ?? [],
      driver: this.servers.driver,
      model: this.model.portFor(() => disk.isStopped),
      ...(this.fallback === undefined
        ? {}
        : { fallback: this.fallback.portFor(() => disk.isStopped) }),
      intake: createIntake(new Redactor([])),
      redactor: new Redactor(this.options.secrets ?? []),
      trace: { record: (record) => this.traces.push(record) },
      onUnknown: this.options.onUnknown ?? "ask",
      close: () => {},
    };
  }

  /** The process dies at this moment; the disk is as it was. */
  kill(): void {
    const dead = this.disk;
    this.disk = dead.kill();
    dead.stop();
  }

  /** A run that has begun and whose program is about to. */
  async start(): Promise<LiveRun> {
    await this.disk.makeFolder(RUNS_FOLDER, 0o700);
    return await this.clock.run(spawnRun(this.kernel, {
      program: this.#program,
      spec: this.options.spec ?? { v: 1 },
      agent: "tester",
      intent: this.options.intent ?? "Do it",
      cwd: "/",
      model: "fixed",
      budget: this.options.budget ?? {},
      prepare: () => this.#parts(),
    }, this.observer));
  }

  async run(): Promise<RunOutcome & { runId: string }> {
    const live = await this.start();
    return { ...await this.clock.run(live.done), runId: live.runId };
  }

  async resume(runId: string, facts: ResumeFacts = {}): Promise<LiveRun> {
    const { rules = [], intent, budgetChange, acceptCut = false } = facts;
    return await this.clock.run(resumeRun(this.kernel, {
      runId,
      program: agentProgram(""),
      rules,
      acceptCut,
      ...(intent === undefined ? {} : { intent }),
      plan: async (ledger) => {
        await Promise.resolve();
        return {
          model: "fixed",
          budget: facts.budget ?? ledger.state.budget,
          ...(budgetChange === undefined ? {} : { budgetChange }),
          onUnknown: this.options.onUnknown ?? "ask",
          program: this.#program,
          prepare: () => this.#parts(),
        };
      },
    }, this.observer));
  }

  async resumeToEnd(runId: string, facts: ResumeFacts = {}): Promise<RunOutcome> {
    return await this.clock.run((await this.resume(runId, facts)).done);
  }

  async fork(request: Partial<ForkRequest> & { sourceRunId: string }): Promise<string> {
    const whole = { step: undefined, confirmed: false, hasIntent: false, ...request };
    return await this.clock.run(forkRun(this.kernel, whole));
  }

  async entries(runId: string): Promise<Entry[]> {
    const entries: Entry[] = [];
    await readRun(this.disk, `${RUNS_FOLDER}/${runId}`, (entry) => void entries.push(entry));
    return entries;
  }

  async entriesOf<T extends EntryType>(runId: string, type: T): Promise<Of<Entry, T>[]> {
    const isOfType = (entry: Entry): entry is Of<Entry, T> => entry.type === type;
    return (await this.entries(runId)).filter(isOfType);
  }

  eventsOf<T extends Event["type"]>(type: T): Of<Event, T>[] {
    const isOfType = (event: Event): event is Of<Event, T> => event.type === type;
    return this.events.filter(isOfType);
  }

  /** The state that the journal folds to. */
  async fold(runId: string): Promise<RunState<AgentState, AgentPrompt>> {
    const state = new RunState(this.#program);
    for (const entry of await this.entries(runId)) state.fold(entry);
    return state;
  }
}

export { ModelDouble, ServerDouble };
