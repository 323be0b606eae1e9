/** Finds a server's program as a shell would, but in the PATH that the server gets, and says where it looked. */
import { SysError } from "./errors.ts";
import { dirname, join, resolve } from "./posix_path.ts";

/** What of a file matters here; undefined when there is none. */
export type ProgramFacts = { isFile: boolean; mode: number | null } | undefined;

/** The file at `path`, links followed. */
export async function programFacts(path: string): Promise<ProgramFacts> {
  try {
    const info = await Deno.stat(path);
    return { isFile: info.isFile, mode: info.mode };
  } catch {
    return undefined;
  }
}

/**
 * Absolute path of `command`. With a `/` it is taken from `cwd`, else from the folders of `path`.
 *
 * Throws NOT_FOUND with the folders searched (and a hint when a whole command line was given as one string), PERMISSION when it may not be run.
 */
export async function findCommand(
  command: string,
  options: {
    cwd: string;
    path: string | undefined;
    facts?: (path: string) => Promise<ProgramFacts>;
  },
): Promise<string> {
  const { cwd, path, facts = programFacts } = options;
  const absolute = (place: string) => place.startsWith("/") ? place : join(cwd, place);
  const candidates = command.includes("/")
    ? [absolute(command)]
    : (path ?? "").split(":").map((folder) => join(absolute(folder), command));
  let refused: string | undefined;
  let isOther = false;
  for (const candidate of command === "" ? [] : candidates) {
    const found = await facts(candidate);
    isOther ||= found?.isFile === false;
    if (found === undefined || !found.isFile) continue;
    if (found.mode === null || (found.mode & 0o111) !== 0) return candidate;
    refused ??= candidate;
  }
  if (refused !== undefined) {
    throw new SysError("PERMISSION", `Cannot run "${refused}": the file is not executable`, {
      hint: `chmod +x ${refused}, or name its interpreter as the command`,
    });
  }
  if (isOther && command.includes("/")) {
    throw new SysError("NOT_FOUND", `Command ${JSON.stringify(command)} is no file`, {
      hint: "Name a program: this is a folder or a device",
    });
  }
  throw new SysError("NOT_FOUND", notFoundMessage(command, path), { hint: hintFor(command) });
}

/** A link that leads to another name in its own folder (`python` to `python3`) says little: that name. Else the path itself. */
export async function nameBeside(path: string): Promise<string> {
  try {
    const target = resolve(dirname(path), await Deno.readLink(path));
    return dirname(target) === dirname(path) ? target : path;
  } catch {
    return path;
  }
}

function notFoundMessage(command: string, path: string | undefined): string {
  const quoted = JSON.stringify(command);
  if (command.includes("/")) return `Command ${quoted} does not exist`;
  if (path === undefined || path === "") return `Command ${quoted} not found: PATH is not set`;
  return `Command ${quoted} not found in PATH (searched ${
    [...new Set(path.split(":"))].join(", ")
  })`;
}

function hintFor(command: string): string {
  const words = command.trim().split(/\s+/);
  const [program = "", ...args] = words;
  if (args.length > 0) {
    return `A command is one program, not a shell line: write command: ${program} and args: ${
      JSON.stringify(args)
    }`;
  }
  return "Install it, or give its whole path; PATH is that of the shell that started the run";
}
