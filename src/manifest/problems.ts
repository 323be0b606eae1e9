/**
 * The mistakes of a file, gathered, so that all are told at once.
 *
 * They travel as the `cause` of one INVALID `SysError`; a command that prints JSON gets them back with `problemsOf`.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";

/** One mistake and its place. */
export interface Problem {
  /** As shown to the user. */
  file: string;
  /** From 1. */
  line: number;
  /** From 1, in UTF-16 units. */
  column: number;
  message: string;
}

/** A place in a file, both from 1. */
export interface Position {
  line: number;
  column: number;
}

/** Keys and indices from the top of a file to a value. */
export type KeyPath = readonly PropertyKey[];

export const FILE_START: Position = { line: 1, column: 1 };

/** `file:line:column: message`, as editors and terminals understand it. */
export function formatProblem(problem: Problem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}

/** More mistakes of one file are counted and not told. */
export const PROBLEMS_MAX = 100;

/** Mistakes found so far. */
export class Problems {
  readonly #found: Problem[] = [];
  #count = 0;

  /** `position` may be a function, where finding it takes a search: it is called only for a mistake that will be told. */
  add(file: string, position: Position | (() => Position), message: string): void {
    this.#count += 1;
    if (this.#found.length >= PROBLEMS_MAX) return;
    const { line, column } = typeof position === "function" ? position() : position;
    this.#found.push({ file, line, column, message });
  }

  /** Mistakes that were found before, each with its file. */
  addAll(problems: readonly Problem[]): void {
    for (const { file, line, column, message } of problems) {
      this.add(file, { line, column }, message);
    }
  }

  /** All of them, told or not. */
  get count(): number {
    return this.#count;
  }

  /** In the order of the file. */
  get list(): Problem[] {
    return this.#found.toSorted((a, b) =>
      a.file.localeCompare(b.file) || a.line - b.line || a.column - b.column
    );
  }

  /** One error with all of them: exit 2. */
  toError(): SysError {
    const lines = this.list.map(formatProblem);
    const untold = this.#count - lines.length;
    if (untold > 0) lines.push(`and ${untold} more`);
    const message = lines.length === 1
      ? lines.join("")
      : [`${this.#count} mistakes`, ...lines.map((line) => `  ${line}`)].join("\n");
    return new SysError("INVALID", message, { exitCode: EXIT_USAGE, cause: this });
  }
}

/** The mistakes an error carries; none for any other error. */
export function problemsOf(error: Error): Problem[] {
  return error.cause instanceof Problems ? error.cause.list : [];
}
