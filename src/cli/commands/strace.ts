/** `rnix strace`: every call of a process to its devices, live or from the trace of a run that is over. */
import type { EndSignal } from "../../base/exit.ts";
import type { InFlight, System, TraceItem } from "../../base/operations.ts";
import type { Command, Context, HeardSignal, Outcome } from "../command.ts";
import { counted } from "../amounts.ts";
import { hasSwitch } from "../flag_values.ts";
import { flightText } from "../flight_text.ts";
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
JSON object a line, -v the arguments of tools. A call is told once it is over. Ctrl-C leaves the run
alone (exit 130) and tells what is in flight.`,
  async run(invocation, context) {
    const [run = ""] = invocation.words;
    const system = await context.system();
    const report = await system.report(run);
    const from = report === undefined && !hasSwitch(invocation, "all") ? "now" : "start";
    tell(context, `attached to ${run} (state: ${report?.state ?? "running"})`);
    const follows = hasSwitch(invocation, "follow");
    // What was begun before this side came is traced once it is over, with the time of its begin.
    const flying = from === "now" ? await inFlight(system, run, follows) : [];
    const stop = new AbortController();
    let left: EndSignal | undefined;
    const forget = LEAVING.map(([heard, signal]) =>
      context.world.onSignal(heard, () => {
        left = signal;
        stop.abort();
      })
    );
    try {
      const beginMs = Math.min(...flying.map(({ started_ms }) => started_ms));
      const items = system.trace(run, from, stop.signal, follows);
      await print(items, { context, follows, beginMs });
    } finally {
      for (const each of forget) each();
    }
    if (left !== undefined) tellFlying(await inFlight(system, run, follows), { context, follows });
    return await outcome(run, left, { system, context });
  },
};

/** What isn't over has no line yet: the trace has a call once its duration is known. Nothing where it can't be read. */
async function inFlight(system: System, run: string, follows: boolean): Promise<InFlight[]> {
  return await system.inFlight(run, follows).catch(() => []);
}

/** What is left in the middle is told by the time that it has taken so far. */
function tellFlying(
  flying: readonly InFlight[],
  { context, follows }: { context: Context; follows: boolean },
): void {
  const nowMs = context.world.clock.now();
  for (const each of flying) {
    if (context.json) {
      context.world.stdout.write(`${JSON.stringify({ kind: "in_flight", ...each })}\n`);
    } else {
      const who = follows ? `[pid ${each.pid}] ` : "";
      tell(context, `in flight: ${who}${flightText(each, nowMs)}`);
    }
  }
}

/** Times of a process count from its first call; with several processes all count from one beginning, and each line names its own. `beginMs`: the first of what was in flight already. */
async function print(
  items: AsyncIterable<TraceItem>,
  { context, follows, beginMs }: { context: Context; follows: boolean; beginMs: number },
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
      const startMs = starts.get(clockOf) ??
        Math.min(record.timestamp_ms, starts.size === 0 ? beginMs : Infinity);
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
