/**
 * Parses a command line by the command table: global flags anywhere, `--flag value` and `--flag=value`, joined short switches, `--` before words that begin with a dash.
 *
 * Every mistake is a usage error (exit 2) that names the nearest thing that exists.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { nearest } from "../base/nearest.ts";
import type { Command, Flag, Invocation } from "./command.ts";

/** Flags that every command takes, before or after its name. */
export const GLOBAL_FLAGS: readonly Flag[] = [
  { name: "json", summary: "One JSON envelope on stdout" },
  { name: "quiet", short: "q", summary: "Results and errors only; `ps -q` prints pids" },
  { name: "verbose", short: "v", summary: "Everything that happens" },
  { name: "home", value: "DIR", summary: "Keep configuration and state in DIR" },
  { name: "help", short: "h", summary: "Help for a command" },
];

export interface Globals {
  json: boolean;
  quiet: boolean;
  verbose: boolean;
  home?: string;
  help: boolean;
}

export interface Parsed {
  /** Absent when only global flags were given. */
  command?: Command;
  invocation: Invocation;
  globals: Globals;
}

/** A mistake in the command line. */
export function usageError(message: string, hint: string): SysError {
  return new SysError("INVALID", message, { hint, exitCode: EXIT_USAGE });
}

/** Whether the envelope was asked for, also where the rest of the line makes no sense. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).includes("--json");
}

/** Throws a usage error. */
export function parseArguments(args: readonly string[], commands: readonly Command[]): Parsed {
  const parser = new Parser(args, commands);
  return parser.parse();
}

class Parser {
  readonly #args: readonly string[];
  readonly #commands: readonly Command[];
  readonly #words: string[] = [];
  readonly #values = new Map<string, string[]>();
  #command: Command | undefined;
  #at = 0;
  #beforeDashes: number | undefined;

  constructor(args: readonly string[], commands: readonly Command[]) {
    this.#args = args;
    this.#commands = commands;
  }

