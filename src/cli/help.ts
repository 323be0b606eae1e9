/** Help texts, made from the command table. */
import { GLOBAL_FLAGS } from "./arguments.ts";
import type { Command, Flag } from "./command.ts";
import { HELP_COLUMNS, rewrapped, wrapped } from "./wrap.ts";

/** `rnix run [flags] <manifest> [intent…]` without `rnix`. */
export function synopsis(command: Command): string {
  const words = command.positionals.map((each) => {
    const name = `${each.name}${each.rest ? "…" : ""}`;
    return each.optional ? `[${name}]` : `<${name}>`;
  });
  const flags = command.flags.length > 0 ? ["[flags]"] : [];
  return [command.name, ...flags, ...words].join(" ");
}

function rows(pairs: readonly (readonly [string, string])[]): string {
  const width = Math.max(...pairs.map(([left]) => left.length));
  const indent = " ".repeat(width + 4);
  return pairs.flatMap(([left, right]) => {
    const [first = "", ...more] = wrapped(right, HELP_COLUMNS - indent.length);
    return [`  ${left.padEnd(width)}  ${first}`, ...more.map((line) => indent + line)];
  }).join("\n");
}

function flagRow(flag: Flag): [string, string] {
  const short = flag.short === undefined ? "    " : `-${flag.short}, `;
  const value = flag.value === undefined ? "" : ` ${flag.value}`;
  return [`${short}--${flag.name}${value}`, flag.summary];
}

function shown(commands: readonly Command[]): readonly Command[] {
  return commands.filter(({ hidden }) => !hidden);
}

const EXIT_CODES = `Exit codes of run, resume, attach and wait: 0 completed, 1 failed,
2 usage or no such run, 3 a mount failed, 5 an outcome is unknown, 6 a limit is reached,
7 the journal is damaged, 8 the daemon can't be reached or was lost, 9 suspended otherwise,
128+n ended by signal n.`;

/** All commands. */
export function overview(commands: readonly Command[]): string {
  return [
    "rnix runs AI agents the way Unix runs programs.",
    "",
    "Usage: rnix [--json] [-q|-v] [--home DIR] <command>",
    "",
    "Commands:",
    rows(shown(commands).map((command) => [synopsis(command), command.summary])),
    "",
    "Flags of every command:",
    rows(GLOBAL_FLAGS.map(flagRow)),
    "",
    rewrapped(EXIT_CODES, HELP_COLUMNS),
    "",
  ].join("\n");
}

/** One command. */
export function commandHelp(command: Command): string {
  return [
    command.summary,
    "",
    `Usage: rnix ${synopsis(command)}`,
    ...detailsOf(command),
    ...(command.flags.length === 0 ? [] : ["", "Flags:", rows(command.flags.map(flagRow))]),
    "",
    "Flags of every command:",
    rows(GLOBAL_FLAGS.map(flagRow)),
    "",
  ].join("\n");
}

const RUN_NAMES = "<run> is a pid, a run id, or 4 or more characters that begin or end one.";

/** How a run is named stands first, in the same words for every command that takes one. */
function detailsOf({ positionals, details }: Command): string[] {
  const takesRun = positionals.some(({ name }) => name === "run");
  const text = [...(takesRun ? [RUN_NAMES] : []), ...(details === undefined ? [] : [details])];
  return text.length === 0 ? [] : ["", rewrapped(text.join(" "), HELP_COLUMNS)];
}

/** The commands that begin with a word, as `mcp`. */
export function groupHelp(group: string, commands: readonly Command[]): string {
  const members = shown(commands).filter((command) => command.name.startsWith(`${group} `));
  return [
    "Commands:",
    rows(members.map((command) => [synopsis(command), command.summary])),
    "",
  ].join("\n");
}

/** The table of commands in README.md, in Markdown. */
export function commandTable(commands: readonly Command[]): string {
  const lines = shown(commands).map((command) =>
    `| \`rnix ${synopsis(command)}\` | ${command.summary} |`
  );
  return ["| Command | |", "| --- | --- |", ...lines, ""].join("\n");
}
