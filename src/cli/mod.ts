/**
 * The command line: arguments in, exit code out.
 *
 * Commands give outcomes; this is the one place that prints them, as text or as the JSON envelope `{ok, data?, error?}`, and where an error becomes an exit code.
 */
import { storageError } from "../base/disk.ts";
import { EXIT_FAILED } from "../base/exit.ts";
import { resolve } from "../base/posix_path.ts";
import type { ErrorBody } from "../base/operations.ts";
import { type Globals, parseArguments, type Parsed, usageError, wantsJson } from "./arguments.ts";
import type { Command, Connection, Context, Invocation, Outcome, World } from "./command.ts";
import { allCommands, commandsFor } from "./commands.ts";
import { errorBody, errorText, failureOf } from "./failure.ts";
import type { Output } from "./output.ts";
import { jsonText, plainText } from "./plain_text.ts";
import { styleFor } from "./style.ts";

export type { Connection, DaemonControl, HeardSignal, World } from "./command.ts";
export { Input } from "./input.ts";
export { Output } from "./output.ts";

/** Runs one command line. Never rejects; the exit code is decided and everything printed when it resolves. */
export async function main(world: World): Promise<number> {
  const json = wantsJson(world.args);
  const outcome = await perform(world);
  await print(world, outcome, json);
  await world.stdout.flush();
  const lost = lostResult(world.stdout);
  if (lost !== undefined) world.stderr.write(`${errorText(lost)}\n`);
  await world.stderr.flush();
  return outcome.exitCode === 0 && lost !== undefined ? EXIT_FAILED : outcome.exitCode;
}

/** Why the result didn't get out, unless nobody was there to read it. */
function lostResult({ failure }: Output): ErrorBody | undefined {
  return failure === undefined ? undefined : errorBody(storageError(failure, "Write", "stdout"));
}

/** An outcome and how the command line wanted it. */
interface Performed extends Outcome {
  quiet: boolean;
  stack?: string;
}

async function perform(world: World): Promise<Performed> {
  let quiet = false;
  try {
    if (world.platform === "windows") {
      throw usageError("rnix doesn't run on Windows", "use it in WSL, on Linux or on macOS");
    }
    const args = withVersionFlag(world.args);
    const parsed = parseArguments(args, await commandsFor(args));
    quiet = parsed.globals.quiet;
    return { ...await dispatch(world, parsed), quiet };
  } catch (thrown) {
    const { error, exitCode, stack } = failureOf(thrown);
    return { exitCode, error, quiet, stack };
  }
}

/** `rnix --version` is what people type first. */
function withVersionFlag(args: readonly string[]): readonly string[] {
  return args[0] === "--version" ? ["version", ...args.slice(1)] : args;
}

async function dispatch(world: World, parsed: Parsed): Promise<Outcome> {
  const { command, invocation, globals } = parsed;
  if (command === undefined) return await helpAbout(invocation.words.join(" "));
  if (globals.help) return await helpAbout(command.name);
  return await withContext(world, globals, command, invocation);
}

async function withContext(
  world: World,
  globals: Globals,
  command: Command,
  invocation: Invocation,
): Promise<Outcome> {
  let connection: Promise<Connection> | undefined;
  const env = globals.home === undefined
    ? world.env
    : { ...world.env, RNIX_HOME: resolve(world.cwd, globals.home) };
  const context: Context = {
    world,
    env,
    json: globals.json,
    quiet: globals.quiet,
    loudness: loudnessOf(world, globals),
    style: styleFor(world.stderr.isTerminal, env),
    system: async () => (await (connection ??= world.connect(env))).system,
  };
  try {
    return await command.run(invocation, context);
  } finally {
    // A connection that failed has been told by the command already.
    await connection?.then((made) => made.close(), () => {});
  }
}

/** Plain and quiet where nobody watches. */
function loudnessOf(world: World, globals: Globals): Context["loudness"] {
  if (globals.quiet) return "quiet";
  if (globals.verbose) return "verbose";
  return world.stderr.isTerminal && !globals.json ? "full" : "essential";
}

async function helpAbout(name: string): Promise<Outcome> {
  const { helpFor } = await import("./commands/help.ts");
  return helpFor(name, await allCommands());
}

async function print(world: World, outcome: Performed, json: boolean): Promise<void> {
  if (outcome.stack !== undefined && (world.env["RNIX_DEBUG"] ?? "") !== "") {
    world.stderr.write(`${plainText(outcome.stack)}\n`);
  }
  if (outcome.streamed) return;
  if (json) world.stdout.write(`${jsonText(envelope(outcome))}\n`);
  else await printText(world, outcome);
}

/** The result stands before what is said of it, also where both streams are one file or terminal. */
async function printText(world: World, outcome: Performed): Promise<void> {
  const { stdout, stderr } = world;
  if (outcome.text !== undefined && outcome.text !== "") {
    const text = outcome.untrusted && stdout.isTerminal ? plainText(outcome.text) : outcome.text;
    await stderr.flush();
    stdout.write(text.endsWith("\n") ? text : `${text}\n`);
    await stdout.flush();
  }
  const lines = outcome.quiet ? [] : [...outcome.remarks ?? []];
  const isTold = outcome.errorPrinted || !outcome.quiet && outcome.errorTold;
  if (outcome.error !== undefined && !isTold) {
    lines.push(errorText(outcome.error));
  }
  if (!outcome.quiet) lines.push(...outcome.footer ?? []);
  for (const line of lines) stderr.write(`${line}\n`);
}

/** `ok` is true iff the exit code is 0; `error` is there whenever it isn't. */
function envelope(outcome: Outcome): { ok: boolean; data?: object; error?: ErrorBody } {
  const ok = outcome.exitCode === 0;
  const error = outcome.error ??
    { code: "INTERNAL", message: `Command ended with exit code ${outcome.exitCode}` };
  return {
    ok,
    ...(outcome.data === undefined ? {} : { data: outcome.data }),
    ...(ok ? {} : { error }),
  };
}
