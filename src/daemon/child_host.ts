/**
 * The children of one run: made, taken up again, joined, stopped with it, and counted.
 *
 * A child is a run like any other, held by the same system; this only knows which are whose. What a child came to is read from its ledger, whether it ended just now or long ago.
 */
import { addTotals, type Budget, NO_TOTALS, type Totals } from "../base/budget.ts";
import type { OnUnknown } from "../base/effect.ts";
import { SysError, toSysError } from "../base/errors.ts";
import { exitOfSuspend } from "../base/exit.ts";
import { namingRun, shortRunId } from "../base/ids.ts";
import { isJsonObject, type JsonObject } from "../base/json.ts";
import type { ClientFacts, RunObserver, UnknownRule } from "../base/operations.ts";
import type { ServerPool } from "../devices/mcp/server_pool.ts";
import type { ChildOutcome, ChildPort, ChildRequest, ParentView } from "../kernel/children.ts";
import type { Stop } from "../kernel/endings.ts";
import type { LiveRun, RunOutcome } from "../kernel/launch.ts";
import { callLimit, type LimitHit, modelLimit } from "../policy/limits.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { memberNamed } from "./family.ts";
import { Slots } from "./slots.ts";
import type { TreeTelemetry } from "./telemetry_source.ts";

const EXIT_JOURNAL = exitOfSuspend("journal");

/** Generations below a root. */
export const CHILD_DEPTH_MAX = 5;
/** Children of one process at once; the others wait. */
export const CHILDREN_AT_ONCE = 16;

/** What all processes of a tree share. */
export interface Tree {
  /** The client that ran or resumed the root. */
  client: ClientFacts;
  /** What the resume said of all unknown outcomes that no manifest decides on otherwise. */
  onUnknown?: OnUnknown | undefined;
  /** Decisions that came with the resume, for whichever run of the tree. */
  rules: readonly UnknownRule[];
  /** Who watches the root: asked for its children as well. */
  watcher: Pick<RunObserver, "decideUnknown">;
  /** The servers that are mounted in it. */
  servers: ServerPool;
  /** Where the client's environment asks for it. */
  telemetry?: TreeTelemetry | undefined;
}

/** What a child is made or taken up with. */
export interface ChildFacts {
  runId: string;
  agent: LoadedAgent;
  intent: string;
  /** What the workflow around it says. */
  model: string | undefined;
  parameters: { [name: string]: string };
  parent: ChildHost;
  /** Where it has ended: the process after whose end it is taken up. */
  continues?: number | undefined;
}

/** The system that holds all runs. */
export interface ChildSystem {
  newRunId(): string;
  /** A run at work in this process. */
  live(runId: string): Held | undefined;
  /** What its journal says of a run that isn't at work; undefined where there is none, or it never began. */
  past(runId: string): Promise<RunOutcome | undefined>;
  spawn(facts: ChildFacts): Promise<Held>;
  resume(facts: ChildFacts): Promise<Held>;
}

/** A child at work. */
type Held = { live: LiveRun; host: ChildHost };

export interface ChildHostOptions {
  system: ChildSystem;
  /** The parent's agent, with its family. */
  agent: LoadedAgent;
  /** The host that the parent itself is a child of. */
  above: ChildHost | undefined;
  tree: Tree;
}

export class ChildHost implements ChildPort {
  readonly agent: LoadedAgent;
  readonly above: ChildHost | undefined;
  readonly depth: number;
  readonly tree: Tree;
  readonly #system: ChildSystem;
  readonly #slots = new Slots(CHILDREN_AT_ONCE);
  readonly #live = new Map<string, Held>();
  /** What children that were suspended in this process had used by then. */
  readonly #suspended = new Map<string, Totals>();
  #parent: ParentView | undefined;
  #stop: Stop | undefined;

  constructor({ system, agent, above, tree }: ChildHostOptions) {
    this.tree = tree;
    this.#system = system;
    this.agent = agent;
    this.above = above;
    this.depth = above === undefined ? 0 : above.depth + 1;
  }

  bind(parent: ParentView): void {
    this.#parent = parent;
  }

  /** The process whose children these are; undefined before it is at work. */
  get parent(): ParentView | undefined {
    return this.#parent;
  }

  newRunId(): string {
    return this.#system.newRunId();
  }

  async run(
    request: ChildRequest,
    { signal, onStarted }: { signal: AbortSignal; onStarted: (pid: number) => void },
  ): Promise<ChildOutcome> {
    let giveBack = () => {};
    try {
      giveBack = await this.#slots.take(signal);
      return await this.#run(request, signal, onStarted);
    } catch (thrown) {
      if (thrown instanceof NotMade) return { kind: "refused", error: thrown.error };
      return this.#stuck(request, signal.aborted ? interrupted() : toSysError(thrown));
    } finally {
      giveBack();
    }
  }

