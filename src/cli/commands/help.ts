/** `rnix help`: about the table of commands, in which it stands itself. */
import { unknownCommand } from "../arguments.ts";
import type { Command, Outcome } from "../command.ts";
import { commandHelp, groupHelp, overview } from "../help.ts";

/** Gives the whole table. */
type AllCommands = () => Promise<readonly Command[]>;

export function helpCommand(commands: AllCommands): Command {
  return {
    name: "help",
    summary: "Help for a command",
    positionals: [{ name: "command", kind: "command", optional: true, rest: true }],
    flags: [],
    run: async (invocation) => helpFor(invocation.words.join(" "), await commands()),
  };
}

/** Of everything where `name` is empty. Throws a usage error where there is no such command. */
export function helpFor(name: string, commands: readonly Command[]): Outcome {
  const text = helpText(name, commands);
  return { exitCode: 0, data: { text }, text };
}

function helpText(name: string, commands: readonly Command[]): string {
  if (name === "") return overview(commands);
  const command = commands.find((each) => each.name === name);
  if (command !== undefined) return commandHelp(command);
  if (commands.some((each) => each.name.startsWith(`${name} `))) return groupHelp(name, commands);
  throw unknownCommand(name, commands);
}
