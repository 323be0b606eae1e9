/**
 * Whether a server's program could be started: it is where the code that starts it would look, may be run, and so may the interpreter that its first line names.
 *
 * A script whose interpreter is missing fails with the same "not found" as a missing program (an `npx` without `node` in the PATH, say), so both are told apart here.
 */
import { findCommand, nameBeside, programFacts } from "../base/command_path.ts";
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";

/** One thing that is wrong, and what to do about it. */
export interface Fault {
  /** A clause in lower case, such as `command 'x' not in PATH`. */
  message: string;
  hint?: string;
}

/** What to look for, and where. */
export interface ProgramSearch {
  storage: Storage;
  /** As it would be started, variables filled in. */
  command: string;
  /** As it is written in the configuration. */
  shown: string;
  /** Absolute: where a relative PATH starts from. */
  cwd: string;
  /** PATH that the server gets. */
  path: string | undefined;
}

/** Where the program is, or what is wrong. */
export type ProgramCheck = { path: string } | { fault: Fault };

/** More of a first line isn't read by the system either. */
const FIRST_LINE_BYTES = 256;

/** Looks for a program and its interpreter. */
export async function checkProgram(search: ProgramSearch): Promise<ProgramCheck> {
  const found = await find(search.command, search, (error) => ({
    message: error.code === "PERMISSION"
      ? `command '${search.shown}' may not be run`
      : search.command.includes("/")
      ? `command '${search.shown}' does not exist`
      : `command '${search.shown}' not in PATH`,
    hint: told(error),
  }));
  if (typeof found !== "string") return { fault: found };
  const interpreter = interpreterOf(await firstLine(search.storage, found));
  if (interpreter !== undefined) {
    const runner = await find(interpreter, search, (error) => ({
      message: `command '${search.shown}' needs '${interpreter}', which ${
        interpreter.includes("/") ? "does not exist" : "is not in PATH"
      }`,
      hint: `The first line of ${found} names it. ${told(error)}`,
    }));
    if (typeof runner !== "string") return { fault: runner };
  }
  return { path: await nameBeside(found) };
}

async function find(
  command: string,
  { cwd, path }: ProgramSearch,
  faultOf: (error: SysError) => Fault,
): Promise<string | Fault> {
  try {
    return await findCommand(command, { cwd, path, facts: programFacts });
  } catch (thrown) {
    if (thrown instanceof SysError) return faultOf(thrown);
    throw thrown;
  }
}

function told({ message, hint }: SysError): string {
  return hint === undefined ? message : `${message}. ${hint}`;
}

/** The first line of a file; empty where it can't be read. */
async function firstLine(storage: Storage, path: string): Promise<string> {
  try {
    const file = await storage.openToRead(path);
    try {
      const bytes = await file.readAt(0, FIRST_LINE_BYTES);
      return new TextDecoder().decode(bytes).split("\n")[0] ?? "";
    } finally {
      file.close();
    }
  } catch (thrown) {
    if (thrown instanceof SysError) return "";
    throw thrown;
  }
}

/** `node` of `#!/usr/bin/env node`, `/bin/sh` of `#!/bin/sh -e`; undefined for a program of another kind. */
export function interpreterOf(line: string): string | undefined {
  if (!line.startsWith("#!")) return undefined;
  const [program, ...args] = line.slice(2).trim().split(/\s+/);
  if (program === undefined || program === "") return undefined;
  if (!program.endsWith("/env")) return program;
  return args.find((arg) => !arg.startsWith("-") && !arg.includes("="));
}
