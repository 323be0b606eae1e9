/** `rnix replay`: an ended run again, from its records alone or with one side in earnest, and whether it comes out the same. */
import { shortRunId } from "../../base/ids.ts";
import type { ReplayReport, RunRequest } from "../../base/operations.ts";
import { counted } from "../amounts.ts";
import { usageError } from "../arguments.ts";
import type { Command, Context, Invocation, Outcome } from "../command.ts";
import { hasSwitch, valueOf } from "../flag_values.ts";
import { oneLine } from "../plain_text.ts";
import { clientFacts, supervise } from "../supervise.ts";

export const replay: Command = {
  name: "replay",
  summary: "Go through an ended run again, and say whether it is the same",
  positionals: [{ name: "run", kind: "run" }],
  flags: [
    { name: "live-model", summary: "Ask the model in earnest; tools answer as they did" },
    { name: "live-mcp", summary: "Call the tools in earnest; the model answers as it did" },
    { name: "model", value: "MODEL", summary: "With --live-model: this model of the provider" },
    { name: "yes", summary: "With --live-mcp: do again what the run did" },
  ],
  details:
    `Without a flag model and servers answer as they did, and nothing is sent anywhere. With one of them a
new run is made that plays the old one. Exits 0 when every request, every call and the end come out the
same, 1 when they don't.`,
  async run(invocation, context) {
    const [run = ""] = invocation.words;
    const live = liveSide(invocation);
    if (live !== undefined) return await replayLive(run, live, { invocation, context });
    const system = await context.system();
    return outcomeOf(await system.replay(run));
  },
};

function liveSide(invocation: Invocation): "model" | "mcp" | undefined {
  const [model, mcp] = [hasSwitch(invocation, "live-model"), hasSwitch(invocation, "live-mcp")];
  if (model && mcp) {
    throw usageError(
      '"--live-model" and "--live-mcp" exclude each other',
      "With both it would be a new run: rnix run",
    );
  }
  return model ? "model" : mcp ? "mcp" : undefined;
}

async function replayLive(
  run: string,
  live: "model" | "mcp",
  { invocation, context }: { invocation: Invocation; context: Context },
): Promise<Outcome> {
  const system = await context.system();
  const model = valueOf(invocation, "model");
  const request: RunRequest = {
    manifest: "",
    intent: "",
    client: clientFacts(context, false),
    trust: false,
    replay: { run, live, yes: hasSwitch(invocation, "yes") },
    ...(model === undefined ? {} : { model }),
  };
  let runId: string | undefined;
  const outcome = await supervise(context, false, async (observer) => {
    const handle = await system.run(request, observer);
    runId = handle.runId;
    return handle;
  });
  // What was suspended, or killed, has no end that could be held against another.
  if (runId === undefined || outcome.exitCode > 1) return outcome;
  return outcomeOf(await system.compareReplay(runId));
}

function outcomeOf(report: ReplayReport): Outcome {
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
}

/** The report as lines. */
export function replayText(report: ReplayReport): string {
  const { run_id, same, requests, calls, differences } = report;
  const gone = `${counted(requests, "model request")}, ${counted(calls, "call")}`;
  const verdict = same ? "the same" : counted(differences.length, "difference");
  return [
    `run ${shortRunId(run_id)}: ${gone}: ${verdict}`,
    ...differences.map(({ record, what, message }) =>
      oneLine(`${record === undefined ? "" : `record ${record}: `}${what}: ${message}`)
    ),
  ].join("\n");
}
