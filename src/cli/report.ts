/** How a run ended, in words: the summary line, why it is suspended, and the command that goes on. */
import { shortRunId } from "../base/ids.ts";
import type { SuspendReason } from "../base/exit.ts";
import type { ErrorBody, RunReport, UnknownCall } from "../base/operations.ts";
import { cost, count, counted, elapsed } from "./amounts.ts";
import { namingRun } from "./failure.ts";
import { oneLine } from "./plain_text.ts";
import { rowUse, treeUse } from "./use.ts";

/** Codes of suspensions that come without an error of their own. */
const REASON_CODES: Record<SuspendReason, string> = {
  journal: "JOURNAL_DAMAGED",
  interrupted: "INTERRUPTED",
  shutdown: "INTERRUPTED",
  detached: "INTERRUPTED",
  paused: "INTERRUPTED",
  "unknown-outcome": "UNKNOWN_OUTCOME",
  approval: "PERMISSION",
  limit: "BUDGET_EXCEEDED",
  mount: "DRIVER",
  model: "DRIVER",
};

/** `[kernel] PID 1 exited(0) | 3 turns | 1,234 tokens | cost $0.0123 | 2.1s`; of all below it too, and then `8 turns (own: 3)`. */
export function summaryLine(report: RunReport): string {
  const who = report.pid === null ? `run ${shortRunId(report.run_id)}` : `PID ${report.pid}`;
  const all = treeUse(report);
  // A process that has used nothing itself has only what is below it.
  const own = (amount: number) => all === rowUse(report) ? "" : ` (own: ${count(amount)})`;
  return [
    `[kernel] ${who} ${ending(report)}`,
    `${counted(all.turns, "turn")}${own(report.turns)}`,
    `${counted(all.tokens_used, "token")}${own(report.tokens_used)}`,
    `cost ${cost(all.cost_usd)}`,
    elapsed(report.elapsed_ms),
    ...(report.failed_calls === undefined
      ? []
      : [`${counted(report.failed_calls, "call")} failed`]),
  ].join(" | ");
}

function ending(report: RunReport): string {
  if (report.state === "suspended") return `suspended (${report.reason ?? "interrupted"})`;
  if (report.signal !== undefined) return `ended by SIG${report.signal}`;
  return `exited(${report.exit_code})`;
}

/** `t3.1 mcp__ledger__append (write): timeout: No answer from "ledger" …` */
export function unknownLine(call: UnknownCall): string {
  return oneLine(`${call.call} ${call.tool} (${call.effect}): ${causeText(call)}`);
}

/** Why an outcome isn't known, with what more is known of it. */
export function causeText({ cause, message }: { cause: string; message?: string }): string {
  return message === undefined ? cause : `${cause}: ${message}`;
}

/** What stopped the run, open questions, and the exact command that goes on; empty where nothing is left to do. */
export function nextSteps(report: RunReport): string[] {
  if (report.state !== "suspended") return [];
  const unknown = report.unknown_calls ?? [];
  const hint = reportError(report)?.hint ?? "";
  const told = report.error !== undefined && report.reason !== "unknown-outcome" &&
    new RegExp(`\\brnix [a-z ]+ ${shortRunId(report.run_id)}\\b`).test(hint);
  return [
    ...unknown.map((call) => `[kernel] outcome unknown: ${unknownLine(call)}`),
    ...(told ? [] : commandsToGoOn(report).map((line) => `to go on: ${line}`)),
  ];
}

function commandsToGoOn(report: RunReport): string[] {
  const run = shortRunId(report.run_id);
  const resume = `rnix resume ${run}`;
  if (needsDecision(report)) return [unknownCommand(resume, report)];
  switch (report.reason) {
    case "limit":
      return [limitCommand(resume, report)];
    case "journal":
      return [`rnix journal verify ${run}`, resume];
    default:
      return [resume];
  }
}

/** Whether a resume without decisions would only be suspended again. */
export function needsDecision({ reason, reasons }: RunReport): boolean {
  return reason === "unknown-outcome" || reasons?.includes("unknown-outcome") === true;
}

/** More calls than a line should name, each with a flag. */
const FLAGS_MAX = 5;

/** One decision per call that isn't simply repeated; a call of a child is named with its run. */
function unknownCommand(resume: string, report: RunReport): string {
  const calls = (report.unknown_calls ?? [])
    .filter(({ effect }) => effect !== "read" && effect !== "idempotent")
    .map((call) => {
      const run = call.run_id === report.run_id ? "" : `${shortRunId(call.run_id)}/`;
      return `--unknown=${run}${call.call}:DECISION`;
    });
  if (calls.length > 0 && calls.length <= FLAGS_MAX) {
    return `${resume} ${calls.join(" ")}  # DECISION: retry, done, skip or fail`;
  }
  const one = calls.length === 0 ? "" : `for all of them, --unknown=CALL:DECISION for one; `;
  return `${resume} --unknown=DECISION  # ${one}DECISION: retry, done, skip or fail`;
}

function limitCommand(resume: string, report: RunReport): string {
  const hinted = report.error?.hint?.match(/--(?:max-turns \S+|budget \S+)/)?.[0];
  return `${resume} ${hinted ?? "--budget KEY=VALUE"}`;
}

/** `error` of the envelope for a run that didn't complete. */
export function reportError(report: RunReport): ErrorBody | undefined {
  if (report.exit_code === 0) return undefined;
  if (report.error !== undefined) return namingRun(report.error, report.run_id);
  const pid = report.pid === null ? {} : { pid: report.pid };
  if (report.state === "suspended") {
    const reason = report.reason ?? "interrupted";
    const hint = commandsToGoOn(report)[0];
    return {
      code: REASON_CODES[reason],
      message: `Run is suspended (${reason})`,
      ...(hint === undefined ? {} : { hint: `go on with ${hint}` }),
      ...pid,
    };
  }
  const how = report.signal === undefined ? `exit code ${report.exit_code}` : `SIG${report.signal}`;
  return { code: "INTERRUPTED", message: `Run ended with ${how}`, ...pid };
}
