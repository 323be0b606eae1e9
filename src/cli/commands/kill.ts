/** `rnix kill` and `rnix pause`: signals to runs. */
import { type EndSignal, EXIT_FAILED, EXIT_UNREACHABLE, SIGNAL_NUMBERS } from "../../base/exit.ts";
import { nearest } from "../../base/nearest.ts";
import type { ErrorBody, RunSignal } from "../../base/operations.ts";
import { usageError } from "../arguments.ts";
import type { Command, Context, Outcome } from "../command.ts";
import { errorText, failureOf } from "../failure.ts";
import { valueOf } from "../flag_values.ts";
import { oneLine } from "../plain_text.ts";

const NAMES: readonly RunSignal[] = ["TERM", "INT", "KILL", "HUP", "PAUSE"];

export const kill: Command = {
  name: "kill",
  summary: "End runs, or send them another signal",
  positionals: [{ name: "run", kind: "run", rest: true }],
  flags: [{
    name: "signal",
    short: "s",
    value: "SIGNAL",
    summary: "TERM (default), INT, KILL, HUP or PAUSE; also -KILL, -9",
    dashed: /^(\d+|[A-Z]{2,})$/,
    choices: NAMES,
  }],
  details:
    `TERM, INT, KILL and HUP end a run, also a suspended one; it exits with 128 and the signal's number.
PAUSE suspends it: rnix resume goes on. Exits 0 when every signal was sent, 1 when only some were.`,
  run: (invocation, context) =>
    sendAll(context, invocation.words, signalOf(valueOf(invocation, "signal") ?? "TERM")),
};

export const pause: Command = {
  name: "pause",
  summary: "Suspend runs at work",
  positionals: [{ name: "run", kind: "live-run", rest: true }],
  flags: [],
  details: "What is in flight is cancelled and awaited for two seconds; rnix resume goes on.",
  run: (invocation, context) => sendAll(context, invocation.words, "PAUSE"),
};

/** A signal by name, with or without SIG, or by number. Throws a usage error. */
function signalOf(text: string): RunSignal {
  const name = text.toUpperCase().replace(/^SIG/, "");
  const byNumber = Object.entries(SIGNAL_NUMBERS).find(([, number]) => String(number) === name)
    ?.[0];
  const signal = NAMES.find((each) => each === (byNumber ?? name));
  if (signal !== undefined) return signal;
  const near = nearest(name, NAMES);
  throw usageError(
    `There is no signal "${text}"`,
    near === undefined ? `one of: ${NAMES.join(", ")}` : `did you mean ${near}?`,
  );
}

interface Sent {
  run: string;
  signal: EndSignal | "PAUSE";
  sent: boolean;
  error?: ErrorBody;
}

async function sendAll(
  context: Context,
  runs: readonly string[],
  signal: RunSignal,
): Promise<Outcome> {
  const system = await context.system();
  const signals: Sent[] = [];
  const codes: number[] = [];
  let unreachable: unknown;
  for (const run of runs) {
    try {
      // A daemon that is silent for one is so for all, and each would cost its limit.
      if (unreachable !== undefined) throw unreachable;
      await system.signal(run, signal);
      signals.push({ run, signal, sent: true });
      codes.push(0);
    } catch (thrown) {
      const failure = failureOf(thrown);
      if (failure.exitCode === EXIT_UNREACHABLE) unreachable = thrown;
      signals.push({ run, signal, sent: false, error: failure.error });
      codes.push(failure.exitCode);
    }
  }
  const errors = signals.flatMap(({ error }) => error ?? []);
  const text = signals.filter(({ sent }) => sent).map(sentLine).join("\n");
  const [error] = errors;
  return {
    exitCode: exitOf(codes),
    data: { signals },
    text,
    ...(error === undefined ? {} : { error }),
    ...(errors.length > 1 ? { footer: otherErrors(errors) } : {}),
  };
}

/** That of all where they are alike, as where no run was found; else 1. */
function exitOf(codes: readonly number[]): number {
  if (codes.includes(EXIT_UNREACHABLE)) return EXIT_UNREACHABLE;
  const [first = 0] = codes;
  return codes.every((code) => code === first) ? first : EXIT_FAILED;
}

/** Those after the first, each once. */
function otherErrors(errors: readonly ErrorBody[]): string[] {
  const [first, ...others] = errors.map(errorText);
  return [...new Set(others)].filter((text) => text !== first);
}

function sentLine({ run, signal }: Sent): string {
  const who = /^\d+$/.test(run) ? `PID ${run}` : `run ${oneLine(run)}`;
  return `[kernel] ${who}: signal sent (${signal === "PAUSE" ? "" : "SIG"}${signal})`;
}
