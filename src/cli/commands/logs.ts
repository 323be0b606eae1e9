/** `rnix logs`: what happened in a run, from its journal, in the form in which it is watched; `-f` goes on live. */
import { SysError } from "../../base/errors.ts";
import type { RunEvent, RunObserver, RunReport, System } from "../../base/operations.ts";
import type { Command, Context, Outcome } from "../command.ts";
import { errorText } from "../failure.ts";
import { hasSwitch } from "../flag_values.ts";
import { follow, type Followed, leftOutcome } from "../follow.ts";
import { summaryLine } from "../report.ts";
import { StreamWriter } from "../stream.ts";
import { styleFor } from "../style.ts";
import { Watcher } from "../watcher.ts";

export const logs: Command = {
  name: "logs",
  summary: "Show what happened in a run",
  positionals: [{ name: "run", kind: "run" }],
  flags: [
    { name: "follow", short: "f", summary: "Go on with what happens, until the run is over" },
    { name: "stream", summary: "One JSON event a line; --json with -f is the same" },
  ],
  details:
    `Streamed text is told as one piece. Exits 0 whatever the run's end was; Ctrl-C leaves a run alone
that is still followed (exit 130).`,
  async run(invocation, context) {
    const [run = ""] = invocation.words;
    const system = await context.system();
    const isFollowed = hasSwitch(invocation, "follow");
    const asLines = hasSwitch(invocation, "stream") || isFollowed && context.json;
    if (isFollowed && await system.report(run) === undefined) {
      const live = await followLive(system, run, context, asLines);
      if (live !== undefined) return live;
    }
    if (asLines) return await pastAsLines(system, run, context);
    if (context.json) return { exitCode: 0, data: { events: await collected(system, run) } };
    return await pastAsText(system, run, context);
  },
};

/** Undefined when the run has come to its end meanwhile: then its journal has it all. */
async function followLive(
  system: System,
  run: string,
  context: Context,
  asLines: boolean,
): Promise<Outcome | undefined> {
  const writer = new StreamWriter(context.world.stdout, context.world.clock);
  const watcher = logWatcher(context);
  const start = (observer: RunObserver) => system.attach(run, "start", observer);
  let followed: Followed;
  try {
    followed = await follow(context.world, start, asLines ? writer : watcher);
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "INVALID") return undefined;
    throw thrown;
  }
  watcher.endLine();
  if ("left" in followed) return { ...leftOutcome(run, followed.left), streamed: asLines };
  if (!asLines) return { exitCode: 0, text: endText(followed.report, watcher) };
  writer.report(followed.report);
  return { exitCode: 0, streamed: true };
}

async function pastAsText(system: System, run: string, context: Context): Promise<Outcome> {
  const watcher = logWatcher(context);
  for await (const event of system.pastEvents(run)) {
    watcher.onEvent(event);
    await context.world.stdout.flush();
  }
  watcher.endLine();
  const report = await system.report(run);
  return { exitCode: 0, ...(report === undefined ? {} : { text: endText(report, watcher) }) };
}

/** How the run ended and, where it failed or was suspended for an error, why. */
function endText(report: RunReport, watcher: Watcher): string {
  const { error } = report;
  const why = error === undefined || watcher.hasTold(error) ? [] : [errorText(error)];
  return [summaryLine(report), ...why].join("\n");
}

async function pastAsLines(system: System, run: string, context: Context): Promise<Outcome> {
  const { stdout, clock } = context.world;
  const writer = new StreamWriter(stdout, clock);
  for await (const event of system.pastEvents(run)) {
    writer.onEvent(event);
    await stdout.flush();
  }
  const report = await system.report(run);
  if (report !== undefined) writer.report(report);
  return { exitCode: 0, streamed: true };
}

async function collected(system: System, run: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of system.pastEvents(run)) events.push(event);
  return events;
}

/** Here the events are the result, so they go to stdout and are told in full. */
function logWatcher({ world, env, loudness }: Context): Watcher {
  const wanted = loudness === "essential" ? "full" : loudness;
  return new Watcher(world.stdout, styleFor(world.stdout.isTerminal, env), wanted, {
    columns: world.columns,
  });
}
