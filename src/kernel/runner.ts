/**
 * Runs a program: asks it what should exist, starts what doesn't yet, folds what comes, until it exits or can't go on.
 *
 * Invariants
 * 1. An action is started at most once per key; its key has an entry before the start returns.
 * 2. Exit and suspend take effect only when nothing is in flight, what a person does on its devices included, and no question is open; once only such things are left, no new ones are begun.
 * 3. While an unknown outcome waits for a decision nothing new is started.
 * 4. After `stop`, a refused request or a fault of rnix nothing is started; what is in flight is awaited, and aborted first unless a request was refused.
 * 5. The end of a run is durable before `run` resolves, unless the journal failed: then nothing is said to be durable.
 */
import { type Clock, sleep } from "../base/clock.ts";
import { SysError, toSysError } from "../base/errors.ts";
import type { EndSignal, SuspendReason } from "../base/exit.ts";
import type { EntryBody } from "../journal/entry.ts";
import { describeLimit } from "../policy/limits.ts";
import { errorRecord } from "./answers.ts";
import {
  exitBody,
  failedBody,
  type Stop,
  stopBody,
  suspendedBody,
  undecidedError,
} from "./endings.ts";
import type { ChildWaits } from "./child_calls.ts";
import type { Gate } from "./gate.ts";
import type { OpenCall, RunEnd } from "./ledger.ts";
import type { ModelEnd, ModelGate } from "./model_gate.ts";
import type { KernelLimits, Observer } from "./ports.ts";
import type { Action, CallAction, PromptHead } from "./program.ts";
import type { RunLog } from "./run_log.ts";
import type { RunState } from "./run_state.ts";
import { askDecision } from "./questions.ts";
import { type Settler, unknownCall } from "./settler.ts";

export interface RunnerDeps<S, P extends PromptHead> {
  clock: Clock;
  log: RunLog;
  state: RunState<S, P>;
  gate: Gate;
  models: ModelGate<P>;
  settler: Settler;
  observer: Observer;
  limits: KernelLimits;
  /** Called before a turn begins: takes over changed tools. */
  betweenTurns?: () => void;
}

/** What becomes of the children of a process that can't write its journal: theirs say how far they came. */
const UNWRITTEN: Stop = { kind: "suspend", reason: "interrupted" };

type Exit = Extract<Action<PromptHead>, { kind: "exit" }>;
type Startable<P extends PromptHead> = Exclude<Action<P>, { kind: "exit" }>;

export class Runner<S, P extends PromptHead> {
  readonly #deps: RunnerDeps<S, P>;
  readonly #inFlight = new Map<string, AbortController>();
  /** Those of them that are pauses. */
  readonly #pauses = new Set<string>();
  readonly #questions = new Map<string, AbortController>();
  /** What persons do on the devices. */
  readonly #beside = new Set<AbortController>();
  /** Only what persons do keeps it from its end. */
  #leaving = false;
  /** Calls nobody decided on when asked. */
  readonly #undecided = new Set<string>();
  /** Calls whose child is suspended, by action key. */
  readonly #waiting = new Map<string, ChildWaits>();
  readonly #done = Promise.withResolvers<RunEnd>();
  #blocks = new Map<SuspendReason, SysError>();
  #stop: Stop | undefined;
  #refused: SysError | undefined;
  #ending = false;
  #checkpointing = false;
  #cancelDeadline = () => {};

  constructor(deps: RunnerDeps<S, P>) {
    this.#deps = deps;
  }

  /** Runs to the end of this incarnation. Never rejects. */
  run(): Promise<RunEnd> {
    const { log } = this.#deps;
    log.onEntries = () => this.#pump();
    log.onFailure = () => this.#pump();
    this.#awaitDeadline();
    this.#pump();
    return this.#done.promise;
  }

  /** Ends this incarnation; of several stops the strongest holds: a kill goes before a suspend. */
  stop(stop: Stop): void {
    if (this.#ending || this.#stop?.kind === "kill") return;
    if (stop.kind === "kill") this.#note(stop.signal);
    if (this.#stop === undefined || stop.kind === "kill") this.#stop = stop;
    this.#abortAll(this.#stop);
    this.#pump();
  }

  /** Does what isn't the program's while the run is at work; a stop aborts it, and the end awaits it. Rejects with INVALID when the run is about to end, else as `work` does. */
  async beside<T>(work: (signal: AbortSignal) => Promise<T>, given: AbortSignal): Promise<T> {
    const isEnding = this.#ending || this.#leaving || this.#stop !== undefined ||
      this.#refused !== undefined || this.#deps.log.failure !== undefined;
    if (isEnding) throw new SysError("INVALID", "The run is about to end");
    const abort = new AbortController();
    this.#beside.add(abort);
    try {
      return await work(AbortSignal.any([abort.signal, given]));
    } finally {
      this.#beside.delete(abort);
      this.#pump();
    }
  }

  #awaitDeadline(): void {
    const { state, clock } = this.#deps;
    const limitMs = state.ledger.state.budget.duration_ms;
    if (limitMs === undefined) return;
    const leftMs = limitMs - state.ledger.totalsAt(clock.now()).active_ms;
    if (leftMs <= 0) return this.#runOut(limitMs);
    // A timer may fire early: it can't hold more than some weeks.
    this.#cancelDeadline = clock.after(leftMs, () => this.#awaitDeadline());
  }

  #runOut(limitMs: number): void {
    const hit = describeLimit({ key: "duration", limit: limitMs, used: limitMs });
    const error = new SysError("BUDGET_EXCEEDED", hit.message, { hint: hit.hint });
    this.stop({ kind: "suspend", reason: "limit", error });
  }