  parse(): Parsed {
    while (this.#at < this.#args.length) {
      const arg = this.#args[this.#at++] ?? "";
      if (arg === "--") {
        this.#beforeDashes = this.#words.length;
        for (const word of this.#args.slice(this.#at)) this.#word(word);
        break;
      }
      if (arg.startsWith("--")) this.#long(arg);
      else if (arg.startsWith("-") && arg !== "-") this.#short(arg);
      else this.#word(arg);
    }
    const globals = this.#globals();
    if (this.#command === undefined) this.#refuseHalfCommand(globals);
    else if (!globals.help) checkWords(this.#command, this.#words);
    return {
      ...(this.#command === undefined ? {} : { command: this.#command }),
      invocation: {
        words: this.#words,
        values: this.#values,
        ...(this.#beforeDashes === undefined ? {} : { wordsBeforeDashes: this.#beforeDashes }),
      },
      globals,
    };
  }

  /** The first word, or the first two, name the command; where both do, as in `check mcp`, the two. */
  #word(word: string): void {
    const longer = this.#words.length > 0 || this.#beforeDashes !== undefined
      ? undefined
      : longerCommand(this.#command, word, this.#commands);
    if (longer !== undefined) {
      this.#command = longer;
      return;
    }
    this.#words.push(word);
    if (this.#command !== undefined) return;
    const name = this.#words.join(" ");
    this.#command = this.#commands.find((command) => command.name === name);
    if (this.#command !== undefined) {
      this.#words.length = 0;
      return;
    }
    if (this.#commands.some((command) => command.name.startsWith(`${name} `))) return;
    throw unknownCommand(name, this.#commands);
  }

  #refuseHalfCommand(globals: Globals): void {
    const group = this.#words.join(" ");
    if (group === "" || globals.help) return;
    throw usageError(
      `Command "${group}" needs a second word`,
      membersHint(membersOf(group, this.#commands)),
    );
  }

  #flags(): readonly Flag[] {
    return [...GLOBAL_FLAGS, ...(this.#command?.flags ?? [])];
  }

  #long(arg: string): void {
    const equals = arg.indexOf("=");
    const name = arg.slice(2, equals < 0 ? undefined : equals);
    const flag = this.#flags().find((each) => each.name === name) ?? this.#refuse(`--${name}`);
    this.#set(flag, `--${name}`, equals < 0 ? undefined : arg.slice(equals + 1));
  }

  /** `-a`, `-aq`, and `-m value` or `-mvalue` for a letter that takes one. */
  #short(arg: string): void {
    const dashed = this.#command?.flags.find((flag) => flag.dashed?.test(arg.slice(1)));
    if (dashed !== undefined) return this.#set(dashed, arg, arg.slice(1));
    for (let index = 1; index < arg.length; index++) {
      const letter = arg.charAt(index);
      const flag = this.#flags().find((each) => each.short === letter) ??
        this.#refuse(`-${letter}`);
      const rest = arg.slice(index + 1);
      if (flag.value !== undefined && rest !== "") return this.#set(flag, `-${letter}`, rest);
      this.#set(flag, `-${letter}`, undefined);
    }
  }

  #set(flag: Flag, shown: string, given: string | undefined): void {
    let value = given;
    if (flag.value === undefined) {
      if (given !== undefined) {
        throw usageError(`Flag "${shown}" takes no value, but got "${given}"`, `write ${shown}`);
      }
      value = "";
    } else if (value === undefined) {
      value = this.#args[this.#at++];
      if (value === undefined) {
        throw usageError(`Flag "${shown}" needs a value`, `write ${shown} ${flag.value}`);
      }
    }
    const values = this.#values.get(flag.name) ?? [];
    if (values.length > 0 && flag.value !== undefined && flag.repeated === undefined) {
      throw usageError(`Flag "${shown}" was given twice`, "give it once");
    }
    this.#values.set(flag.name, [...values, value ?? ""]);
  }

  #refuse(shown: string): never {
    const where = this.#command === undefined ? "rnix" : `rnix ${this.#command.name}`;
    const known = this.#flags().map((flag) => `--${flag.name}`);
    // The dashes are no letters that are right.
    const near = nearest(shown.slice(2), known.map((flag) => flag.slice(2)));
    const close = shown.startsWith("--") && near !== undefined ? `--${near}` : undefined;
    const elsewhere = this.#command === undefined &&
      this.#commands.some((each) => each.flags.some((flag) => `--${flag.name}` === shown));
    const hint = elsewhere
      ? "flags of a command go after its name"
      : close !== undefined
      ? `did you mean ${close}?`
      : this.#command?.positionals.some((each) => each.rest)
      ? `put -- before words that begin with a dash, or see ${where} --help`
      : `see ${where} --help`;
    throw usageError(`Unknown flag "${shown}" for "${where}"`, hint);
  }

  /** Takes the global flags out of the values. */
  #globals(): Globals {
    const taken = new Map(GLOBAL_FLAGS.map((flag) => {
      const values = this.#values.get(flag.name);
      this.#values.delete(flag.name);
      return [flag.name, values];
    }));
    const has = (name: string) => taken.get(name) !== undefined;
    if (has("quiet") && has("verbose")) {
      throw usageError(`Flags "-q" and "-v" exclude each other`, "give one of them");
    }
    const home = taken.get("home")?.[0];
    if (home === "") throw usageError(`Flag "--home" needs a folder`, "write --home DIR");
    return {
      json: has("json"),
      quiet: has("quiet"),
      verbose: has("verbose"),
      help: has("help"),
      ...(home === undefined ? {} : { home }),
    };
  }
}

/** The command of two words that begins with one of a single word. */
export function longerCommand(
  command: Command | undefined,
  word: string,
  commands: readonly Command[],
): Command | undefined {
  if (command === undefined) return undefined;
  return commands.find(({ name }) => name === `${command.name} ${word}`);
}

/** A mistake in a command's name; of one of two words, such as `mcp lst`, the second is judged. */
export function unknownCommand(name: string, commands: readonly Command[]): SysError {
  const [group = "", second = ""] = name.split(" ");
  const members = membersOf(group, commands);
  const isMember = second !== "" && members.length > 0;
  const close = isMember
    ? nearest(second, members.map((each) => each.slice(group.length + 1)))
    : nearest(name, commands.flatMap((each) => [each.name, each.name.split(" ")[0] ?? ""]));
  const shown = isMember ? `${group} ${close}` : close;
  const otherwise = isMember ? membersHint(members) : "see rnix --help";
  return usageError(
    `Unknown command "${name}"`,
    close === undefined ? otherwise : `did you mean rnix ${shown}?`,
  );
}

/** The commands of two words that begin with this one. */
function membersOf(group: string, commands: readonly Command[]): string[] {
  return commands.map((command) => command.name).filter((name) => name.startsWith(`${group} `));
}

function membersHint(members: readonly string[]): string {
  return `one of: ${members.map((name) => `rnix ${name}`).join(", ")}`;
}

function checkWords(command: Command, words: readonly string[]): void {
  const needed = command.positionals.filter((each) => each.optional === undefined);
  const missing = needed[words.length];
  if (missing !== undefined) {
    throw usageError(
      `Command "${command.name}" needs <${missing.name}>`,
      `see rnix ${command.name} --help`,
    );
  }
  if (command.positionals.some((each) => each.rest)) return;
  const extra = words[command.positionals.length];
  if (extra !== undefined) {
    throw usageError(
      `Command "${command.name}" doesn't take "${extra}"`,
      `see rnix ${command.name} --help`,
    );
  }
}
