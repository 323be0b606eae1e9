/** A run's report as what a command ends with. */
import type { ErrorBody, RunReport } from "../base/operations.ts";
import type { Context, Outcome } from "./command.ts";
import { nextSteps, reportError, summaryLine } from "./report.ts";

/** What a person has seen of the run already. */
export interface Seen {
  /** The last turn's text: on one and the same terminal a final text that was streamed isn't printed again. */
  readonly streamedText: string;
  /** Whether an error was told; it isn't told twice. */
  hasTold(error: ErrorBody): boolean;
}

export const NOTHING_SEEN: Seen = { streamedText: "", hasTold: () => false };

/** How the command ends that has stayed with the run. */
export function reportOutcome(
  context: Context,
  report: RunReport,
  watched: Seen,
): Outcome {
  const { stdout, stderr } = context.world;
  const seen = stdout.isTerminal && stderr.isTerminal && !context.json &&
    (context.loudness === "full" || context.loudness === "verbose") &&
    watched.streamedText.trim() === report.result.trim();
  const error = reportError(report);
  return {
    exitCode: report.exit_code,
    data: report,
    ...(seen ? {} : { text: report.result, untrusted: true }),
    remarks: [context.style.dim(summaryLine(report))],
    ...(error === undefined ? {} : { error }),
    ...(isTold(report) ? { errorTold: true } : {}),
    ...(report.error !== undefined && watched.hasTold(report.error) ? { errorPrinted: true } : {}),
    footer: nextSteps(report),
  };
}

/** The summary and the lines below it say it already; of calls in doubt they say more than the error does. */
function isTold({ error, reason, unknown_calls }: RunReport): boolean {
  return error === undefined || reason === "unknown-outcome" && unknown_calls !== undefined;
}