  #note(signal: EndSignal): void {
    try {
      this.#deps.log.append({ type: "signal", signal, origin: "user" });
    } catch {
      // The journal has failed; the run ends for that reason.
    }
  }

  /** Children are told why first: an abort alone would be their end. */
  #abortAll(stop: Stop): void {
    this.#deps.gate.stopChildren(stop);
    const all = [...this.#inFlight.values(), ...this.#questions.values(), ...this.#beside];
    for (const abort of all) abort.abort();
  }

  #pump(): void {
    if (this.#ending) return;
    try {
      if (this.#deps.log.failure !== undefined) this.#abortAll(UNWRITTEN);
      else if (this.#stop === undefined && this.#refused === undefined) this.#advance();
      if (this.#inFlight.size + this.#questions.size + this.#beside.size > 0) return;
      if (this.#deps.log.failure !== undefined) this.#endByJournal(this.#deps.log.failure);
      else if (this.#refused !== undefined) {
        this.#finish(failedBody(errorRecord(this.#refused), this.#totals()));
      } else if (this.#stop !== undefined) {
        this.#finish(stopBody(this.#stop, this.#totals(), this.#deps.settler.toDecide()));
      }
    } catch (thrown) {
      this.#crash(toSysError(thrown));
    }
  }

  #advance(): void {
    const { settler, state } = this.#deps;
    this.#leaving = false;
    this.#withdrawQuestions();
    const undecided = settler.settle(false, []).filter((open) => !this.#ask(open));
    if (this.#questions.size > 0) return;
    if (undecided.length > 0) {
      this.#endWhenIdle("unknown-outcome", undecidedError(undecided));
      return;
    }
    this.#blocks = new Map([...this.#blocks].filter(([reason]) => reason === "model"));
    let exit: Exit | undefined;
    const actions = this.#decide();
    this.#endPauses(actions);
    for (const action of actions) {
      if (action.kind === "exit") exit = action;
      else if (this.#inFlight.has(action.key)) continue;
      else if (!state.ledger.hasStarted(action.key)) this.#startOrBlock(action);
      else if (action.kind === "call") this.#continueChild(action);
    }
    this.#checkpoint();
    if (this.#inFlight.size > 0) return;
    if (this.#refused !== undefined) return;
    if (this.#awaitsBeside()) return;
    const blocks = this.#allBlocks();
    if (exit !== undefined) this.#finish(exitBody(exit, this.#totals()));
    else if (blocks.size > 0) this.#finish(suspendedBody(blocks, this.#totals()));
    else throw new SysError("INTERNAL", "The program waits, but nothing is in flight");
  }

  /** What should exist now. Changed tools are taken over before a turn begins, which may give the program something to tell its model. */
  #decide(): Action<P>[] {
    const { state, betweenTurns } = this.#deps;
    const actions = state.decide();
    const begins = actions.some((action) =>
      action.kind === "model" && !state.ledger.hasStarted(action.key)
    );
    if (!begins || betweenTurns === undefined) return actions;
    betweenTurns();
    return state.decide();
  }

  #startOrBlock(action: Startable<P>): void {
    const hit = action.kind === "timer"
      ? undefined
      : this.#deps.gate.limitFor(action.kind === "call" ? "call" : "model");
    if (hit !== undefined) {
      const { message, hint } = describeLimit(hit);
      this.#blocks.set("limit", new SysError("BUDGET_EXCEEDED", message, { hint }));
      return;
    }
    this.#hold(action.key, (signal) => this.#start(action, signal));
  }

  /** A child of an earlier process, or one that was suspended then, is taken up once in this process. */
  #continueChild(action: CallAction): void {
    const { gate, state } = this.#deps;
    if (this.#waiting.has(action.key) || state.ledger.openChild(action.call) === undefined) return;
    this.#hold(action.key, (signal) => gate.continueChild(action, signal));
  }

  /** Counts as in flight until its work is over. */
  #hold(key: string, work: (signal: AbortSignal) => Promise<ModelEnd | ChildWaits | void>): void {
    const abort = new AbortController();
    this.#inFlight.set(key, abort);
    work(abort.signal).then((end) => {
      if (end !== undefined && "kind" in end) this.#noteModelEnd(end);
      else if (end !== undefined) this.#waiting.set(key, end);
    }, (thrown) => {
      if (this.#deps.log.failure === undefined) this.#refused = toSysError(thrown);
    }).finally(() => {
      this.#inFlight.delete(key);
      this.#pump();
    });
  }

  /** Its entry is appended when this returns; a failure to append it is the work's failure, like any later one. */
  #start(action: Startable<P>, signal: AbortSignal): Promise<ModelEnd | ChildWaits | void> {
    if (action.kind === "model") return this.#deps.models.request(action, signal);
    if (action.kind === "compact") return this.#deps.models.compact(action, signal);
    if (action.kind === "timer") return this.#wait(action, signal);
    try {
      return this.#deps.gate.call(action, signal);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }

  /** A pause that isn't asked for any more would only hold up the end. */
  #endPauses(actions: readonly Action<P>[]): void {
    for (const key of this.#pauses) {
      if (!actions.some((action) => action.kind === "timer" && action.key === key)) {
        this.#inFlight.get(key)?.abort();
      }
    }
  }

  /** A pause has no entry before its end: a resumed process waits anew. */
  async #wait({ key, ms }: Extract<Action<P>, { kind: "timer" }>, signal: AbortSignal) {
    const { clock, log } = this.#deps;
    this.#pauses.add(key);
    try {
      await sleep(clock, ms, signal);
    } catch {
      return;
    } finally {
      this.#pauses.delete(key);
    }
    log.append({ type: "timer", key });
  }

  /** Why it can't go on: what stands in its own way, and in the way of its children. */
  #allBlocks(): Map<SuspendReason, SysError> {
    const waits = [...this.#waiting.values()].map(({ reason, error }) => [reason, error] as const);
    return new Map([...waits, ...this.#blocks]);
  }

  #noteModelEnd(end: ModelEnd): void {
    if (end.kind === "unavailable") this.#blocks.set("model", end.error);
    if (end.kind === "refused") this.#refused = end.error;
  }

  /** Whether a person is being asked about this call. */
  #ask(open: OpenCall): boolean {
    const { observer, state, settler, limits, clock } = this.#deps;
    if (this.#questions.has(open.call)) return true;
    if (observer.decideUnknown === undefined || this.#undecided.has(open.call)) return false;
    const abort = new AbortController();
    this.#questions.set(open.call, abort);
    const { signal } = abort;
    const { decisionMs } = limits;
    const call = unknownCall(state.ledger.identity.runId, open);
    askDecision(observer, call, { clock, decisionMs, signal })
      .then((decision) => {
        const still = state.ledger.state.open[open.call];
        if (this.#stop !== undefined || still?.attempt !== open.attempt) return;
        if (decision === undefined) this.#undecided.add(open.call);
        else settler.decide(still, decision);
      })
      .catch(() => {})
      .finally(() => {
        this.#questions.delete(open.call);
        this.#pump();
      });
    return true;
  }

  /** Nobody need decide on what has been answered meanwhile. */
  #withdrawQuestions(): void {
    const { open } = this.#deps.state.ledger.state;
    for (const [call, abort] of this.#questions) {
      if (open[call]?.cause === undefined) abort.abort();
    }
  }

  #checkpoint(): void {
    const { log, state } = this.#deps;
    if (this.#checkpointing || !log.journal.checkpointDue) return;
    this.#checkpointing = true;
    const checkpoint = {
      versions: state.versions,
      seq: log.journal.lastSeq,
      state: state.save(),
    };
    // A checkpoint only saves time: without it the journal is folded from its start.
    log.barrier(checkpoint.seq).then(() => log.journal.saveCheckpoint(checkpoint))
      .catch(() => {}).finally(() => this.#checkpointing = false);
  }

  #awaitsBeside(): boolean {
    this.#leaving = this.#beside.size > 0;
    return this.#leaving;
  }

  #endWhenIdle(reason: SuspendReason, error: SysError): void {
    if (this.#inFlight.size > 0 || this.#awaitsBeside()) return;
    this.#blocks.set(reason, error);
    this.#finish(suspendedBody(this.#blocks, this.#totals()));
  }

  #totals() {
    return this.#deps.state.ledger.endTotalsAt(this.#deps.clock.now());
  }

  #finish(body: EntryBody): void {
    this.#ending = true;
    this.#cancelDeadline();
    const { log, state } = this.#deps;
    log.appendLarge(body).then(async (entry) => {
      await log.barrier(entry.seq);
      const { end } = state.ledger.state;
      if (end === undefined) throw new SysError("INTERNAL", "The run has no end");
      this.#done.resolve(end);
    }).catch((thrown) => this.#endByJournal(toSysError(thrown)));
  }

  #endByJournal(error: SysError): void {
    this.#ending = true;
    this.#cancelDeadline();
    this.#deps.log.discardShows();
    this.#done.resolve({
      state: "suspended",
      reason: "journal",
      reasons: ["journal"],
      error: errorRecord(error),
    });
  }

  /** A fault of rnix itself: what is in flight is aborted and awaited, then the run fails. */
  #crash(error: SysError): void {
    if (this.#ending) return;
    this.#refused ??= error;
    if (this.#inFlight.size + this.#questions.size + this.#beside.size === 0) {
      this.#finish(failedBody(errorRecord(this.#refused), this.#totals()));
    } else this.#abortAll({ kind: "kill", signal: "TERM" });
  }
}
