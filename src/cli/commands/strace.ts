/** `rnix strace`: every call of a process to its devices, live or from the trace of a run that is over. */
import type { EndSignal } from "../../base/exit.ts";
import type { System, TraceItem } from "../../base/operations.ts";
import type { Command, Context, HeardSignal, Outcome } from "../command.ts";
import { counted } from "../amounts.ts";
import { hasSwitch } from "../flag_values.ts";
import { leftOutcome } from "../follow.ts";
import { oneLine } from "../plain_text.ts";
import { traceLine } from "../trace_text.ts";

const LEAVING: readonly (readonly [HeardSignal, EndSignal])[] = [
  ["SIGINT", "INT"],
  ["SIGTERM", "TERM"],
  ["SIGHUP", "HUP"],
];

export const strace: Command = {
  name: "strace",
  summary: "Show every call of a process, live or after its end",
  positionals: [{ name: "run", kind: "run" }],
  flags: [
    { name: "all", short: "a", summary: "Begin with what was traced so far" },
    { name: "follow", short: "f", summary: "Show the calls of the agents below it, too" },
  ],
  details:
    `A run at work is followed from now on, one that is over is told from its beginning. --json gives one
JSON object a line, -v the arguments of tools. Ctrl-C leaves the run alone (exit 130).`,
  async run(invocation, context) {
    const [run = ""] = invocation.words;
    const system = await context.system();
    const report = await system.report(run);
    const from = report === undefined && !hasSwitch(invocation, "all") ? "now" : "start";
    tell(context, `attached to ${run} (state: ${report?.state ?? "running"})`);
    const stop = new AbortController();
    let left: EndSignal | undefined;
    const forget = LEAVING.map(([heard, signal]) =>
      context.world.onSignal(heard, () => {
        left = signal;
        stop.abort();
      })
    );
    try {
      const follows = hasSwitch(invocation, "follow");
      await print(system.trace(run, from, stop.signal, follows), { context, follows });
    } finally {
      for (const each of forget) each();
    }
    return await outcome(run, left, { system, context });
  },
};

/** With several processes their times count from one beginning, and each line names its own. */
async function print(
  items: AsyncIterable<TraceItem>,
  { context, follows }: { context: Context; follows: boolean },
): Promise<void> {
  const { stdout } = context.world;
  const starts = new Map<number, number>();
  let pid: number | undefined;
  for await (const item of items) {
    if (context.json) {
      const { kind, ...missed } = item;
      stdout.write(
        `${JSON.stringify(item.kind === "record" ? item.record : { kind, ...missed })}\n`,
      );
    } else if (item.kind === "missed") {
      tell(context, `PID ${item.pid}: ${counted(item.events, "event")} missed`);
    } else {
      const { record } = item;
      if (!follows && pid !== undefined && pid !== record.pid) {
        tell(context, `goes on as PID ${record.pid}`);
      }
      pid = record.pid;
      const clockOf = follows ? 0 : pid;
      const startMs = starts.get(clockOf) ?? record.timestamp_ms;
      starts.set(clockOf, startMs);
      const who = follows ? `[pid ${pid}] ` : "";
      stdout.write(`${who}${traceLine(record, startMs, context.loudness === "verbose")}\n`);
    }
    await stdout.flush();
  }
}

async function outcome(
  run: string,
  left: EndSignal | undefined,
  { system, context }: { system: System; context: Context },
): Promise<Outcome> {
  if (left !== undefined) return { ...leftOutcome(run, left), streamed: context.json };
  const report = await system.report(run);
  const why = report === undefined ? "nothing more is traced" : `process ${wordFor(report.state)}`;
  tell(context, `detached from ${run} (${why})`);
  return { exitCode: 0, streamed: true };
}

function wordFor(state: string): string {
  return state === "suspended" ? "suspended" : "exited";
}

/** To stderr: stdout has the calls. */
function tell({ loudness, json, world }: Context, text: string): void {
  if (loudness !== "quiet" && !json) world.stderr.write(`[strace] ${oneLine(text)}\n`);
}
