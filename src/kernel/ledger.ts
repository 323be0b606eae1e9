/**
 * What the kernel knows of a run, folded from its journal: identity, limits and use, mounts, calls that are open, how it ended. Gate, resume and `ps` all read this one fold.
 *
 * Invariants
 * 1. A call is `open` from its intent until its answer is known; `unknown` open calls are those whose intent has no answer.
 * 2. `started` holds every action key that ever had an entry; the gate never starts a key twice.
 * 3. What persons do on devices (`access.*`) is held apart: it is no call, counts for no limit and keeps nothing waiting; its ids are never used again, those of lost records included.
 * 4. Folding reads no clock. Active time is what the entries that end or begin an incarnation say: after a crash nobody was there, so the time up to the resume doesn't count.
 */
import { addTotals, type Budget, NO_TOTALS, subtractTotals, type Totals } from "../base/budget.ts";
import type { EffectClass } from "../base/effect.ts";
import type { EndSignal, SuspendReason } from "../base/exit.ts";
import type {
  BlobRef,
  CallAnswer,
  Entry,
  EntryOf,
  ErrorRecord,
  ReplayOf,
  UnknownCause,
} from "../journal/entry.ts";
import { callKey, compactKey, modelKey } from "./program.ts";

export const LEDGER_VERSION = 8;

/** Failures after which a provider may have worked on the request all the same. */
const MAYBE_USED: readonly string[] = ["DEVICE_DISCONNECTED", "TIMEOUT"];

/** A call that was sent and whose answer isn't known. */
export interface OpenCall {
  call: string;
  attempt: number;
  tool: string;
  effect: EffectClass;
  /** Set once the outcome is known to be unknown; a call of a dead process has none and counts as `crash`. */
  cause?: UnknownCause;
  /** What the journal says of it: the limit that ran out, how the connection ended. */
  error?: ErrorRecord;
  /** The run that does it, where it is a child. Its outcome is never unknown: the child's own journal has it. */
  childRunId?: string;
  /** The child was there. */
  childSpawned?: true;
  /** Its end stands in this journal: it counts once. */
  childExited?: true;
  /** The child had ended before: after the end of this process it is taken up, and these totals count no more than once. */
  continues?: { pid: number; totals: Totals };
}

/** A child as it was when it ended without success. */
export interface EndedChild {
  runId: string;
  /** The process that ended. */
  pid: number;
  /** What it had used, all below it included. */
  totals: Totals;
}

/** Something that a person does on a device, and whose outcome isn't known. */
export interface OpenAccess {
  /** `o<n>`. */
  call: string;
  device: string;
  effect: EffectClass;
}

/** The whole of a result that was cut. */
export interface KeptResult extends BlobRef {
  /** Model-facing name of the tool that it is of. */
  tool: string;
  /** Whether that tool's content is masked where it is shown. */
  sensitive: boolean;
}

export interface OpenRequest {
  turn: number;
  attempt: number;
  tokensEstimate: number;
  /** US dollars; absent without a known price. */
  costEstimateUsd?: number;
}

export type RunEnd =
  | { state: "suspended"; reason: SuspendReason; reasons: SuspendReason[]; error?: ErrorRecord }
  | {
    state: "exited";
    status: "completed" | "failed" | "killed";
    signal?: EndSignal;
    exitCode: number;
    result: string;
    error?: ErrorRecord;
  };

/** Identity of a run: never changes after its start. */
export interface RunIdentity {
  runId: string;
  parentRunId?: string;
  forkedFrom?: { run_id: string; seq: number };
  replayOf?: ReplayOf;
  program: string;
  agent: string;
  cwd: string;
  startedMs: number;
}

export interface LedgerState {
  identity: RunIdentity | undefined;
  /** Of this run's incarnations, oldest first. */
  pids: number[];
  spec: BlobRef | undefined;
  intent: string;
  model: string;
  budget: Budget;
  totals: Totals;
  /** What children that have ended used. */
  childTotals: Totals;
  /** Children that ended without success, by call: of its last attempt that came to an end. */
  ended: { [call: string]: EndedChild };
  /** Cost as far as prices are known, US dollars. */
  pricedUsd: number;
  /** Whether something was used whose price isn't known: then no cost is told. */
  unpriced: boolean;
  /** When the present stretch of active time began; undefined while the run is ended or interrupted. */
  activeSinceMs: number | undefined;
  lastMs: number;
  /** Last known tools of each server. */
  mounts: { [server: string]: EntryOf<"mount.ready" | "mount.changed"> };
  open: { [call: string]: OpenCall };
  /** Cut results by the hash of the whole. */
  kept: { [sha256: string]: KeptResult };
  /** What persons do on devices: the last number given, and what is under way. */
  accesses: { last: number; open: { [call: string]: OpenAccess } };
  /** Times the present process has sent each call whose answer isn't known. */
  sends: { [call: string]: number };
  request: OpenRequest | undefined;
  started: string[];
  /** Calls that ended with an error. */
  failedCalls: number;
  /** Seq of the last `journal.cut` entry: cuts that began before it are taken account of. */
  cutSeq: number;
  end: RunEnd | undefined;
}

