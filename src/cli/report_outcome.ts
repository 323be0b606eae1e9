/** A run's report as what a command ends with. */
import type { RunReport } from "../base/operations.ts";
import type { Context, Outcome } from "./command.ts";
import { nextSteps, reportError, summaryLine } from "./report.ts";

/** `streamedText` is what a person has seen already: on one and the same terminal a final text that was streamed isn't printed again. */
export function reportOutcome(context: Context, report: RunReport, streamedText: string): Outcome {
  const { stdout, stderr } = context.world;
  const seen = stdout.isTerminal && stderr.isTerminal && !context.json &&
    (context.loudness === "full" || context.loudness === "verbose") &&
    streamedText.trim() === report.result.trim();
  const error = reportError(report);
  return {
    exitCode: report.exit_code,
    data: report,
    ...(seen ? {} : { text: report.result, untrusted: true }),
    remarks: [context.style.dim(summaryLine(report))],
    ...(error === undefined ? {} : { error }),
    ...(isTold(report) ? { errorTold: true } : {}),
    footer: nextSteps(report),
  };
}

/** The summary and the lines below it say it already; of calls in doubt they say more than the error does. */
function isTold({ error, reason, unknown_calls }: RunReport): boolean {
  return error === undefined || reason === "unknown-outcome" && unknown_calls !== undefined;
}
