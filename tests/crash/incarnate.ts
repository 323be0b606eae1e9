/** One OS process of rnix on a stage: the kernel over its disk, and the real child host for the agents that its run may start. */
import type { Budget } from "../../src/base/budget.ts";
import { newRunId } from "../../src/base/ids.ts";
import type { RunEvent } from "../../src/base/operations.ts";
import { dirname } from "../../src/base/posix_path.ts";
import { Redactor } from "../../src/base/redaction.ts";
import { ServerPool } from "../../src/devices/mcp/server_pool.ts";
import { pastOf } from "../../src/daemon/below.ts";
import { ChildHost, type ChildSystem, type Tree } from "../../src/daemon/child_host.ts";
import { folding } from "../../src/daemon/program_of.ts";
import type { AgentParts } from "../../src/daemon/run_parts.ts";
import { Runs } from "../../src/daemon/runs.ts";
import { agentBinding } from "../../src/kernel/agent_tools.ts";
import { createIntake } from "../../src/kernel/intake.ts";
import { type KernelDeps, type LiveRun, spawnRun } from "../../src/kernel/launch.ts";
import { Pids } from "../../src/kernel/pids.ts";
import { KERNEL_LIMITS, type Observer, type WithoutHead } from "../../src/kernel/ports.ts";
import { resumeRun } from "../../src/kernel/resume.ts";
import type { SettleRule } from "../../src/kernel/settler.ts";
import type { LoadedAgent } from "../../src/manifest/agent_manifest.ts";
import type { FaultyDisk } from "../doubles/faulty_disk.ts";
import type { VirtualClock } from "../doubles/virtual_clock.ts";
import { programFor, ROOT, scriptedAgent, scriptOf } from "./agents.ts";
import { DurableView, shownKey } from "./durable_view.ts";
import type { Scenario } from "./scenario.ts";
import type { Turn, World } from "./world.ts";
import { SERVER } from "./world_tools.ts";

export const RUNS_FOLDER = "/state/runs";
/** Grace of a cancelled call, milliseconds. */
export const GRACE_MS = 20;
/** What a result may wait to be shown beyond the kernel's own delay, milliseconds. */
const SHOW_SLACK_MS = 1;

/** What was shown to the user, of which run, and when. */
export interface Shown {
  /** Undefined for what came before the run was there. */
  runId: string | undefined;
  event: WithoutHead<RunEvent>;
  /** Milliseconds of the virtual clock. */
  atMs: number;
}

/** What is beside a stage's own run on its machine: other stages share clock and disk with it. */
export interface Machine {
  clock: VirtualClock;
  disk: FaultyDisk;
  /** Run ids so far. */
  ids: { count: number };
}

/** What a process works on, and what of it stays. */
export interface StageOfRuns {
  readonly scenario: Scenario;
  readonly clock: VirtualClock;
  readonly world: World;
  readonly disk: FaultyDisk;
  /** Runs at work on this machine. */
  readonly live: Map<string, Held>;
  readonly shown: Shown[];
  readonly violations: string[];
}

/** Which run something is prepared for. */
interface Place {
  runId: string;
  parentRunId: string | undefined;
}

/** A decision on a call of this run. */
export type RunRule = SettleRule & { run: string };

export interface ResumeOptions {
  acceptCut?: boolean;
  budgetChange?: Budget;
  /** Decisions on calls of the runs below it. */
  below?: readonly RunRule[];
}

/** The kernel of one process of a machine. */
export function kernelOn(
  { disk, clock, ids }: Machine,
  osPid: number,
  checkpointGrowthBytes?: number,
): KernelDeps {
  return {
    storage: disk,
    clock,
    random: (bytes) => {
      ids.count += 1;
      new DataView(bytes.buffer).setUint32(12, ids.count);
      return bytes;
    },
    pids: new Pids(disk, clock, dirname(RUNS_FOLDER)),
    runsFolder: RUNS_FOLDER,
    osPid,
    instance: `instance-${osPid}`,
    limits: { ...KERNEL_LIMITS, cancelGraceMs: GRACE_MS },
    version: "0.0.0",
    ...(checkpointGrowthBytes === undefined ? {} : { checkpointGrowthBytes }),
  };
}

/** A run at work, and what its children are started through. */
export interface Held {
  live: LiveRun;
  host: ChildHost;
}

