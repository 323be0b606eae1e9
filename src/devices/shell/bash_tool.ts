/**
 * `Bash`: a command line in a shell, in the run's working folder.
 *
 * Invariants
 * 1. The shell leads a session of its own. It carries a mark that begins with this rnix's and goes on with the call's own: what it starts is ended with rnix, however that goes.
 * 2. The call is over when the shell is: whatever carries the call's mark then is ended, sessions of its own included, so that nothing outlives the call.
 * 3. A command that was ended has a known outcome: what it said so far, and why it was ended.
 */
import { BUILTIN_EFFECTS } from "../../base/builtin_tools.ts";
import type { Clock } from "../../base/clock.ts";
import { within } from "../../base/clock.ts";
import { formatDuration } from "../../base/duration.ts";
import { SysError } from "../../base/errors.ts";
import { sweep } from "../../base/guard.ts";
import type { JsonObject } from "../../base/json.ts";
import type { Redactor } from "../../base/redaction.ts";
import type { ProcessKeeper } from "../../mcp/launch.ts";
import { groupAlive, signalGroup } from "../../mcp/process_group.ts";
import { type BuiltinAnswer, type BuiltinTool, textAnswer } from "../builtin.ts";
import { KeptOutput } from "./output_tail.ts";

export const COMMAND_MS = 120_000;
export const COMMAND_MS_MAX = 600_000;
/** Between SIGTERM and SIGKILL. */
const TERM_GRACE_MS = 2_000;
/** How long output is still read after the shell's end. */
const DRAIN_MS = 1_000;
const OUTPUT_CHARS_MAX = 100_000;
const COMMAND_CHARS_MAX = 100_000;
/** What Linux takes as one argument, its end included. */
const ARGUMENT_BYTES_MAX = 128 * 1024;
/** Of the same length for every call: none begins like another. */
const CALL_MARK_CHARS = 12;

export interface BashDeps {
  clock: Clock;
  /** Absolute. */
  cwd: string;
  /** The shell's whole environment, the mark aside. */
  env: { [name: string]: string };
  /** Out of its output before that is cut. */
  secrets: Redactor;
  /** Resolves once what sees to orphans is up. */
  keeper: () => Promise<ProcessKeeper>;
}

export function bashTool(deps: BashDeps): BuiltinTool {
  return {
    definition: {
      name: "Bash",
      modelName: "Bash",
      description:
        `Runs a command line in a shell, from the working folder, and gives its output and exit code. Nothing stays behind: what it leaves in the background is ended. It may take ${
          formatDuration(COMMAND_MS)
        } unless timeout_ms says otherwise (at most ${formatDuration(COMMAND_MS_MAX)}).`,
      inputSchema: {
        type: "object",
        properties: {
          command: { type: "string", minLength: 1, maxLength: COMMAND_CHARS_MAX },
          timeout_ms: { type: "integer", minimum: 1, maximum: COMMAND_MS_MAX },
        },
        required: ["command"],
        additionalProperties: false,
      },
    },
    effect: BUILTIN_EFFECTS.Bash,
    run: (input, { signal }) => runCommand(deps, input, signal),
  };
}

async function runCommand(
  deps: BashDeps,
  input: JsonObject,
  signal: AbortSignal,
): Promise<BuiltinAnswer> {
  const command = typeof input["command"] === "string" ? input["command"] : "";
  if (command.includes("\0")) throw new SysError("INVALID", "A command can't hold a NUL character");
  const size = new TextEncoder().encode(command).length;
  if (size >= ARGUMENT_BYTES_MAX) {
    throw new SysError("INVALID", `A command of ${size} bytes is too long for a shell`, {
      hint: "Write it into a file and run that",
    });
  }
  const limitMs = typeof input["timeout_ms"] === "number" ? input["timeout_ms"] : COMMAND_MS;
  const keeper = await deps.keeper();
  const mark = callMark(keeper.mark);
  const child = start(command, deps, mark);
  keeper.groupStarted(child.pid);
  const output = new KeptOutput(OUTPUT_CHARS_MAX, deps.secrets);
  const drained = Promise.all([
    drain(child.stdout, output.stream()),
    drain(child.stderr, output.stream()),
  ]);
  let ended: string | undefined;
  const cancelled = Promise.withResolvers<void>();
  const onAbort = () => {
    ended ??= "it was cancelled";
    cancelled.resolve();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  const exited = child.status.then(() => {});
  await within(deps.clock, limitMs, Promise.race([exited, cancelled.promise]), () => {
    ended ??= `it took longer than ${formatDuration(limitMs)} (timeout_ms)`;
  });
  signal.removeEventListener("abort", onAbort);
  await endGroup(child, deps.clock);
  for (const each of Object.values(mark)) await sweep(each, deps.clock).catch(() => {});
  keeper.groupEnded(child.pid);
  await within(deps.clock, DRAIN_MS, drained.then(() => {}), () => {});
  await Promise.all([child.stdout, child.stderr].map((stream) => stream.cancel().catch(() => {})));
  return answerOf(await child.status, output.text(), ended);
}

function answerOf(
  { code, signal }: Deno.CommandStatus,
  text: string,
  ended: string | undefined,
): BuiltinAnswer {
  const end = ended !== undefined
    ? `(the command was ended: ${ended})`
    : signal !== null
    ? `(ended by ${signal})`
    : code === 0
    ? undefined
    : `(exit code ${code})`;
  const lines = [text.replace(/\n$/, ""), end].filter((part) => part !== undefined && part !== "");
  return textAnswer(lines.join("\n"), end !== undefined);
}

/** The mark of all this rnix's processes, made longer: who looks for that one finds this one too. */
function callMark(mark: ProcessKeeper["mark"]): { [name: string]: string } {
  const own = crypto.randomUUID().slice(-CALL_MARK_CHARS);
  return Object.fromEntries(Object.entries(mark).map(([name, value]) => [name, `${value}-${own}`]));
}

function start(
  command: string,
  deps: BashDeps,
  mark: { [name: string]: string },
): Deno.ChildProcess {
  try {
    return new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$(command -v bash || echo /bin/sh)" -c "$1"', "rnix", command],
      cwd: deps.cwd,
      clearEnv: true,
      env: { ...deps.env, ...mark },
      detached: true,
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (cause) {
    throw new SysError("DRIVER", `Cannot start a shell in "${deps.cwd}"`, { cause });
  }
}

async function drain(
  stream: ReadableStream<Uint8Array>,
  take: (bytes: Uint8Array) => void,
): Promise<void> {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (done || value === undefined) break;
    take(value);
  }
  reader.releaseLock();
}

/** What of the group still lives is asked to end, then made to. */
async function endGroup(child: Deno.ChildProcess, clock: Clock): Promise<void> {
  if (!await groupAlive(child.pid)) return;
  signalGroup(child.pid, "SIGTERM");
  const endMs = clock.monotonic() + TERM_GRACE_MS;
  while (clock.monotonic() < endMs) {
    if (!await groupAlive(child.pid)) return;
    await within(clock, 50, child.status.then(() => {}), () => {});
    await new Promise<void>((resolve) => clock.after(25, resolve));
  }
  signalGroup(child.pid, "SIGKILL");
  await within(clock, TERM_GRACE_MS, child.status.then(() => {}), () => {});
}
