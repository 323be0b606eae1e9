/**
 * Holds a run from its start to its report: watches it, answers for it, and passes signals on.
 *
 * Ctrl-C once suspends the run (`paused`), twice ends it; TERM and HUP suspend it (`detached`). A signal that comes before the run has a handle waits for it.
 */
import { INSTANCE_VARIABLE } from "../base/instance.ts";
import type { ClientFacts, RunHandle, RunObserver, RunReport } from "../base/operations.ts";
import type { Context, Outcome } from "./command.ts";
import { errorText, failureOf } from "./failure.ts";
import { Questioner } from "./question.ts";
import { reportOutcome } from "./report_outcome.ts";
import { StreamWriter } from "./stream.ts";
import { Watcher } from "./watcher.ts";

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
  const watcher = new Watcher(stderr, context.style, context.loudness, context.world.columns);
  const questioner = new Questioner(stdin, stderr, clock, watcher);
  const report = await hold(context, start, {
    onEvent: (event) => watcher.onEvent(event),
    onMissed: (events) => watcher.onMissed(events),
    decideUnknown: (call, signal) => questioner.decide(call, signal),
    confirmTrust: (question) => questioner.confirmTrust(question),
  }, (told) => {
    questioner.giveUp();
    watcher.endLine();
    if (!context.quiet) stderr.write(`${told}\n`);
  });
  watcher.endLine();
  return reportOutcome(context, report, watcher);
}

async function streamed(context: Context, start: Start): Promise<Outcome> {
  const writer = new StreamWriter(context.world.stdout, context.world.clock);
  try {
    const report = await hold(context, start, writer, () => {});
    writer.report(report);
    return { exitCode: report.exit_code, streamed: true };
  } catch (thrown) {
    const { error, exitCode } = failureOf(thrown);
    writer.end({ pid: error.pid ?? null, error });
    context.world.stderr.write(`${errorText(error)}\n`);
    return { exitCode, streamed: true };
  }
}

async function hold(
  context: Context,
  start: Start,
  observer: RunObserver,
  tell: (told: string) => void,
): Promise<RunReport> {
  const signals = new Signals(context, tell);
  try {
    const handle = await start(observer);
    signals.attach(handle);
    return await handle.done;
  } finally {
    signals.close();
  }
}

/** Turns signals into what the handle is told. */
class Signals {
  readonly #forget: (() => void)[];
  readonly #tell: (told: string) => void;
  #handle: RunHandle | undefined;
  #waiting: ((handle: RunHandle) => void)[] = [];
  #interrupts = 0;

  constructor(context: Context, tell: (told: string) => void) {
    this.#tell = tell;
    const { world } = context;
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

  close(): void {
    for (const forget of this.#forget) forget();
  }

  #interrupt(): void {
    this.#interrupts += 1;
    if (this.#interrupts === 1) {
      this.#tell("suspending; Ctrl-C again ends the run");
      this.#do((handle) => handle.suspend("paused"));
    } else if (this.#interrupts === 2) {
      this.#do((handle) => handle.kill("INT"));
    }
  }

  #do(action: (handle: RunHandle) => void): void {
    if (this.#handle) action(this.#handle);
    else this.#waiting.push(action);
  }
}
