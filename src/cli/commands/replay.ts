/** `rnix replay`: an ended run again, offline, and whether it comes out the same. */
import { shortRunId } from "../../base/ids.ts";
import type { ReplayReport } from "../../base/operations.ts";
import { counted } from "../amounts.ts";
import type { Command } from "../command.ts";
import { oneLine } from "../plain_text.ts";

export const replay: Command = {
  name: "replay",
  summary: "Go through an ended run again, from its records alone",
  positionals: [{ name: "run", kind: "run" }],
  flags: [],
  details:
    `Model and servers answer as they did; nothing is sent anywhere. Exits 0 when every request, every call
and the end come out the same, 1 when they don't.`,
  async run(invocation, context) {
    const system = await context.system();
    const report = await system.replay(invocation.words[0] ?? "");
    const text = replayText(report);
    if (report.same) return { exitCode: 0, data: report, text };
    return {
      exitCode: 1,
      data: report,
      text,
      error: {
        code: "INVALID",
        message: `Run ${shortRunId(report.run_id)} comes out otherwise than it did`,
      },
      errorTold: true,
    };
  },
};

/** The report as lines. */
export function replayText(report: ReplayReport): string {
  const { run_id, same, requests, calls, differences } = report;
  const gone = `${counted(requests, "model request")}, ${counted(calls, "call")}`;
  const verdict = same ? "the same" : counted(differences.length, "difference");
  return [
    `run ${shortRunId(run_id)}: ${gone}: ${verdict}`,
    ...differences.map(({ record, what, message }) =>
      oneLine(`record ${record}: ${what}: ${message}`)
    ),
  ].join("\n");
}