  stop(stop: Stop): void {
    if (this.#stop === undefined || stop.kind === "kill") this.#stop = stop;
    for (const { live } of this.#live.values()) live.stop(this.#stop);
  }

  liveTotals(): Totals {
    let sum = NO_TOTALS;
    for (const totals of this.#suspended.values()) sum = addTotals(sum, totals);
    for (const { host } of this.#live.values()) {
      if (host.parent !== undefined) sum = addTotals(sum, host.parent.totals());
    }
    return sum;
  }

  limitAbove(kind: "model" | "call"): LimitHit | undefined {
    for (let host = this.above; host !== undefined; host = host.above) {
      const { parent } = host;
      const budget = pooled(parent?.budget() ?? {});
      // To count a whole tree for every request of every child would take the square of its size.
      if (parent === undefined || Object.keys(budget).length === 0) continue;
      const limit = kind === "model" ? modelLimit : callLimit;
      const hit = limit(budget, parent.totals());
      if (hit === undefined) continue;
      const { runId, pid } = parent;
      return { ...hit, of: { runId, pid } };
    }
    return undefined;
  }

  async #run(
    request: ChildRequest,
    signal: AbortSignal,
    onStarted: (pid: number) => void,
  ): Promise<ChildOutcome> {
    if (this.#stop !== undefined) throw interrupted();
    const { runId, child } = request;
    const held = await this.#hold(request);
    if ("end" in held) {
      return child.detach
        ? { kind: "detached", answer: startedAnswer(child.agent, runId, held.ledger.pid) }
        : this.#outcome(request, held);
    }
    const { live } = held;
    if (live.pid !== undefined) onStarted(live.pid);
    if (child.detach) {
      // One that was taken up and can't go on has no new pid; then it is over already.
      const pid = live.pid ?? (await live.done).ledger.pid;
      return { kind: "detached", answer: startedAnswer(child.agent, runId, pid) };
    }
    this.#live.set(runId, held);
    this.#suspended.delete(runId);
    const onAbort = () => live.stop(this.#stop ?? { kind: "kill", signal: "TERM" });
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted || this.#stop !== undefined) onAbort();
    try {
      return this.#outcome(request, await live.done, live.pid);
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#live.delete(runId);
    }
  }

  /** The child at work, or its end. A person may take it up, or end it, at the same moment: then the lease was theirs, and what they made of it holds. */
  async #hold(request: ChildRequest): Promise<Held | RunOutcome> {
    const found = await this.#found(request);
    if (found !== undefined && isOver(found, request)) return found;
    try {
      return await this.#start(request, found);
    } catch (thrown) {
      const again = thrown instanceof NotMade ? undefined : await this.#found(request);
      if (again !== undefined && isOver(again, request)) return again;
      throw thrown;
    }
  }

  async #found({ runId, child, wasSpawned }: ChildRequest): Promise<Held | RunOutcome | undefined> {
    const past = this.#system.live(runId) ?? await this.#system.past(runId);
    if (past !== undefined || !wasSpawned) return this.#system.live(runId) ?? past;
    throw new NotMade(
      new SysError(
        "NOT_FOUND",
        `Agent "${child.agent}" was at work as run ${
          shortRunId(runId)
        }, which is not there any more: what it did isn't known`,
      ),
    );
  }

  async #start(
    { runId, child, input, continues }: ChildRequest,
    found: Held | RunOutcome | undefined,
  ): Promise<Held> {
    const agent = memberNamed(this.agent, child.agent);
    if (agent === undefined) {
      const names = `Agent "${this.agent.manifest.name}" may not start "${child.agent}"`;
      throw new NotMade(new SysError("NOT_FOUND", names));
    }
    const intent = isJsonObject(input) ? input["intent"] : undefined;
    if (!isJsonObject(input) || typeof intent !== "string" || intent.trim() === "") {
      throw new NotMade(
        new SysError("INVALID", `Agent "${child.agent}" needs an "intent", a text`),
      );
    }
    const facts = { runId, agent, intent, ...this.#orders(input), parent: this };
    if (found === undefined) return await this.#make(facts);
    const isEnded = "end" in found && found.end.state === "exited";
    return await this.#system.resume(isEnded ? { ...facts, continues } : facts);
  }

  /** A workflow says more than an intent; what a model asks for is no more than that. */
  #orders(input: JsonObject): Pick<ChildFacts, "model" | "parameters"> {
    if (this.agent.manifest.workflow === undefined) return { model: undefined, parameters: {} };
    const { model, parameters } = input;
    return {
      model: typeof model === "string" ? model : undefined,
      parameters: isJsonObject(parameters)
        ? Object.fromEntries(
          Object.entries(parameters).map(([name, value]) => [name, String(value)]),
        )
        : {},
    };
  }

  async #make(facts: ChildFacts): Promise<Held> {
    if (this.depth + 1 > CHILD_DEPTH_MAX) {
      throw new NotMade(
        new SysError(
          "RESOURCE_EXHAUSTED",
          `Agents may start each other ${CHILD_DEPTH_MAX} deep at most`,
          { hint: "Do the work here, or give an answer with what there is" },
        ),
      );
    }
    try {
      return await this.#system.spawn(facts);
    } catch (thrown) {
      const error = toSysError(thrown);
      // What only can't be written now is made when its parent goes on.
      const isForLater = error.code === "INTERRUPTED" || error.exitCode === EXIT_JOURNAL;
      throw isForLater ? error : new NotMade(error);
    }
  }

