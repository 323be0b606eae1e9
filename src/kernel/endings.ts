/** The entries that end an incarnation. */
import type { Totals } from "../base/budget.ts";
import { SysError } from "../base/errors.ts";
import {
  type EndSignal,
  EXIT_COMPLETED,
  EXIT_FAILED,
  exitOfSignal,
  mostImportant,
  type SuspendReason,
} from "../base/exit.ts";
import type { EntryBody, ErrorRecord } from "../journal/entry.ts";
import { errorRecord } from "./answers.ts";
import type { OpenCall } from "./ledger.ts";
import type { Action, PromptHead } from "./program.ts";

/** A stop from outside. */
export type Stop =
  | { kind: "suspend"; reason: SuspendReason; error?: SysError }
  | { kind: "kill"; signal: EndSignal };

/** Suspended for the most important of these reasons, with its error if it has one. The map must not be empty. */
export function suspendedBody(
  reasons: ReadonlyMap<SuspendReason, SysError | undefined>,
  totals: Totals,
): EntryBody {
  const reason = mostImportant([...reasons.keys()]);
  const error = reasons.get(reason);
  return {
    type: "run.suspended",
    reason,
    reasons: [...reasons.keys()],
    ...(error === undefined ? {} : { error: errorRecord(error) }),
    totals,
  };
}

/** What a stop leads to; calls that a person has to decide on are one more reason for a suspension. */
export function stopBody(
  stop: Stop,
  totals: Totals,
  toDecide: readonly OpenCall[] = [],
): EntryBody {
  if (stop.kind === "suspend") {
    const reasons = new Map([[stop.reason, stop.error]]);
    if (toDecide.length > 0) reasons.set("unknown-outcome", undecidedError(toDecide));
    return suspendedBody(reasons, totals);
  }
  return {
    type: "run.exited",
    status: "killed",
    signal: stop.signal,
    exit_code: exitOfSignal(stop.signal),
    result: "",
    totals,
  };
}

/** A program's own exit. */
export function exitBody(
  exit: Extract<Action<PromptHead>, { kind: "exit" }>,
  totals: Totals,
): EntryBody {
  return {
    type: "run.exited",
    status: exit.status,
    exit_code: exit.status === "completed" ? EXIT_COMPLETED : EXIT_FAILED,
    result: exit.result,
    ...(exit.error === undefined ? {} : { error: exit.error }),
    totals,
  };
}

/** A failure that isn't the program's. */
export function failedBody(error: ErrorRecord, totals: Totals, exitCode = EXIT_FAILED): EntryBody {
  return { type: "run.exited", status: "failed", exit_code: exitCode, result: "", error, totals };
}

/** More calls than a line should name, each with a flag. */
const FLAGS_MAX = 5;

/** Unknown outcomes that a person has to decide on. */
export function undecidedError(open: readonly OpenCall[]): SysError {
  const names = open.map(({ call, tool }) => `${call} (${tool})`).join(", ");
  const flags = open.length > FLAGS_MAX
    ? "--unknown=DECISION for all, --unknown=CALL:DECISION for one"
    : open.map(({ call }) => `--unknown=${call}:DECISION`).join(" ");
  return new SysError(
    "UNKNOWN_OUTCOME",
    `It is not known whether these calls took effect: ${names}`,
    { hint: `rnix resume RUN ${flags}  # DECISION: retry, done, skip or fail` },
  );
}
