/**
 * What a command is: one object, from which parsing, help, completions and the README's table come.
 *
 * A command never prints its result: it returns an `Outcome`, and one place turns that into text or into the JSON envelope.
 */
import type { Clock } from "../base/clock.ts";
import type { ErrorBody, System } from "../base/operations.ts";
import type { Upkeep } from "../base/upkeep.ts";
import type { DaemonStatus } from "../base/wire.ts";
import type { Input } from "./input.ts";
import type { Output } from "./output.ts";
import type { Style } from "./style.ts";

export interface Flag {
  /** Without dashes. */
  name: string;
  /** One letter. */
  short?: string;
  /** What its value is called; a flag without one is a switch. */
  value?: string;
  /** May be given several times. */
  repeated?: true;
  /** Values that may stand behind a dash alone, as in `kill -9`. */
  dashed?: RegExp;
  /** The values that it can have, for completions. */
  choices?: readonly string[];
  summary: string;
}

/** What words stand for things that completions can list. */
export type WordKind =
  | "agent"
  | "server"
  | "run"
  | "live-run"
  | "mount"
  | "command"
  | "shell"
  | "file";

export interface Positional {
  name: string;
  kind?: WordKind;
  optional?: true;
  /** Takes all that follows. */
  rest?: true;
}

export interface Command {
  /** One or two words. */
  name: string;
  /** One line. */
  summary: string;
  positionals: readonly Positional[];
  flags: readonly Flag[];
  /** Not for people: left out of help and tables. */
  hidden?: true;
  /** More lines of help, without the final line break. */
  details?: string;
  run(invocation: Invocation, context: Context): Promise<Outcome>;
}

/** A parsed command line, global flags aside. */
export interface Invocation {
  /** Positional arguments in order. */
  words: string[];
  /** Values by flag name; a switch that was given has the value "". */
  values: Map<string, string[]>;
  /** How many of the words stood before `--`, where there was one. */
  wordsBeforeDashes?: number;
}

/** What a command ends with. */
export interface Outcome {
  exitCode: number;
  /** `data` of the envelope. */
  data?: object;
  /** Printed to stdout instead of `data` where there is no `--json`, with a line break added where it lacks one. */
  text?: string;
  /** Whether `text` was written by models, servers or files, and must be made fit for a terminal. */
  untrusted?: boolean;
  /** Lines for stderr after the text, with neither `--json` nor `-q`. */
  remarks?: string[];
  /** Why the exit code isn't 0. */
  error?: ErrorBody;
  /** The remarks say it already: without `--json` and `-q` the error isn't printed. */
  errorTold?: true;
  /** The error stands on stderr already, also with `-q`. */
  errorPrinted?: true;
  /** Lines for stderr after the error, with neither `--json` nor `-q`: what to do next. */
  footer?: string[];
  /** The command has written its own results (`--stream`); nothing is added. */
  streamed?: boolean;
}

/** The running system, as long as it is needed. */
export interface Connection {
  system: System;
  close(): Promise<void>;
}

/** The daemon of a state folder, seen from a command. */
export interface DaemonControl {
  /** Undefined when none runs. */
  status(): Promise<DaemonStatus | undefined>;
  /** Starts it if need be. */
  start(): Promise<DaemonStatus>;
  /** Suspends what is at work and ends it; how many runs that were, undefined when none ran. */
  stop(): Promise<{ runs: number } | undefined>;
  /** Is the daemon, until it ends. Gives the exit code. */
  run(): Promise<number>;
}

/** The signals that a command may want to hear of. */
export type HeardSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** All that the command line knows of the world outside; handed in by `main.ts` and by tests. */
export interface World {
  args: readonly string[];
  env: { [name: string]: string };
  cwd: string;
  platform: string;
  /** Name and version of the runtime. */
  runtime: string;
  /** Of the user; 0 where the platform has none. */
  uid: number;
  stdout: Output;
  stderr: Output;
  stdin: Input;
  /** Width of the terminal in columns; undefined where there is none. */
  columns(): number | undefined;
  /** Of the terminal, in columns and rows; undefined where there is none. */
  size(): { columns: number; rows: number } | undefined;
  clock: Clock;
  /** Hears a signal until the returned function is called; meanwhile it doesn't end the process. */
  onSignal(signal: HeardSignal, heard: () => void): () => void;
  /** Loads and starts the running system; only commands that need it call this. */
  connect(env: { [name: string]: string }): Promise<Connection>;
  daemon(env: { [name: string]: string }): DaemonControl;
  /** What keeps the state folder in order; needs no daemon. */
  upkeep(env: { [name: string]: string }): Promise<Upkeep>;
  /** Whether an agent or its tools started this rnix: its own environment or an ancestor's carries the mark, or the daemon is an ancestor. Takes a few milliseconds. */
  insideRun(env: { [name: string]: string }): Promise<boolean>;
}

/** How much is told on stderr. */
export type Loudness = "quiet" | "essential" | "full" | "verbose";

/** What a command gets to work with. */
export interface Context {
  world: World;
  /** The environment, with `--home` as `RNIX_HOME`. */
  env: { [name: string]: string };
  json: boolean;
  quiet: boolean;
  loudness: Loudness;
  /** Style of stderr. */
  style: Style;
  /** The system, connected on first use and closed when the command is over. */
  system(): Promise<System>;
}