  #outcome(request: ChildRequest, { end, ledger }: RunOutcome, pid = ledger.pid): ChildOutcome {
    const { agent } = request.child;
    if (end.state === "suspended") {
      const used = addTotals(ledger.totalsAt(ledger.state.lastMs), ledger.state.childTotals);
      this.#suspended.set(request.runId, used);
      const why = end.error === undefined ? "" : `: ${end.error.message}`;
      const error = new SysError(
        "INTERRUPTED",
        `Agent "${agent}" (PID ${pid}, run ${
          shortRunId(request.runId)
        }) is suspended (${end.reason})${why}`,
        { hint: hintFor(end.reason, end.error?.hint, request.runId) },
      );
      return { kind: "suspended", reason: end.reason, error };
    }
    const own = ledger.totalsAt(ledger.state.lastMs);
    const { result, status, signal, error } = end;
    const failure = signal !== undefined
      ? `Agent "${agent}" was ended by SIG${signal}`
      : `Agent "${agent}" failed${error === undefined ? "" : `: [${error.code}] ${error.message}`}`;
    const text = status === "completed" ? result : [failure, result].filter(Boolean).join("\n");
    return {
      kind: "exited",
      status,
      totals: addTotals(own, ledger.state.childTotals),
      pid,
      answer: {
        kind: "answer",
        isError: status !== "completed",
        content: text === "" ? [] : [{ type: "text", text }],
      },
    };
  }

  /** The child is there, or may be: its call stays open. */
  #stuck({ child, runId }: ChildRequest, error: SysError): ChildOutcome {
    const reason = this.#stop?.kind === "suspend"
      ? this.#stop.reason
      : error.exitCode === EXIT_JOURNAL || error.code === "RESOURCE_EXHAUSTED"
      ? "journal"
      : "interrupted";
    const message = `Agent "${child.agent}" (run ${shortRunId(runId)}): ${error.message}`;
    return {
      kind: "suspended",
      reason,
      error: new SysError(error.code, message, { hint: error.hint }),
    };
  }
}

/** Whether nothing is to be started: it is at work, or has come to an end that is the call's. */
function isOver(found: Held | RunOutcome, { continues }: ChildRequest): boolean {
  return "live" in found || found.end.state === "exited" && found.ledger.pid !== continues;
}

/** Proof that there is no child. */
class NotMade extends Error {
  readonly error: SysError;

  constructor(error: SysError) {
    super(error.message);
    this.name = "NotMade";
    this.error = error;
  }
}

function interrupted(): SysError {
  return new SysError("INTERRUPTED", "Its parent is being stopped");
}

function startedAnswer(agent: string, runId: string, pid: number) {
  const text = `Agent "${agent}" was started as PID ${pid} (run ${shortRunId(runId)})`;
  return { kind: "answer" as const, isError: false, content: [{ type: "text", text }] };
}

/** `own`: what the child says itself, which may be about a run below it. */
function hintFor(reason: string, own: string | undefined, runId: string): string {
  const run = shortRunId(runId);
  if (reason === "limit" && own !== undefined) return namingRun(own, runId);
  if (reason === "unknown-outcome") {
    return own !== undefined && DECISION_BELOW.test(own)
      ? own
      : `rnix resume RUN --unknown=${run}/CALL:DECISION  # rnix ps shows its calls`;
  }
  return `rnix resume RUN takes it up with its parent; rnix logs ${run} shows what it did`;
}

/** A decision on the call of a run that is named. */
const DECISION_BELOW = /--unknown=[^/\s]+\/CALL/;

/** The part of a budget that all below share: turns and time are each process's own. */
function pooled({ tokens, tool_calls, cost_usd }: Budget): Budget {
  return {
    ...(tokens === undefined ? {} : { tokens }),
    ...(tool_calls === undefined ? {} : { tool_calls }),
    ...(cost_usd === undefined ? {} : { cost_usd }),
  };
}