/** The fold. One instance per run and process; only its owner folds. */
export class Ledger {
  #state: LedgerState = initialState();
  #started = new Set<string>();

  get state(): Readonly<LedgerState> {
    return this.#state;
  }

  /** Throws when nothing was folded yet. */
  get identity(): RunIdentity {
    if (this.#state.identity === undefined) throw new Error("The journal has no run.started entry");
    return this.#state.identity;
  }

  get pid(): number {
    return this.#state.pids.at(-1) ?? 0;
  }

  /** Calls whose outcome nobody but the device knows. */
  openCalls(): OpenCall[] {
    return Object.values(this.#state.open).filter(({ childRunId }) => childRunId === undefined);
  }

  /** The run of a call's child that hasn't ended. */
  openChild(call: string): string | undefined {
    return this.#state.open[call]?.childRunId;
  }

  /** The child of a call's last attempt, where that ended without success and may be taken up again. */
  endedChild(call: string): EndedChild | undefined {
    const { ended } = this.#state;
    return Object.hasOwn(ended, call) ? ended[call] : undefined;
  }

  /** The process after whose end a call's child is taken up. */
  continues(call: string): number | undefined {
    return this.#state.open[call]?.continues?.pid;
  }

  /** Whether a call's child was at work before. */
  childSpawned(call: string): boolean {
    return this.#state.open[call]?.childSpawned === true;
  }

  /** Children that haven't ended, by call. */
  openChildren(): OpenCall[] {
    return Object.values(this.#state.open).filter(({ childRunId }) => childRunId !== undefined);
  }

  /** Name of the next access. */
  nextAccess(): string {
    return `o${this.#state.accesses.last + 1}`;
  }

  /** Whether an access of this name was there. */
  hasAccess(call: string): boolean {
    return accessNumber(call) <= this.#state.accesses.last;
  }

  /** What persons have begun on devices and nobody knows the outcome of. */
  openAccesses(): OpenAccess[] {
    return Object.values(this.#state.accesses.open);
  }

  /** Results that were cut, oldest first. */
  keptResults(): KeptResult[] {
    return Object.values(this.#state.kept);
  }

  hasStarted(key: string): boolean {
    return this.#started.has(key);
  }

  /** Totals with the running stretch of active time counted up to `nowMs`. */
  totalsAt(nowMs: number): Totals {
    const { totals, activeSinceMs } = this.#state;
    if (activeSinceMs === undefined) return totals;
    return { ...totals, active_ms: totals.active_ms + Math.max(0, nowMs - activeSinceMs) };
  }

  /** Totals of a run that ends now: a request that has brought no reply is lost with it. */
  endTotalsAt(nowMs: number): Totals {
    const totals = this.totalsAt(nowMs);
    const { request } = this.#state;
    if (request === undefined) return totals;
    const { cost_usd: _, ...rest } = totals;
    const cost = this.#costWith(request.costEstimateUsd);
    return {
      ...rest,
      tokens: totals.tokens + request.tokensEstimate,
      ...(cost === undefined ? {} : { cost_usd: cost }),
    };
  }

  fold(entry: Entry): void {
    const state = this.#state;
    switch (entry.type) {
      case "run.started":
        this.#start(entry);
        break;
      case "run.resumed":
        this.#resume(entry);
        break;
      case "mount.ready":
      case "mount.changed":
        state.mounts[entry.server] = entry;
        break;
      case "model.request":
        this.#request(entry);
        break;
      case "model.reply":
        state.request = undefined;
        state.totals.turns += 1;
        state.totals.tokens += entry.usage.input_tokens + entry.usage.output_tokens;
        this.#addCost(entry.cost_usd);
        break;
      case "context.exceeded":
        // Answered with an error: nothing of it was used.
        state.request = undefined;
        break;
      case "context.compacted":
        this.#compact(entry);
        break;
      case "call.intent":
        this.#intend(entry);
        break;
      case "call.result":
        this.#result(entry);
        break;
      case "call.settled":
        this.#keep(entry.call, entry.answer);
        if (entry.by === "answer" && entry.answer?.outcome === "error") state.failedCalls += 1;
        delete state.open[entry.call];
        if (entry.how !== "retry") delete state.sends[entry.call];
        break;
      case "child.spawned":
      case "child.exited":
        this.#child(entry);
        break;
      case "timer":
        this.#started.add(entry.key);
        break;
      case "access.intent":
      case "access.result":
        this.#access(entry);
        break;
      case "journal.cut":
        state.cutSeq = entry.seq;
        // Each may have been an access, whose key must not be used again.
        state.accesses.last += entry.records;
        break;
      case "budget.changed":
        state.budget = { ...state.budget, ...entry.budget };
        break;
      case "run.suspended":
        this.#finish(entry, suspendedEnd(entry));
        break;
      case "run.exited":
        this.#finish(entry, exitedEnd(entry));
        break;
    }
    state.lastMs = entry.ts;
  }

  save(): LedgerState {
    return { ...this.#state, started: [...this.#started] };
  }

  load(saved: LedgerState): void {
    this.#state = saved;
    this.#started = new Set(saved.started);
  }

  #start(entry: EntryOf<"run.started">): void {
    const state = this.#state;
    state.identity = {
      runId: entry.run_id,
      ...(entry.parent_run_id === undefined ? {} : { parentRunId: entry.parent_run_id }),
      ...(entry.forked_from === undefined ? {} : { forkedFrom: entry.forked_from }),
      ...(entry.replay_of === undefined ? {} : { replayOf: entry.replay_of }),
      program: entry.program,
      agent: entry.agent,
      cwd: entry.cwd,
      startedMs: entry.ts,
    };
    state.pids.push(entry.pid);
    state.spec = entry.spec;
    state.intent = entry.intent;
    state.model = entry.model;
    state.budget = { ...entry.budget };
    state.activeSinceMs = entry.ts;
  }

  #resume(entry: EntryOf<"run.resumed">): void {
    const state = this.#state;
    state.totals.active_ms = entry.active_ms;
    this.#loseRequest();
    state.pids.push(entry.pid);
    state.spec = entry.spec;
    state.intent = entry.intent ?? state.intent;
    state.model = entry.model;
    state.budget = { ...entry.budget };
    state.activeSinceMs = entry.ts;
    state.end = undefined;
    state.sends = {};
    for (const open of this.openCalls()) open.cause ??= "crash";
  }

  #intend(entry: EntryOf<"call.intent">): void {
    const { sends } = this.#state;
    sends[entry.call] = (sends[entry.call] ?? 0) + 1;
    this.#started.add(callKey(entry.call, entry.attempt));
    this.#state.totals.tool_calls += 1;
    const { continues } = entry;
    if (continues !== undefined) {
      this.#state.childTotals = subtractTotals(this.#state.childTotals, continues.totals);
    }
    this.#state.open[entry.call] = {
      call: entry.call,
      attempt: entry.attempt,
      tool: entry.tool,
      effect: entry.effect,
      ...(entry.child_run_id === undefined ? {} : { childRunId: entry.child_run_id }),
      ...(continues === undefined ? {} : { continues, childSpawned: true as const }),
    };
  }

  #access(entry: EntryOf<"access.intent"> | EntryOf<"access.result">): void {
    const { accesses } = this.#state;
    const { type, call } = entry;
    if (type === "access.result") {
      delete accesses.open[call];
      return;
    }
    accesses.last = Math.max(accesses.last, accessNumber(call));
    accesses.open[call] = { call, device: entry.device, effect: entry.effect };
  }

  #child(entry: EntryOf<"child.spawned"> | EntryOf<"child.exited">): void {
    const state = this.#state;
    const open = state.open[entry.call];
    if (entry.type === "child.spawned") {
      if (open !== undefined) open.childSpawned = true;
      return;
    }
    if (entry.status === "completed" || entry.pid === undefined) delete state.ended[entry.call];
    else {
      const { run_id: runId, pid, totals } = entry;
      state.ended[entry.call] = { runId, pid, totals };
    }
    if (open?.childExited === true) return;
    state.childTotals = addTotals(state.childTotals, entry.totals);
    if (open !== undefined) open.childExited = true;
  }

