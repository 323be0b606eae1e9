/**
 * Holds a run from its start to its report: watches it, answers for it, and passes signals on.
 *
 * Ctrl-C once suspends the run (`paused`), twice ends it, and this side `END_MS_MAX` later whether or not the daemon reacts; TERM and HUP suspend it (`detached`). A signal that comes before the run has a handle waits for it.
 */
import type { Clock } from "../base/clock.ts";
import { exitOfSignal } from "../base/exit.ts";
import { INSTANCE_VARIABLE } from "../base/instance.ts";
import type {
  ClientFacts,
  ErrorBody,
  RunHandle,
  RunObserver,
  RunReport,
} from "../base/operations.ts";
import type { Context, Outcome } from "./command.ts";
import { errorText, failureOf } from "./failure.ts";
import { type LiveGraph, liveGraph } from "./live_graph.ts";
import { type Floor, Questioner } from "./question.ts";
import { reportOutcome } from "./report_outcome.ts";
import { StreamWriter } from "./stream.ts";
import { Watcher } from "./watcher.ts";

/** How long a run may take to end after the second Ctrl-C, milliseconds. */
export const END_MS_MAX = 10_000;

/** Starts the run with the observer that it is given. */
export type Start = (observer: RunObserver) => Promise<RunHandle>;

/** What a run needs of this side. A person can be asked only where there is one, the output isn't for a program, and no agent holds the terminal. */
export function clientFacts(context: Context, stream: boolean): ClientFacts {
  const { stdin, stderr } = context.world;
  const forPrograms = context.json || stream || context.env[INSTANCE_VARIABLE] !== undefined;
  return {
    cwd: context.world.cwd,
    env: context.env,
    interactive: !forPrograms && stdin.isTerminal && stderr.isTerminal,
  };
}

/** Runs to the end and says how it was; throws what `start` throws (with `--stream` it becomes the last line). */
export async function supervise(context: Context, stream: boolean, start: Start): Promise<Outcome> {
  if (stream) return await streamed(context, start);
  const { stdin, stderr, clock } = context.world;
  const watcher = watcherOf(context);
  const graph = liveGraph(context);
  const questioner = new Questioner(stdin, stderr, clock, floorOf(watcher, graph));
  const report = await hold(context, start, {
    onEvent: (event) => {
      if (graph?.takes(event) !== true) watcher.onEvent(event);
    },
    onMissed: (events) => {
      graph?.erase();
      watcher.onMissed(events);
    },
    decideUnknown: (call, signal) => questioner.decide(call, signal),
    confirmTrust: (question) => questioner.confirmTrust(question),
  }, (told) => {
    questioner.giveUp();
    graph?.erase();
    watcher.endLine();
    if (!context.quiet) stderr.write(`${told}\n`);
  });
  await graph?.finish();
  watcher.finish(report?.result);
  if (report === undefined) return leftBehind();
  return reportOutcome(context, report, watcher);
}

/** Tells on stderr of a run whose result goes to stdout. */
export function watcherOf({ world, style, loudness }: Context): Watcher {
  const { stderr, columns } = world;
  return new Watcher(stderr, style, loudness, { columns, holdsText: !stderr.isTerminal });
}

/** Who gives way to a question. */
function floorOf(watcher: Watcher, graph: LiveGraph | undefined): Floor {
  if (graph === undefined) return watcher;
  return {
    take() {
      graph.take();
      watcher.take();
    },
    giveBack() {
      watcher.giveBack();
      graph.giveBack();
    },
  };
}

async function streamed(context: Context, start: Start): Promise<Outcome> {
  const writer = new StreamWriter(context.world.stdout, context.world.clock);
  try {
    const report = await hold(context, start, writer, () => {});
    if (report === undefined) return endedWithout(context, writer, leftBehind());
    writer.report(report);
    return { exitCode: report.exit_code, streamed: true };
  } catch (thrown) {
    return endedWithout(context, writer, failureOf(thrown));
  }
}

/** The last line where there is no report. */
function endedWithout(
  context: Context,
  writer: StreamWriter,
  { error, exitCode }: { error: ErrorBody; exitCode: number },
): Outcome {
  writer.end({ pid: error.pid ?? null, error });
  context.world.stderr.write(`${errorText(error)}\n`);
  return { exitCode, streamed: true };
}

/** What a command ends with that was interrupted twice and got no end of its run. */
function leftBehind(): { error: ErrorBody; exitCode: number } {
  return {
    exitCode: exitOfSignal("INT"),
    error: {
      code: "INTERRUPTED",
      message: `The run did not end within ${END_MS_MAX / 1000} s, and was left`,
      hint: "rnix daemon status tells about the daemon, rnix ps -a what has become of the run",
    },
  };
}

/** Undefined when it was left before its end. */
async function hold(
  context: Context,
  start: Start,
  observer: RunObserver,
  tell: (told: string) => void,
): Promise<RunReport | undefined> {
  const signals = new Signals(context, tell);
  const toItsEnd = async () => {
    const handle = await start(observer);
    signals.attach(handle);
    return await handle.done;
  };
  try {
    return await Promise.race([toItsEnd(), signals.left]);
  } finally {
    signals.close();
  }
}

/** Turns signals into what the handle is told. */
class Signals {
  readonly #forget: (() => void)[];
  readonly #tell: (told: string) => void;
  readonly #clock: Clock;
  readonly #left = Promise.withResolvers<undefined>();
  #cancelLeaving = () => {};
  #handle: RunHandle | undefined;
  #waiting: ((handle: RunHandle) => void)[] = [];
  #interrupts = 0;

  constructor(context: Context, tell: (told: string) => void) {
    this.#tell = tell;
    const { world } = context;
    this.#clock = world.clock;
    this.#forget = [
      world.onSignal("SIGINT", () => this.#interrupt()),
      world.onSignal("SIGTERM", () => this.#do((handle) => handle.suspend("detached"))),
      world.onSignal("SIGHUP", () => this.#do((handle) => handle.suspend("detached"))),
    ];
  }

  attach(handle: RunHandle): void {
    this.#handle = handle;
    for (const action of this.#waiting.splice(0)) action(handle);
  }

  /** Resolves when the end is waited for no more. */
  get left(): Promise<undefined> {
    return this.#left.promise;
  }

  close(): void {
    this.#cancelLeaving();
    for (const forget of this.#forget) forget();
  }

  #interrupt(): void {
    this.#interrupts += 1;
    if (this.#interrupts === 1) {
      this.#tell("suspending; Ctrl-C again ends the run");
      this.#do((handle) => handle.suspend("paused"));
    } else if (this.#interrupts === 2) {
      this.#do((handle) => handle.kill("INT"));
      this.#cancelLeaving = this.#clock.after(END_MS_MAX, () => this.#left.resolve(undefined));
    }
  }

  #do(action: (handle: RunHandle) => void): void {
    if (this.#handle) action(this.#handle);
    else this.#waiting.push(action);
  }
}
