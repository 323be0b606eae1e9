/**
 * Watches a run that goes on without this side: `attach`, `wait`, `logs -f`, and the start of a detached run.
 *
 * A signal (Ctrl-C, TERM, HUP) ends the watching and never the run; the command then exits as a program ended by that signal does.
 */
import { type EndSignal, exitOfSignal } from "../base/exit.ts";
import type { RunEvent, RunObserver, RunReport } from "../base/operations.ts";
import type { Context, HeardSignal, Outcome, World } from "./command.ts";
import { errorText, failureOf } from "./failure.ts";
import { Questioner } from "./question.ts";
import { reportOutcome } from "./report_outcome.ts";
import { StreamWriter } from "./stream.ts";
import { clientFacts, type Start, watcherOf } from "./supervise.ts";

/** How the watching ended: with the run, or before it. */
export type Followed = { report: RunReport } | { left: EndSignal };

const LEAVING: readonly (readonly [HeardSignal, EndSignal])[] = [
  ["SIGINT", "INT"],
  ["SIGTERM", "TERM"],
  ["SIGHUP", "HUP"],
];

/** Until the run is over or a signal comes. Rejects with what `start` rejects with. */
export async function follow(
  world: World,
  start: Start,
  observer: RunObserver,
): Promise<Followed> {
  return await untilLeft(world, async () => {
    const handle = await start(observer);
    return { report: await handle.done };
  });
}

async function untilLeft<T>(
  world: World,
  work: () => Promise<T>,
): Promise<T | { left: EndSignal }> {
  const left = Promise.withResolvers<{ left: EndSignal }>();
  const forget = LEAVING.map(([heard, signal]) =>
    world.onSignal(heard, () => left.resolve({ left: signal }))
  );
  try {
    return await Promise.race([work(), left.promise]);
  } finally {
    for (const each of forget) each();
  }
}

/** Watches as `run` does, answers as its terminal would, and ends as `run` does. `run` is the user's word for it. */
export async function watchRun(
  context: Context,
  { run, stream }: { run: string; stream: boolean },
  start: Start,
): Promise<Outcome> {
  if (stream) return await streamRun(context, run, start);
  const { stdin, stderr, clock } = context.world;
  const watcher = watcherOf(context);
  const questioner = new Questioner(stdin, stderr, clock, watcher);
  const observer: RunObserver = {
    onEvent: (event) => watcher.onEvent(event),
    onMissed: (events) => watcher.onMissed(events),
  };
  if (clientFacts(context, stream).interactive) {
    observer.decideUnknown = (call, signal) => questioner.decide(call, signal);
  }
  const followed = await follow(context.world, start, observer);
  questioner.giveUp();
  watcher.finish("report" in followed ? followed.report.result : undefined);
  if ("left" in followed) return leftOutcome(run, followed.left);
  return reportOutcome(context, followed.report, watcher);
}

/** The same as one JSON object a line on stdout, the last one the report. */
async function streamRun(context: Context, run: string, start: Start): Promise<Outcome> {
  const { world } = context;
  const writer = new StreamWriter(world.stdout, world.clock);
  try {
    const followed = await follow(world, start, writer);
    if ("left" in followed) {
      const { error, exitCode } = leftOutcome(run, followed.left);
      writer.end({ pid: null, ...(error === undefined ? {} : { error }) });
      return { exitCode, streamed: true };
    }
    writer.report(followed.report);
    return { exitCode: followed.report.exit_code, streamed: true };
  } catch (thrown) {
    const { error, exitCode } = failureOf(thrown);
    writer.end({ pid: error.pid ?? null, error });
    world.stderr.write(`${errorText(error)}\n`);
    return { exitCode, streamed: true };
  }
}

/** What a command ends with that was told to stop watching; `run` is unknown where it hadn't begun. */
export function leftOutcome(run: string | undefined, signal: EndSignal): Outcome {
  const hint = run === undefined
    ? "rnix ps shows what has become of it"
    : `rnix attach ${run} joins it again, rnix kill ${run} ends it`;
  return {
    exitCode: exitOfSignal(signal),
    error: {
      code: "INTERRUPTED",
      message: `SIG${signal} ended the watching, the run goes on`,
      hint,
    },
  };
}

/** Events after which a run is up: its servers are there and its program works. */
const UP: ReadonlySet<RunEvent["type"]> = new Set(["model.started", "call.started"]);

/** Starts a run that goes on by itself, and stays until it is up: its pid is the result. A run that doesn't come up ends the command as it would have ended `run`. */
export async function startDetached(context: Context, start: Start): Promise<Outcome> {
  const { stdin, stderr, clock } = context.world;
  const watcher = watcherOf(context);
  const questioner = new Questioner(stdin, stderr, clock, watcher);
  const up = Promise.withResolvers<void>();
  let isUp = false;
  /** A mount is told once it is on disk, which may be after the first request has left. */
  const mounting = new Set<string>();
  let pid: number | undefined;
  const observer: RunObserver = {
    onEvent(event) {
      isUp ||= UP.has(event.type);
      if (event.type === "mount.starting") mounting.add(event.server);
      if (event.type === "mount.ready" || event.type === "mount.failed") {
        mounting.delete(event.server);
        watcher.onEvent(event);
      } else if (!isUp) watcher.onEvent(event);
      if (isUp && mounting.size === 0) up.resolve();
    },
    onMissed: (events) => watcher.onMissed(events),
    decideUnknown: (call, signal) => questioner.decide(call, signal),
    confirmTrust: (question) => questioner.confirmTrust(question),
  };
  const ended = await untilLeft(context.world, async () => {
    const handle = await start(observer);
    pid = handle.pid;
    const report = await Promise.race([handle.done, up.promise]);
    return { pid, run_id: handle.runId, ...(report ? { report } : {}) };
  });
  watcher.finish(undefined);
  if ("left" in ended) return leftOutcome(pid?.toString(), ended.left);
  const { report, ...data } = ended;
  if (report !== undefined && report.exit_code !== 0) {
    return reportOutcome(context, report, watcher);
  }
  return { exitCode: 0, data, text: String(data.pid) };
}