  #result(entry: EntryOf<"call.result">): void {
    this.#started.add(callKey(entry.call, entry.attempt));
    if (entry.outcome !== "unknown") {
      this.#keep(entry.call, entry);
      if (entry.outcome === "error") this.#state.failedCalls += 1;
      this.#countEnded(this.#state.open[entry.call]);
      delete this.#state.open[entry.call];
      delete this.#state.sends[entry.call];
      return;
    }
    const open = this.#state.open[entry.call];
    if (open === undefined) return;
    open.cause = entry.cause;
    if (entry.error !== undefined) open.error = entry.error;
  }

  /** A child that wasn't taken up after all has used what it had used. */
  #countEnded(open: OpenCall | undefined): void {
    if (open?.continues === undefined || open.childExited === true) return;
    const state = this.#state;
    state.childTotals = addTotals(state.childTotals, open.continues.totals);
  }

  /** Notes what was cut of the answer to an open call. */
  #keep(call: string, answer: CallAnswer | undefined): void {
    const { open, kept, mounts } = this.#state;
    const tool = open[call]?.tool;
    if (answer?.whole === undefined || tool === undefined) return;
    const { sha256, bytes } = answer.whole;
    const isMasked = Object.values(mounts).some(({ tools }) =>
      Object.values(tools).some(({ name, sensitive }) => name === tool && sensitive === true)
    );
    const sensitive = isMasked || kept[sha256]?.sensitive === true;
    kept[sha256] = { sha256, bytes, tool, sensitive };
  }

  #request(entry: EntryOf<"model.request">): void {
    const { turn, attempt, fallback_for: failed, cost_estimate_usd: cost } = entry;
    const keyOf = entry.purpose === "summary" ? compactKey : modelKey;
    this.#started.add(keyOf(turn, attempt));
    // What a provider answered with an error wasn't used up; what broke off may have been.
    const wasAnswered = failed !== undefined && !MAYBE_USED.includes(failed.error.code);
    if (wasAnswered) this.#state.request = undefined;
    else this.#loseRequest();
    this.#state.request = {
      turn,
      attempt,
      tokensEstimate: entry.tokens_estimate,
      ...(cost === undefined ? {} : { costEstimateUsd: cost }),
    };
  }

  /** A summary is paid for like a reply, and is no turn. */
  #compact(entry: EntryOf<"context.compacted">): void {
    const { usage, error } = entry;
    this.#started.add(compactKey(entry.turn, entry.attempt));
    if (usage !== undefined) {
      this.#state.totals.tokens += usage.input_tokens + usage.output_tokens;
      this.#addCost(entry.cost_usd);
    } else if (error !== undefined && MAYBE_USED.includes(error.code)) this.#loseRequest();
    this.#state.request = undefined;
  }

  /** A request that brought no reply counts by its estimate. */
  #loseRequest(): void {
    const { request, totals } = this.#state;
    if (request === undefined) return;
    totals.tokens += request.tokensEstimate;
    this.#addCost(request.costEstimateUsd);
    this.#state.request = undefined;
  }

  #addCost(cost: number | undefined): void {
    const state = this.#state;
    state.pricedUsd += cost ?? 0;
    state.unpriced ||= cost === undefined;
    if (state.unpriced) delete state.totals.cost_usd;
    else state.totals.cost_usd = state.pricedUsd;
  }

  /** The cost so far and this; undefined where a part of it isn't known. */
  #costWith(cost: number | undefined): number | undefined {
    const { pricedUsd, unpriced } = this.#state;
    return cost === undefined || unpriced ? undefined : pricedUsd + cost;
  }

  #finish(entry: EntryOf<"run.suspended" | "run.exited">, end: RunEnd): void {
    this.#state.totals.active_ms = entry.totals.active_ms;
    this.#state.activeSinceMs = undefined;
    this.#loseRequest();
    this.#state.end = end;
  }
}

