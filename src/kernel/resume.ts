/**
 * Takes up a run again: lease → fold → settle what needs no mount → new pid → mount → go on (design, section 6).
 *
 * When an unknown outcome stays undecided the run is suspended again before anything is mounted, and it gets no new pid.
 */
import type { Budget } from "../base/budget.ts";
import { SysError, toSysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { namingRun } from "../base/ids.ts";
import { shortRunId } from "../base/ids.ts";
import type { Json } from "../base/json.ts";
import { openJournal } from "../journal/mod.ts";
import { suspendedBody, undecidedError } from "./endings.ts";
import { type KernelDeps, launch, type LiveRun, runLog, type RunParts } from "./launch.ts";
import type { Ledger, OpenCall } from "./ledger.ts";
import type { Observer } from "./ports.ts";
import type { Program, PromptHead } from "./program.ts";
import { lostNotice, takeLostAccesses } from "./lost_accesses.ts";
import { neverStarted } from "./never_started.ts";
import type { RunLog } from "./run_log.ts";
import { askDecision } from "./questions.ts";
import { RunState } from "./run_state.ts";
import { checkRules, type SettleRule } from "./settle_rules.ts";
import { Settler, unknownCall } from "./settler.ts";
import { takeCut } from "./take_cut.ts";
import { TAKEN_UP, written } from "./unwritten.ts";

/** How a run is to go on, once what it did before is known. */
export interface ResumeParts<S, P extends PromptHead> {
  /** The spec, where the manifest was read anew. */
  spec?: Json;
  model: string;
  /** All limits from now on, before `budgetChange`. */
  budget: Budget;
  /** Limits changed by the user with this resume. */
  budgetChange?: Budget;
  /** Makes the parts; called only when the run really goes on. */
  prepare(facts: { runId: string; folder: string; pid: number }): Promise<RunParts<S, P>>;
  onUnknown: RunParts<S, P>["onUnknown"];
  program: Program<S, P>;
}

export interface ResumeRun<S, P extends PromptHead> {
  runId: string;
  /** Any program with the reducer of the run. */
  program: Program<S, P>;
  /** Each has to fit a call whose outcome is unknown, else the run isn't taken up. */
  rules: readonly SettleRule[];
  acceptCut: boolean;
  /** For a completed run. */
  intent?: string;
  /** Decides from the folded past how to go on; rejects to leave the run as it is. */
  plan(
    ledger: Ledger,
    readSpec: () => Promise<Json>,
    past: RunState<S, P>,
  ): Promise<ResumeParts<S, P>>;
}

/** Rejects with a SysError when the run can't be taken up; it is then as it was. Its hint names the run. */
export async function resumeRun<S, P extends PromptHead>(
  kernel: KernelDeps,
  request: ResumeRun<S, P>,
  observer: Observer,
): Promise<LiveRun> {
  try {
    return await takeUp(kernel, request, observer);
  } catch (thrown) {
    const error = toSysError(thrown);
    const { hint } = error;
    throw hint === undefined ? error : error.with({ hint: namingRun(hint, request.runId) });
  }
}

async function takeUp<S, P extends PromptHead>(
  kernel: KernelDeps,
  request: ResumeRun<S, P>,
  observer: Observer,
): Promise<LiveRun> {
  const folder = `${kernel.runsFolder}/${request.runId}`;
  const options = { ...kernel, acceptCut: request.acceptCut };
  const opened = await written(openJournal(kernel.storage, folder, options), TAKEN_UP);
  const { journal } = opened;
  let parts: RunParts<S, P> | undefined;
  let log: RunLog | undefined;
  try {
    if (journal.lastSeq === 0) throw neverStarted(request.runId);
    for (const message of opened.notices) observer.emit({ type: "notice", message });
    const state = new RunState(request.program);
    await opened.replay({
      checkpoint: (checkpoint) => state.load(checkpoint.state),
      entry: (entry) => state.fold(entry),
    }, { versions: state.versions });
    const { ledger } = state;
    const refusal = intentRefusal(ledger, request.intent);
    if (refusal !== undefined) throw refusal;
    const activeMs = ledger.totalsAt(ledger.state.lastMs).active_ms;
    const keeps = !failedAtOnce(ledger);
    const spec = () => readSpec(ledger, journal.getBlob.bind(journal));
    const plan = await request.plan(ledger, spec, state);
    state.use(plan.program);
    log = runLog(kernel, journal, state);
    const lost = opened.cut === undefined ? [] : takeCut(opened.cut, state, log);
    for (const open of lost) observer.emit({ type: "notice", message: lostNotice(open) });
    checkRules(request.rules, ledger.openCalls(), request.runId);
    takeLostAccesses(ledger, log, (message) => observer.emit({ type: "notice", message }));
    const settler = new Settler({ log, ledger, observer, onUnknown: plan.onUnknown });
    const undecided = await settleAll(kernel, settler, { ledger, rules: request.rules, observer });
    if (undecided.length > 0) {
      return await suspendUndecided(log, ledger, { undecided, activeMs }, observer);
    }
    const tell = (message: string) => observer.emit({ type: "notice", message });
    const pid = await written(kernel.pids.allocate(request.runId, tell), TAKEN_UP);
    parts = await plan.prepare({ runId: request.runId, folder, pid });
    await appendResumed(kernel, log, ledger, { plan, pid, activeMs, intent: request.intent });
    observer.emit({
      type: "run.resumed",
      run_id: request.runId,
      agent: ledger.identity.agent,
      intent: ledger.state.intent,
      model: plan.model,
    });
    return launch(kernel, {
      runId: request.runId,
      pid,
      log,
      state,
      parts,
      observer,
      keeps,
    });
  } catch (thrown) {
    log?.discardShows();
    parts?.close();
    await journal.close();
    throw toSysError(thrown);
  }
}

/** Whether it came to its end before it had done anything: taken up, it is as good as fresh. */
function failedAtOnce({ state }: Ledger): boolean {
  const { end, totals } = state;
  return end?.state === "exited" && totals.turns === 0 && totals.tool_calls === 0;
}

/** Why a run can't be taken up with this intent, or without one: INVALID (exit 2). */
export function intentRefusal(ledger: Ledger, intent: string | undefined): SysError | undefined {
  const { end } = ledger.state;
  if (ledger.identity.replayOf !== undefined) {
    return new SysError(
      "INVALID",
      "The run plays another one again, and isn't taken up once over",
      {
        syscall: "Resume",
        device: ledger.identity.runId,
        exitCode: EXIT_USAGE,
        hint: `Play it anew: rnix replay ${shortRunId(ledger.identity.replayOf.run_id)}`,
      },
    );
  }
  const completed = end?.state === "exited" && end.status === "completed";
  const facts = { syscall: "Resume", device: ledger.identity.runId, exitCode: EXIT_USAGE };
  if (completed && intent === undefined) {
    return new SysError("INVALID", "The run has completed", {
      ...facts,
      hint: 'Give it a new intent (rnix resume RUN "…"), or go on from a copy with --fork',
    });
  }
  if (completed || intent === undefined) return undefined;
  return new SysError("INVALID", "Only a completed run takes a new intent", {
    ...facts,
    hint: "Resume it without one; it goes on with the intent that it has",
  });
}

async function readSpec(
  ledger: Ledger,
  getBlob: (ref: NonNullable<Ledger["state"]["spec"]>) => Promise<Uint8Array>,
): Promise<Json> {
  const { spec } = ledger.state;
  if (spec === undefined) throw new SysError("JOURNAL_DAMAGED", "The run has no stored manifest");
  return JSON.parse(new TextDecoder().decode(await getBlob(spec)));
}

/** Settles by rule, by policy and, where someone can be asked, by a person. Returns what stays undecided. */
async function settleAll(
  kernel: KernelDeps,
  settler: Settler,
  facts: { ledger: Ledger; rules: readonly SettleRule[]; observer: Observer },
): Promise<OpenCall[]> {
  const { ledger, rules, observer } = facts;
  const undecided: OpenCall[] = [];
  const { clock, limits } = kernel;
  const { signal } = new AbortController();
  for (const open of settler.settle(true, rules)) {
    const call = unknownCall(ledger.identity.runId, open);
    const { decisionMs } = limits;
    const decision = await askDecision(observer, call, { clock, decisionMs, signal });
    if (decision === undefined) undecided.push(open);
    else settler.decide(open, decision);
  }
  return undecided;
}

async function suspendUndecided(
  log: RunLog,
  ledger: Ledger,
  { undecided, activeMs }: { undecided: readonly OpenCall[]; activeMs: number },
  observer: Observer,
): Promise<LiveRun> {
  const reasons = new Map([["unknown-outcome" as const, undecidedError(undecided)]]);
  const totals = { ...ledger.endTotalsAt(ledger.state.lastMs), active_ms: activeMs };
  const entry = log.append(suspendedBody(reasons, totals));
  await log.barrier(entry.seq);
  await log.journal.close();
  observer.emit({ type: "run.suspended", reason: "unknown-outcome" });
  const { end } = ledger.state;
  if (end === undefined) throw new SysError("INTERNAL", "The run has no end");
  return {
    runId: ledger.identity.runId,
    pid: undefined,
    stop: () => {},
    access: () => Promise.reject(new SysError("INVALID", "The run is suspended")),
    look: () => ({ descriptors: [], mounts: [] }),
    done: Promise.resolve({ end, ledger }),
  };
}

async function appendResumed<S, P extends PromptHead>(
  kernel: KernelDeps,
  log: RunLog,
  ledger: Ledger,
  facts: { plan: ResumeParts<S, P>; pid: number; activeMs: number; intent: string | undefined },
): Promise<void> {
  const { plan, pid, activeMs, intent } = facts;
  const spec = plan.spec === undefined
    ? ledger.state.spec
    : await log.journal.putBlob(new TextEncoder().encode(JSON.stringify(plan.spec)));
  if (spec === undefined) throw new SysError("JOURNAL_DAMAGED", "The run has no stored manifest");
  await log.appendLarge({
    type: "run.resumed",
    pid,
    spec,
    ...(intent === undefined ? {} : { intent }),
    model: plan.model,
    budget: plan.budget,
    active_ms: activeMs,
    rnix_version: kernel.version,
  });
  if (plan.budgetChange !== undefined) {
    log.append({ type: "budget.changed", budget: plan.budgetChange });
  }
  await log.barrier(log.journal.lastSeq);
}