export class Incarnate {
  readonly kernel: KernelDeps;
  readonly #stage: StageOfRuns;
  readonly #disk: FaultyDisk;
  readonly #runs: Runs;
  readonly #views = new Map<string, DurableView>();

  constructor(stage: StageOfRuns, kernel: KernelDeps) {
    this.#stage = stage;
    this.#disk = stage.disk;
    this.kernel = kernel;
    this.#runs = new Runs(stage.disk, kernel.pids, dirname(RUNS_FOLDER));
    stage.world.hasDurableIntent = (key) =>
      this.#viewOf(key.slice(0, key.indexOf("/"))).hasIntent(key);
  }

  /** Starts the scenario's run. */
  async spawn(): Promise<LiveRun> {
    const { scenario, clock } = this.#stage;
    await this.#disk.makeFolder(RUNS_FOLDER, 0o700);
    await this.#disk.syncFolder("/state");
    await this.#disk.syncFolder("/");
    const host = this.#host(this.#agentOf(ROOT), undefined, []);
    const { live } = await this.#spawn({ host, intent: "Do it", budget: scenario.budget ?? {} });
    const { stopAt } = scenario;
    if (stopAt !== undefined) {
      const stop = () => live.stop({ kind: "suspend", reason: stopAt.reason });
      const cancel = clock.after(stopAt.ms, stop);
      live.done.then(cancel);
    }
    const { operatorAtMs } = scenario;
    if (operatorAtMs !== undefined) {
      const cancel = clock.after(operatorAtMs, () => this.#write(live));
      live.done.then(cancel);
    }
    return live;
  }

  /** A person's write; what it gave is durable when it is given. */
  #write(live: LiveRun): void {
    const path = `/mnt/mcp/${SERVER}/tools/pay`;
    const { signal } = new AbortController();
    live.access({ operation: "write", path, input: { to: "person", ms: 4 } }, signal)
      .then((answer) => {
        if (answer.kind === "result" && !this.#disk.isStopped) {
          this.#checkShown(this.#viewOf(live.runId), `access ${answer.call}`, 0);
        }
      }, () => {});
  }