function suspendedEnd(entry: EntryOf<"run.suspended">): RunEnd {
  return {
    state: "suspended",
    reason: entry.reason,
    reasons: entry.reasons,
    ...(entry.error === undefined ? {} : { error: entry.error }),
  };
}

function exitedEnd(entry: EntryOf<"run.exited">): RunEnd {
  return {
    state: "exited",
    status: entry.status,
    ...(entry.signal === undefined ? {} : { signal: entry.signal }),
    exitCode: entry.exit_code,
    result: entry.result,
    ...(entry.error === undefined ? {} : { error: entry.error }),
  };
}

function accessNumber(call: string): number {
  return Number(call.slice(1));
}

function initialState(): LedgerState {
  return {
    identity: undefined,
    pids: [],
    spec: undefined,
    intent: "",
    model: "",
    budget: {},
    totals: { turns: 0, tokens: 0, tool_calls: 0, active_ms: 0 },
    childTotals: NO_TOTALS,
    ended: {},
    pricedUsd: 0,
    unpriced: false,
    activeSinceMs: undefined,
    lastMs: 0,
    mounts: {},
    open: {},
    kept: {},
    accesses: { last: 0, open: {} },
    sends: {},
    request: undefined,
    started: [],
    failedCalls: 0,
    cutSeq: 0,
    end: undefined,
  };
}

/** The last answer that a call.result or call.settled entry gives its program, if it gives one. */
export function answerOf(
  entry: EntryOf<"call.result"> | EntryOf<"call.settled">,
): CallAnswer | undefined {
  if (entry.type === "call.settled") return entry.answer;
  return entry.outcome === "unknown" ? undefined : entry;
}
