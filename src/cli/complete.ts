/**
 * What could stand at the cursor of a half-written command line, from the command table; names of agents, runs and mounts are asked for only where one can stand.
 *
 * The scripts of all shells ask this one function, so they say the same.
 */
import { GLOBAL_FLAGS, longerCommand } from "./arguments.ts";
import type { Command, Flag, WordKind } from "./command.ts";

export interface Candidate {
  word: string;
  /** A few words for shells that show them. */
  about: string;
}

export interface Completion {
  candidates: Candidate[];
  /** Whether a file can stand there too. */
  files: boolean;
}

/** Things that have names. Rejections count as none. */
export type ListNames = (kind: WordKind) => Promise<Candidate[]>;

const NOTHING: Completion = { candidates: [], files: false };

/** `words` are those after `rnix`, the last one being written, maybe empty. */
export async function complete(
  words: readonly string[],
  commands: readonly Command[],
  names: ListNames,
): Promise<Completion> {
  const current = words.at(-1) ?? "";
  const line = readLine(unsplit(words.slice(0, -1)), commands);
  const made = await candidatesFor(line, current, commands, names);
  const candidates = made.candidates.filter(({ word }) => word.startsWith(current));
  return { candidates, files: made.files };
}

/** What is known of the words before the one being written. */
interface Line {
  /** Words that name no complete command yet. */
  begun: string[];
  command: Command | undefined;
  /** Positional words so far. */
  words: string[];
  /** The flag whose value is due. */
  due: Flag | undefined;
  /** After `--`. */
  wordsOnly: boolean;
}

/** bash breaks `--flag=value` into three words. */
function unsplit(words: readonly string[]): string[] {
  return words.filter((word, index) => word !== "=" || !(words[index - 1] ?? "").startsWith("--"));
}

function readLine(words: readonly string[], commands: readonly Command[]): Line {
  const line: Line = {
    begun: [],
    command: undefined,
    words: [],
    due: undefined,
    wordsOnly: false,
  };
  for (const word of words) {
    if (line.due !== undefined) line.due = undefined;
    else if (line.wordsOnly || !word.startsWith("-") || word === "-") {
      takeWord(line, word, commands);
    } else if (word === "--") line.wordsOnly = true;
    else if (!word.includes("=")) line.due = flagDue(word, line.command);
  }
  return line;
}

function takeWord(line: Line, word: string, commands: readonly Command[]): void {
  const longer = line.words.length > 0 || line.wordsOnly
    ? undefined
    : longerCommand(line.command, word, commands);
  if (longer !== undefined) {
    line.command = longer;
    return;
  }
  if (line.command !== undefined) {
    line.words.push(word);
    return;
  }
  line.begun.push(word);
  const name = line.begun.join(" ");
  line.command = commands.find((each) => each.name === name);
}

function flagsOf(command: Command | undefined): readonly Flag[] {
  return [...command?.flags ?? [], ...GLOBAL_FLAGS];
}

/** The flag that still wants a value after this word: of joined letters the last one. */
function flagDue(word: string, command: Command | undefined): Flag | undefined {
  const flag = flagsOf(command).find(({ name, short }) =>
    word.startsWith("--") ? word === `--${name}` : short !== undefined && word.endsWith(short)
  );
  return flag?.value === undefined ? undefined : flag;
}

async function candidatesFor(
  line: Line,
  current: string,
  commands: readonly Command[],
  names: ListNames,
): Promise<Completion> {
  // In bash the equals sign is the word being written, or the one before it.
  if (line.due !== undefined && current === "=") return NOTHING;
  if (line.due !== undefined) return valuesOf(line.due, "");
  const [flagName, ...value] = current.split("=");
  if (current.startsWith("--") && value.length > 0 && !line.wordsOnly) {
    const flag = flagsOf(line.command).find(({ name }) => `--${name}` === flagName);
    return flag === undefined ? NOTHING : valuesOf(flag, `${flagName}=`);
  }
  if (current.startsWith("-") && !line.wordsOnly) return flagNames(line.command);
  if (line.command === undefined) return commandWords(line.begun, commands);
  const last = line.command.positionals.at(-1);
  const position = line.command.positionals[line.words.length] ?? (last?.rest ? last : undefined);
  if (position?.kind === "command") return commandWords(line.words, commands);
  const longer = line.words.length > 0
    ? NOTHING
    : commandWords(line.command.name.split(" "), commands);
  if (position?.kind === undefined) return longer;
  if (position.kind === "file") return { candidates: [], files: true };
  const candidates = await names(position.kind).catch(() => []);
  return {
    candidates: [...longer.candidates, ...candidates],
    files: position.kind === "agent",
  };
}

function valuesOf(flag: Flag, before: string): Completion {
  const candidates = (flag.choices ?? []).map((choice) => ({
    word: before + choice,
    about: flag.name,
  }));
  return { candidates, files: flag.value === "DIR" };
}

function flagNames(command: Command | undefined): Completion {
  const candidates = flagsOf(command).map(({ name, summary }) => ({
    word: `--${name}`,
    about: summary,
  }));
  return { candidates, files: false };
}

/** The next word of every command that goes on from those begun. */
function commandWords(begun: readonly string[], commands: readonly Command[]): Completion {
  const found = new Map<string, string>();
  for (const { name, summary, hidden } of commands) {
    const words = name.split(" ");
    const next = words[begun.length];
    if (hidden || next === undefined || begun.some((word, index) => words[index] !== word)) {
      continue;
    }
    const isWhole = words.length === begun.length + 1;
    found.set(next, isWhole ? summary : found.get(next) ?? `rnix ${next} …`);
  }
  return {
    candidates: [...found].map(([word, about]) => ({ word, about })),
    files: false,
  };
}