  async #spawn(
    { host, ...facts }: { host: ChildHost; intent: string; budget: Budget; runId?: string },
  ): Promise<Held> {
    const { runId, intent, budget } = facts;
    const parentRunId = host.above?.parent?.runId;
    const { name } = host.agent.manifest;
    const live = await spawnRun(this.kernel, {
      ...(runId === undefined ? {} : { runId }),
      ...(parentRunId === undefined ? {} : { parentRunId }),
      program: await programFor(this.#stage.scenario, name),
      spec: { v: 1 },
      agent: name,
      intent,
      cwd: "/",
      model: "fixed",
      budget,
      prepare: ({ runId }) => this.#parts(host, { runId, parentRunId }),
    }, this.#observer(runId));
    return this.#hold({ live, host });
  }

  /** Takes a run up; whichever agent it is of. */
  async resume(
    runId: string,
    rules: readonly SettleRule[],
    { acceptCut = false, budgetChange, below = [] }: ResumeOptions = {},
  ): Promise<LiveRun> {
    const facts = { acceptCut, below, ...(budgetChange === undefined ? {} : { budgetChange }) };
    const { live } = await this.#resume(runId, rules, facts, undefined);
    return live;
  }

  async #resume(
    runId: string,
    rules: readonly SettleRule[],
    { acceptCut = false, budgetChange, below = [] }: ResumeOptions,
    above: ChildHost | undefined,
  ): Promise<Held> {
    const { scenario } = this.#stage;
    let host = this.#host(this.#agentOf(ROOT), above, below);
    const live = await resumeRun(this.kernel, {
      runId,
      program: await folding(this.#disk, `${RUNS_FOLDER}/${runId}`),
      rules,
      acceptCut,
      plan: async (ledger) => {
        const { agent, parentRunId } = ledger.identity;
        host = this.#host(this.#agentOf(agent), above, below);
        return {
          model: "fixed",
          budget: ledger.state.budget,
          ...(budgetChange === undefined ? {} : { budgetChange }),
          onUnknown: scenario.onUnknown,
          program: await programFor(scenario, agent),
          prepare: ({ runId }) => this.#parts(host, { runId, parentRunId }),
        };
      },
    }, this.#observer(runId));
    return this.#hold({ live, host });
  }

  #hold(held: Held): Held {
    const { live } = held;
    const { live: all } = this.#stage;
    all.set(live.runId, held);
    live.done.then(() => all.delete(live.runId));
    return held;
  }

  #agentOf(name: string): LoadedAgent {
    return scriptedAgent(this.#stage.scenario, name);
  }

  #host(agent: LoadedAgent, above: ChildHost | undefined, below: readonly RunRule[]): ChildHost {
    const client = { cwd: "/", env: {}, interactive: false };
    const servers = new ServerPool();
    const tree: Tree = above?.tree ?? { client, rules: below, watcher: {}, servers };
    return new ChildHost({ system: this.#system, agent, above, tree });
  }

  readonly #system: ChildSystem = {
    newRunId: () => newRunId(this.kernel.clock.now(), this.kernel.random),
    live: (runId) => this.#stage.live.get(runId),
    past: (runId) => pastOf(this.kernel, this.#runs, runId),
    spawn: ({ runId, agent, intent, parent }) =>
      this.#spawn({ host: this.#host(agent, parent, []), intent, budget: {}, runId }),
    resume: async ({ runId, parent }) => {
      const { ledger } = await this.#runs.view(runId);
      const open = new Set(ledger.openCalls().map(({ call }) => call));
      const rules = parent.tree.rules.filter(({ run, call }) =>
        run === runId && call !== undefined && open.has(call)
      );
      return await this.#resume(runId, rules, {}, parent);
    },
  };

  async #parts(host: ChildHost, facts: Place): Promise<AgentParts> {
    const { world, scenario } = this.#stage;
    const { name, agents, workflow } = host.agent.manifest;
    const outputTokensMax = workflow === undefined ? 1_000 : undefined;
    return {
      program: await programFor(scenario, name),
      specs: workflow === undefined ? [world.spec] : [],
      unavailable: [],
      own: scenario.hasOwnTools ? [world.own] : [],
      children: host,
      agents: agents.map(({ name, detach }) =>
        agentBinding({ name, description: "", detach, outputTokensMax })
      ),
      driver: world.driver,
      model: world.modelOf(this.#turnsOf(name, facts)),
      intake: createIntake(new Redactor([])),
      redactor: new Redactor([]),
      trace: { record: () => {} },
      onUnknown: scenario.onUnknown,
      close: () => {},
    };
  }

  /** A first try may be scripted to go otherwise than the next. */
  #turnsOf(name: string, { runId, parentRunId }: Place): readonly Turn[] {
    const { turns, first } = scriptOf(this.#stage.scenario, name);
    if (parentRunId === undefined) return turns;
    const attempt = this.#viewOf(parentRunId).attemptFor(runId);
    return attempt === 1 && first !== undefined ? first : turns;
  }

  /** What a user would see of one run. */
  #observer(knownRunId: string | undefined): Observer {
    let runId = knownRunId;
    let lastSeq = 0;
    return {
      emit: (event) => {
        if (this.#disk.isStopped) return;
        const { clock, shown } = this.#stage;
        if ("run_id" in event && /^run\.(started|resumed)$/.test(event.type)) runId = event.run_id;
        shown.push({ runId, event, atMs: clock.monotonic() });
        const key = shownKey(event);
        if (key !== undefined && runId !== undefined) {
          lastSeq = this.#checkShown(this.#viewOf(runId), key, lastSeq);
        }
      },
    };
  }

  #viewOf(runId: string): DurableView {
    const view = this.#views.get(runId) ??
      new DurableView(this.#disk, `${RUNS_FOLDER}/${runId}/journal.jsonl`);
    this.#views.set(runId, view);
    return view;
  }

  /** What is shown is durable by then, follows its entry soon, and results come in the order of their entries. Gives the seq of what was shown last. */
  #checkShown(view: DurableView, key: string, lastSeq: number): number {
    const { violations, clock } = this.#stage;
    const made = view.find(key);
    if (made === undefined) {
      violations.push(`shown before it was durable: ${key}`);
      return lastSeq;
    }
    if (!/^(result|reply)/.test(key)) return lastSeq;
    const lagMs = clock.now() - made.ts;
    if (lagMs > KERNEL_LIMITS.showDelayMs + SHOW_SLACK_MS) {
      violations.push(`shown ${lagMs} ms after its entry: ${key}`);
    }
    if (made.seq < lastSeq) violations.push(`shown out of order: ${key}`);
    return made.seq;
  }
}
