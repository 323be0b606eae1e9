/** `rnix mcp logs`: what a mounted server wrote to stderr, also one that failed to start; `-f` goes on live. */
import type { EndSignal } from "../../base/exit.ts";
import type { LogLine } from "../../base/operations.ts";
import type { Command, Context, HeardSignal, Invocation, Outcome } from "../command.ts";
import { hasSwitch, valueOf, wholeNumber } from "../flag_values.ts";
import { leftOutcome } from "../follow.ts";
import { jsonText, plainText } from "../plain_text.ts";

const LEAVING: readonly (readonly [HeardSignal, EndSignal])[] = [
  ["SIGINT", "INT"],
  ["SIGTERM", "TERM"],
  ["SIGHUP", "HUP"],
];

export const mcpLogs: Command = {
  name: "mcp logs",
  summary: "Show what an MCP server wrote to stderr",
  positionals: [{ name: "mount", kind: "mount" }],
  flags: [
    { name: "follow", short: "f", summary: "Go on with what it writes, until the run is over" },
    { name: "tail", short: "n", value: "LINES", summary: "Of what it wrote only the last lines" },
  ],
  details:
    `<mount> is PID-SERVER as in /mnt/mcp, or a server's name: then of the newest run that has it. Lines
that the server wrote to stdout and that are no messages begin with [stdout], notes of rnix, such as
why it could not be mounted, with [rnix]. With -f, --json gives one line each; Ctrl-C leaves the run
alone (exit 130).`,
  async run(invocation, context) {
    // Errors name the whole path.
    const mount = (invocation.words[0] ?? "").replace(/^\/mnt\/mcp\//, "");
    const isFollowed = hasSwitch(invocation, "follow");
    if (context.json && !isFollowed) return await collected(mount, linesOf(invocation), context);
    const stop = new AbortController();
    let left: EndSignal | undefined;
    const forget = isFollowed
      ? LEAVING.map(([heard, signal]) =>
        context.world.onSignal(heard, () => {
          left = signal;
          stop.abort();
        })
      )
      : [];
    let count: number;
    try {
      const system = await context.system();
      const reading = { follow: isFollowed, lines: linesOf(invocation), signal: stop.signal };
      count = await print(system.mountLogs(mount, reading), context);
    } finally {
      for (const each of forget) each();
    }
    if (left !== undefined) return { ...leftOutcome(pidIn(mount), left), streamed: context.json };
    if (count === 0 && !context.json && context.loudness !== "quiet") {
      context.world.stderr.write(`${plainText(mount)} wrote nothing to stderr\n`);
    }
    return { exitCode: 0, streamed: true };
  },
};

function linesOf(invocation: Invocation): number | undefined {
  const text = valueOf(invocation, "tail");
  return text === undefined ? undefined : wholeNumber("--tail", text, 0);
}

async function collected(
  mount: string,
  wanted: number | undefined,
  context: Context,
): Promise<Outcome> {
  const system = await context.system();
  const lines: LogLine[] = [];
  for await (const line of system.mountLogs(mount, { lines: wanted })) lines.push(line);
  return { exitCode: 0, data: { lines } };
}

/** Gives how many lines there were. */
async function print(lines: AsyncIterable<LogLine>, context: Context): Promise<number> {
  const { stdout } = context.world;
  let count = 0;
  for await (const line of lines) {
    count += 1;
    stdout.write(`${context.json ? jsonText(line) : textOf(line, stdout.isTerminal)}\n`);
    await stdout.flush();
  }
  return count;
}

function textOf({ source, text }: LogLine, isTerminal: boolean): string {
  return `[${source}] ${isTerminal ? plainText(text) : text}`;
}

function pidIn(mount: string): string | undefined {
  return /^(\d+)-/.exec(mount)?.[1];
}
