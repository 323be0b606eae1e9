/** Makes runs and takes them up again: a root that a client asked for as much as a child of another run. Which runs are at work is the business of its owner. */
import type { AgentPrompt } from "../agent/agent_program.ts";
import type { Budget } from "../base/budget.ts";
import type { OnUnknown } from "../base/effect.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { Guard } from "../base/guard.ts";
import { shortRunId } from "../base/ids.ts";
import type { Json } from "../base/json.ts";
import type { ClientFacts } from "../base/operations.ts";
import type { ReplayOf } from "../journal/entry.ts";
import { WaysOut } from "../base/ways_out.ts";
import { type KernelDeps, type LiveRun, spawnRun } from "../kernel/launch.ts";
import type { Ledger } from "../kernel/ledger.ts";
import { type ResumeParts, resumeRun } from "../kernel/resume.ts";
import type { SettleRule } from "../kernel/settle_rules.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { saveSpec } from "../manifest/spec.ts";
import type { AgentSource } from "./agent_source.ts";
import { ChildHost, type ChildSystem, type Tree } from "./child_host.ts";
import { requirePrices } from "./model_parts.ts";
import { requireSameSubjects } from "./same_subjects.ts";
import { folding, programOf, type ProgramState } from "./program_of.ts";
import { consentBy, type RunHub } from "./run_hub.ts";
import { type AgentParts, type ReadyAgent, readyAgent, type ReadyFacts } from "./run_parts.ts";
import { RunWatch } from "./run_watch.ts";

/** A run that has begun to work. */
export interface Made {
  live: LiveRun;
  watch: RunWatch;
  hub: RunHub;
  host: ChildHost;
}

export interface SpawnFacts {
  agent: LoadedAgent;
  intent: string;
  tree: Tree;
  hub: RunHub;
  /** Told before anything else. */
  notices?: readonly string[];
  model?: string | undefined;
  /** Limits that go before the manifest's. */
  budget?: Budget | undefined;
  /** Where it is a child: its run id, and its parent's children. */
  runId?: string;
  above?: ChildHost;
  /** Where it plays another run: which, and its parts with one side from the recording. */
  played?: { of: ReplayOf; parts: (parts: AgentParts) => AgentParts };
}

export interface TakeUpFacts {
  runId: string;
  tree: Tree;
  hub: RunHub;
  rules: readonly SettleRule[];
  /** Goes on with the stored manifest whatever the run's state. */
  stored: boolean;
  trust: boolean;
  acceptCut: boolean;
  intent?: string | undefined;
  model?: string | undefined;
  budget?: Budget | undefined;
  onUnknown?: OnUnknown | undefined;
  above?: ChildHost;
  /** Where it is a child that has ended: the process that did, and the agent as its parent has it now. */
  ended?: { pid: number; agent: LoadedAgent };
}

export interface RunMakerDeps {
  kernel: KernelDeps;
  agents: AgentSource;
  guard: () => Promise<Guard>;
  children: ChildSystem;
}

type Plan = ResumeParts<ProgramState, AgentPrompt>;

export class RunMaker {
  readonly #deps: RunMakerDeps;
  readonly #ways = new WaysOut();

  constructor(deps: RunMakerDeps) {
    this.#deps = deps;
  }

  /** Rejects with a SysError, leaving nothing, when the run could not be made. */
  async spawn(facts: SpawnFacts): Promise<Made> {
    const { agent, tree, hub, above } = facts;
    const { kernel } = this.#deps;
    const { cwd } = tree.client;
    const watch = new RunWatch(hub, kernel.clock);
    const host = this.#host(agent, tree, above);
    const { name, workflow } = agent.manifest;
    const ready = readyAgent(agent, {
      ...await this.#readyFacts(tree.client, cwd, { watch, host }),
      model: facts.model,
    });
    watch.redaction = ready.redaction;
    for (const message of facts.notices ?? []) watch.observer.emit({ type: "notice", message });
    const budget = { ...ready.budget, ...facts.budget };
    requirePrices(ready, budget);
    const parentRunId = above?.parent?.runId;
    const live = await watch.withoutSecrets(spawnRun(kernel, {
      ...(facts.runId === undefined ? {} : { runId: facts.runId }),
      ...(parentRunId === undefined ? {} : { parentRunId }),
      program: await programOf(agent),
      spec: saveSpec(agent),
      agent: name,
      intent: facts.intent === "" ? workflow?.intent ?? "" : facts.intent,
      cwd,
      model: ready.modelName,
      budget,
      ...(facts.played === undefined ? {} : { replayOf: facts.played.of }),
      prepare: async (place) => {
        watch.pid = place.pid;
        const parts = await ready.parts(place);
        const played = facts.played?.parts(parts) ?? parts;
        return await observed(played, { ...place, tree, above, ready, watch });
      },
    }, watch.observer));
    return { live, watch, hub, host };
  }

