/** `rnix resume --all`: after a crash, everything goes on that can without a decision. */
import type { SuspendReason } from "../../base/exit.ts";
import { shortRunId } from "../../base/ids.ts";
import type { ProcessRow, ResumeRequest, RunReport } from "../../base/operations.ts";
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
  const rows = (await system.processes({ all: false }))
    .filter((row) => row.ppid === 0 && goesOn(row, request));
  const taken = await Promise.all(rows.map(async (row): Promise<Taken> => {
    try {
      const one = { ...request, run: row.run_id, detached: true };
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

/** Whether the run can go on: by itself, or because this command brings what it waits for. */
function goesOn({ state, reason }: ProcessRow, request: ResumeRequest): boolean {
  if (state !== "suspended" || reason === undefined) return false;
  if (reason === "unknown-outcome") {
    return request.unknown.length > 0 || (request.onUnknown ?? "ask") !== "ask";
  }
  if (reason === "limit") return request.budget !== undefined;
  return GO_ON.has(reason);
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
