/** Reports and rows: what a run's ledger is to a user. */
import type { Totals } from "../base/budget.ts";
import { systemClock } from "../base/clock.ts";
import { EXIT_FAILED, exitOfSuspend } from "../base/exit.ts";
import { namingRun } from "../base/ids.ts";
import type { ErrorBody, ProcessRow, RunReport, UnknownCall } from "../base/operations.ts";
import type { ErrorRecord } from "../journal/entry.ts";
import type { RunOutcome } from "../kernel/launch.ts";
import type { Ledger } from "../kernel/ledger.ts";
import { unknownCall } from "../kernel/settler.ts";
import type { RunView } from "./runs.ts";

/** Digits of a dollar that are told. */
const COST_DIGITS = 9;

/** What `run` and `resume` end with, of the run itself; `withBelow` adds what is below it. */
export function reportOf({ end, ledger }: RunOutcome, pid: number | undefined): RunReport {
  const totals = ledger.totalsAt(ledger.state.lastMs);
  const unknown = unknownCalls(ledger);
  const shared = {
    pid: pid ?? null,
    run_id: ledger.identity.runId,
    turns: totals.turns,
    tokens_used: totals.tokens,
    cost_usd: shownCost(totals),
    elapsed_ms: totals.active_ms,
    ...(unknown.length === 0 ? {} : { unknown_calls: unknown }),
    ...(ledger.state.failedCalls === 0 ? {} : { failed_calls: ledger.state.failedCalls }),
    ...(end.error === undefined ? {} : { error: namedError(end.error, ledger) }),
  };
  if (end.state === "suspended") {
    const { reason, reasons } = end;
    const several = reasons.length > 1 ? { reasons } : {};
    return {
      ...shared,
      ...several,
      state: "suspended",
      reason,
      result: "",
      exit_code: exitOfSuspend(reason),
    };
  }
  return {
    ...shared,
    state: "dead",
    ...(end.exitCode === 3 ? { reason: "mount" as const } : {}),
    ...(end.signal === undefined ? {} : { signal: end.signal }),
    result: end.result,
    exit_code: end.exitCode ?? EXIT_FAILED,
  };
}

/** The error with the run's own name in its hint. */
function namedError(error: ErrorRecord, { identity }: Ledger): ErrorBody {
  if (error.hint === undefined) return error;
  return { ...error, hint: namingRun(error.hint, identity.runId) };
}

/** A row of `ps`. */
export function rowOf(view: RunView, mounts: string[]): ProcessRow {
  const { ledger } = view;
  const { state } = ledger;
  const unknown = view.state === "suspended" ? unknownCalls(ledger) : [];
  const end = state.end;
  // Active time runs on in a run at work; one that was interrupted was active up to its last entry.
  const totals = ledger.totalsAt(view.state === "running" ? systemClock.now() : state.lastMs);
  return {
    pid: ledger.pid,
    ppid: 0,
    run_id: view.runId,
    state: view.state,
    ...(view.reason === undefined ? {} : { reason: view.reason }),
    agent: ledger.identity.agent,
    intent: state.intent,
    model: state.model,
    turns: totals.turns,
    tokens_used: totals.tokens,
    cost_usd: shownCost(totals),
    elapsed_ms: totals.active_ms,
    mounts,
    ...(unknown.length === 0 ? {} : { unknown_calls: unknown }),
    ...(view.inFlight === undefined || view.inFlight.length === 0
      ? {}
      : { in_flight: view.inFlight }),
    started_ms: ledger.identity.startedMs,
    ...(end?.state === "exited" ? { exit_code: end.exitCode } : {}),
    ...(end?.state === "exited" && end.signal !== undefined ? { signal: end.signal } : {}),
  };
}

/** US dollars; null where no price is known. Sums of fractions are told without their rounding errors. */
export function shownCost({ cost_usd }: Totals): number | null {
  return cost_usd === undefined ? null : Number(cost_usd.toFixed(COST_DIGITS));
}

/** Calls of a run that is not at work whose outcome isn't known. */
export function unknownCalls(ledger: Ledger): UnknownCall[] {
  return ledger.openCalls().map((open) => unknownCall(ledger.identity.runId, open));
}