  /** Rejects with a SysError when the run can't be taken up; it is then as it was. */
  async takeUp(facts: TakeUpFacts): Promise<Made> {
    const { kernel } = this.#deps;
    const watch = new RunWatch(facts.hub, kernel.clock);
    let host: ChildHost | undefined;
    const program = await folding(kernel.storage, `${kernel.runsFolder}/${facts.runId}`);
    const live = await watch.withoutSecrets(resumeRun(kernel, {
      runId: facts.runId,
      program,
      rules: facts.rules,
      acceptCut: facts.acceptCut,
      ...(facts.intent === undefined ? {} : { intent: facts.intent }),
      plan: async (ledger, readSpec, past) => {
        const isExited = ledger.state.end?.state === "exited";
        if (facts.above !== undefined && isExited && facts.ended?.pid !== ledger.pid) {
          throw hasEnded(ledger);
        }
        const spec = await readSpec();
        const agent = await this.#agentFor(facts, ledger, spec);
        if (!usesStored(facts, ledger)) {
          const stored = this.#deps.agents.stored(spec);
          await requireSameSubjects(past, { stored, present: agent });
        }
        host = this.#host(agent, facts.tree, facts.above);
        return await this.#plan(facts, { watch, host, ledger, agent });
      },
    }, watch.observer));
    if (host === undefined) throw new SysError("INTERNAL", "The run was taken up without a plan");
    return { live, watch, hub: facts.hub, host };
  }

  async #agentFor(facts: TakeUpFacts, ledger: Ledger, spec: Json): Promise<LoadedAgent> {
    const { agents } = this.#deps;
    if (facts.ended !== undefined && !usesStored(facts, ledger)) return facts.ended.agent;
    const stored = agents.stored(spec);
    if (usesStored(facts, ledger)) return stored;
    return await agents.reload(stored, {
      client: { ...facts.tree.client, cwd: ledger.identity.cwd },
      consent: consentBy(facts.hub, facts.trust, this.#deps.kernel.clock),
    });
  }

  async #plan(
    facts: TakeUpFacts,
    found: { watch: RunWatch; host: ChildHost; ledger: Ledger; agent: LoadedAgent },
  ): Promise<Plan> {
    const { watch, host, ledger, agent } = found;
    const isStored = usesStored(facts, ledger);
    const ready = readyAgent(agent, {
      ...await this.#readyFacts(facts.tree.client, ledger.identity.cwd, { watch, host }),
      model: facts.model ?? (isStored ? ledger.state.model : undefined),
    });
    watch.redaction = ready.redaction;
    const budget = isStored ? ledger.state.budget : ready.budget;
    requirePrices(ready, { ...budget, ...facts.budget });
    const onUnknown = facts.onUnknown ?? agent.manifest.onUnknown;
    const { tree, above } = facts;
    // The pid that a fork is made with never was a process.
    const isNew = ledger.identity.forkedFrom !== undefined && new Set(ledger.state.pids).size === 1;
    const previousPid = isNew ? undefined : ledger.state.pids.at(-1);
    return {
      ...(isStored ? {} : { spec: saveSpec(agent) }),
      model: ready.modelName,
      budget,
      ...(facts.budget === undefined ? {} : { budgetChange: facts.budget }),
      program: await programOf(agent),
      onUnknown,
      prepare: async (facts) => {
        watch.pid = facts.pid;
        const parts = { ...await ready.parts(facts), onUnknown };
        return await observed(parts, { ...facts, tree, above, ready, watch, previousPid });
      },
    };
  }

  #host(agent: LoadedAgent, tree: Tree, above: ChildHost | undefined): ChildHost {
    return new ChildHost({ system: this.#deps.children, agent, above, tree });
  }

  async #readyFacts(
    client: ClientFacts,
    cwd: string,
    { watch, host }: { watch: RunWatch; host: ChildHost },
  ): Promise<Omit<ReadyFacts, "model">> {
    if (!cwd.startsWith("/")) {
      throw new SysError("INVALID", `The working folder must be absolute, but is "${cwd}"`, {
        exitCode: EXIT_USAGE,
      });
    }
    const { kernel, agents, guard } = this.#deps;
    guard().catch(() => {});
    return {
      storage: kernel.storage,
      clock: kernel.clock,
      guard,
      clientEnv: client.env,
      cwd,
      ping: (await agents.settings({ ...client, cwd })).ping,
      servers: host.tree.servers,
      ways: this.#ways,
      children: host,
      notice: (message) => watch.observer.emit({ type: "notice", message }),
    };
  }
}

/** The parts with telemetry, where the client asks for it. */
async function observed(
  parts: AgentParts,
  facts: {
    runId: string;
    pid: number;
    tree: Tree;
    above: ChildHost | undefined;
    ready: ReadyAgent;
    watch: RunWatch;
    previousPid?: number | undefined;
  },
): Promise<AgentParts> {
  const { runId, pid, tree, above, ready, watch, previousPid } = facts;
  const parentPid = above?.parent?.pid;
  const telemetry = await tree.telemetry?.begin({
    runId,
    pid,
    agent: ready.agent.manifest.name,
    ...(ready.agent.manifest.workflow === undefined
      ? { model: { provider: parts.model.provider, name: parts.model.model } }
      : {}),
    ...(parentPid === undefined ? {} : { parentPid }),
    ...(previousPid === undefined ? {} : { previousPid }),
    redact: (text) => ready.redaction.sink.redact(text),
    notice: (message) => watch.observer.emit({ type: "notice", message }),
  });
  if (telemetry === undefined) return parts;
  const close = () => {
    parts.close();
    telemetry.close();
  };
  return { ...parts, telemetry, close };
}

/** A suspended run goes on as it was; a dead one as its files say now. */
function usesStored({ stored }: TakeUpFacts, ledger: Ledger): boolean {
  return stored || ledger.state.end?.state !== "exited";
}

/** Its parent takes what it came to; only a person takes up what has ended. */
function hasEnded({ identity }: Ledger): SysError {
  return new SysError("INVALID", `Run ${shortRunId(identity.runId)} has ended`);
}
