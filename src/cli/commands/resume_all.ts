/** `rnix resume --all`: after a crash, everything goes on that can without a decision. */
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE, type SuspendReason } from "../../base/exit.ts";
import { shortRunId } from "../../base/ids.ts";
import type {
  ProcessRow,
  ResumeRequest,
  RunReport,
  System,
  UnknownCall,
  UnknownRule,
} from "../../base/operations.ts";
import { counted } from "../amounts.ts";
import type { Context, Outcome } from "../command.ts";
import { errorText, failureOf } from "../failure.ts";
import { nextSteps, reportError, summaryLine } from "../report.ts";

/** What stopped these runs was not theirs, and may be over. The others wait for a person. */
const GO_ON: ReadonlySet<SuspendReason> = new Set([
  "interrupted",
  "shutdown",
  "detached",
  "model",
  "mount",
  "journal",
]);

/** One resumed run: its report, or why it could not be taken up. */
type Taken = { row: ProcessRow; report: RunReport } | { row: ProcessRow; failure: unknown };

/** Takes all of them up at once and stays until they are over; they go on without this command. */
export async function resumeAll(request: ResumeRequest, context: Context): Promise<Outcome> {
  const system = await context.system();
  const rules = await rulesByRun(request.unknown, system);
  const rows = roots(await system.processes({ all: false }))
    .filter((row) => goesOn(row, request, rules));
  checkRules(rules, rows);
  const taken = await Promise.all(rows.map(async (row): Promise<Taken> => {
    try {
      const unknown = rules.filter((rule) => fits(rule, row)).map(({ rule }) => rule);
      const one = { ...request, unknown, run: row.run_id, detached: true };
      const { done } = await system.resume(one, { onEvent: () => {} });
      const report = await done;
      tell(context, [summaryLine(report), ...nextSteps(report)]);
      return { row, report };
    } catch (failure) {
      tell(context, [`[kernel] run ${shortRunId(row.run_id)} not resumed`]);
      return { row, failure };
    }
  }));
  return outcomeOf(taken);
}

/** Runs that no other one takes up with itself, each with the unknown calls of all that it takes up. */
function roots(rows: readonly ProcessRow[]): ProcessRow[] {
  const below = (row: ProcessRow): UnknownCall[] =>
    rows.filter(({ ppid, pid }) => ppid === row.pid && pid !== row.pid)
      .flatMap((child) => [...child.unknown_calls ?? [], ...below(child)]);
  return rows.filter(({ ppid }) => ppid === 0).map((row) => {
    const unknown = [...row.unknown_calls ?? [], ...below(row)];
    return unknown.length === 0 ? row : { ...row, unknown_calls: unknown };
  });
}

/** Whether the run can go on: by itself, or because this command brings what it waits for. */
function goesOn(row: ProcessRow, request: ResumeRequest, rules: readonly NamedRule[]): boolean {
  const { state, reason } = row;
  if (state !== "suspended" || reason === undefined) return false;
  if (reason === "unknown-outcome") {
    return rules.some((rule) => fits(rule, row)) || (request.onUnknown ?? "ask") !== "ask";
  }
  if (reason === "limit") return request.budget !== undefined;
  return GO_ON.has(reason);
}

/** A rule and the run that it names; null: one that there is not, or that can't be resumed. */
interface NamedRule {
  rule: UnknownRule;
  runId: string | null | undefined;
}

/** A pid or a part of an id becomes the whole id: rows know only the newest pid of a run. */
function rulesByRun(rules: readonly UnknownRule[], system: System): Promise<NamedRule[]> {
  return Promise.all(rules.map(async (rule): Promise<NamedRule> => {
    if (rule.run === undefined) return { rule, runId: undefined };
    try {
      const runId = (await system.report(rule.run))?.run_id;
      if (runId === undefined) return { rule, runId: null };
      return { rule: { ...rule, run: runId }, runId };
    } catch (thrown) {
      if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return { rule, runId: null };
      throw thrown;
    }
  }));
}

/** Whether the rule decides on a call of this run, or of one below it. */
function fits({ rule, runId }: NamedRule, { unknown_calls = [] }: ProcessRow): boolean {
  return unknown_calls.some(({ call, run_id }) =>
    (runId === undefined || runId === run_id) && (rule.call === undefined || rule.call === call)
  );
}

/** Whether two rules say different things of one call of a run. */
function contradict(rules: readonly NamedRule[], row: ProcessRow): boolean {
  const fitting = rules.filter((rule) => fits(rule, row));
  return (row.unknown_calls ?? []).some(({ run_id }) => {
    const told = fitting.filter(({ runId }) => runId === undefined || runId === run_id)
      .map(({ rule }) => rule);
    const byCall = new Map(told.map(({ call, decision }) => [call, JSON.stringify(decision)]));
    return told.some(({ call, decision }) => byCall.get(call) !== JSON.stringify(decision));
  });
}

/** A rule that fits nothing would leave its call to --on-unknown, which may repeat it; so nothing is resumed then. */
function checkRules(rules: readonly NamedRule[], rows: readonly ProcessRow[]): void {
  const both = rows.find((row) => contradict(rules, row));
  if (both !== undefined) {
    const run = shortRunId(both.run_id);
    throw new SysError(
      "INVALID",
      `Two "--unknown" contradict each other for a call of run ${run}`,
      {
        syscall: "Resume",
        exitCode: EXIT_USAGE,
        hint: "Give one decision per call; nothing was resumed",
      },
    );
  }
  const misfit = rules.find((rule) => !rows.some((row) => fits(rule, row)));
  if (misfit === undefined) return;
  const calls = rows.flatMap(({ unknown_calls = [] }) =>
    unknown_calls.map(({ run_id, call, tool }) => `${shortRunId(run_id)}/${call} (${tool})`)
  );
  const { run, call, decision } = misfit.rule;
  const where = `${run === undefined ? "" : `${run}/`}${call === undefined ? "" : `${call}:`}`;
  const rule = `--unknown=${where}${decision.how}`;
  throw new SysError("INVALID", `"${rule}" fits no call whose outcome is unknown`, {
    syscall: "Resume",
    exitCode: EXIT_USAGE,
    hint: calls.length === 0
      ? "No call of these runs has an unknown outcome; nothing was resumed"
      : `Unknown are: ${calls.join(", ")}; nothing was resumed`,
  });
}

function tell({ quiet, json, world }: Context, lines: readonly string[]): void {
  if (!quiet && !json) { for (const line of lines) world.stderr.write(`${line}\n`); }
}

function outcomeOf(taken: readonly Taken[]): Outcome {
  const failures = taken.flatMap((one) => "failure" in one ? [failureOf(one.failure)] : []);
  const reports = taken.flatMap((one) => "report" in one ? [one.report] : []);
  const codes = [...reports.map((report) => report.exit_code), ...failures.map((f) => f.exitCode)];
  const bad = new Set(codes.filter((code) => code !== 0));
  const [only = 0] = bad;
  const [error] = [
    ...failures.map((failure) => failure.error),
    ...reports.flatMap((report) => reportError(report) ?? []),
  ];
  return {
    exitCode: bad.size <= 1 ? only : 1,
    data: { runs: reports, not_resumed: failures.map((failure) => failure.error) },
    text: taken.length === 0 ? "Nothing to resume." : `${counted(reports.length, "run")} resumed`,
    ...(error === undefined ? {} : { error }),
    footer: failures.map((failure) => errorText(failure.error)),
  };
}
