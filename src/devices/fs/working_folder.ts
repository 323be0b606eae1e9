/**
 * What a file tool may touch: regular files and folders below the run's working folder, wherever links on the way lead.
 *
 * Invariants
 * 1. A path is taken only if the place that it really names, every link on the way followed, lies in one of the roots. `..`, absolute paths, `/proc/self/root` and links are all judged by where they end.
 * 2. Only regular files and folders are opened: a device, a pipe or a socket could block or act.
 * 3. A file is used only if it is still the one that was judged once it is open.
 * It holds against every path that a model can think of. It is no wall against another process of the same user that changes the folder meanwhile, which could read the file itself.
 */
import { disk } from "../../base/disk.ts";
import { isAbsolute, join, relative } from "../../base/posix_path.ts";
import { SysError } from "../../base/errors.ts";

/** Where a path leads. */
export interface Located {
  /** Absolute, without links. */
  path: string;
  /** As seen from the working folder. */
  shown: string;
  /** Undefined where nothing is yet; its folder is there then. */
  kind: "file" | "folder" | undefined;
}

/** Longest path that is looked at, UTF-16 units. */
const PATH_CHARS_MAX = 4096;
/** Links followed for one path, as the kernel has it. */
const LINKS_MAX = 40;
const FOLDER_MODE = 0o755;

export class WorkingFolder {
  /** Absolute, without links. */
  readonly root: string;
  readonly #roots: readonly string[];

  private constructor(roots: readonly string[]) {
    this.#roots = roots;
    this.root = roots[0] ?? "/";
  }

  /** `folder` and others that are open too, absolute. Rejects with NOT_FOUND when one isn't there. */
  static async open(folder: string, others: readonly string[] = []): Promise<WorkingFolder> {
    const roots = await Promise.all([folder, ...others].map(async (path) => {
      try {
        return await Deno.realPath(path);
      } catch (cause) {
        throw new SysError("NOT_FOUND", `The folder "${path}" can't be opened`, { cause });
      }
    }));
    return new WorkingFolder(roots);
  }

  /** Where `path` (from the working folder, or absolute) leads. Rejects with PERMISSION outside the roots and for what is neither file nor folder, NOT_FOUND where its folder isn't there, INVALID for what is no path. */
  locate(path: string): Promise<Located> {
    return this.#locate(path, false);
  }

  /** The same, with the folders that are missing on its way made; none is made outside the roots. */
  locateMaking(path: string): Promise<Located> {
    return this.#locate(path, true);
  }

  async #locate(path: string, making: boolean): Promise<Located> {
    if (path.includes("\0")) throw refused("INVALID", path, "A path can't hold a NUL character");
    if (path.length > PATH_CHARS_MAX) throw refused("INVALID", path, "The path is too long");
    if (path === "") throw refused("INVALID", path, "The path is empty");
    const real = await this.#follow(isAbsolute(path) ? path : `${this.root}/${path}`, path, making);
    if (!this.#isInside(real)) {
      throw refused("PERMISSION", path, `It leads out of the working folder`);
    }
    return { path: real, shown: this.show(real), kind: await kindOf(real, path) };
  }

  /** The same for what must be there. Rejects with NOT_FOUND where nothing is. */
  async locateExisting(path: string, kind: "file" | "folder"): Promise<Located> {
    const located = await this.locate(path);
    if (located.kind === undefined) throw refused("NOT_FOUND", path, "There is no such file");
    if (located.kind !== kind) {
      throw refused("INVALID", path, kind === "file" ? "It is a folder" : "It is no folder");
    }
    return located;
  }

  /** An absolute path as the model is shown it. */
  show(path: string): string {
    const inside = path === this.root ? "." : relative(this.root, path);
    return inside.startsWith("..") ? path : inside;
  }

  #isInside(real: string): boolean {
    return this.#roots.some((root) =>
      real === root || real.startsWith(root === "/" ? "/" : `${root}/`)
    );
  }

  /** Every link on the way followed, name by name, each looked at once; what isn't there yet may only be the last name, unless folders are made. */
  async #follow(path: string, given: string, making: boolean): Promise<string> {
    let real = "/";
    const names = path.split("/").filter((name) => name !== "" && name !== ".");
    let links = 0;
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      if (name === "..") {
        real = join(real, "..");
        continue;
      }
      const next = join(real, name);
      const facts = await lstat(next, given);
      if (facts === undefined) {
        // Of what isn't there nothing is known, `..` behind it included.
        if (names.length === 0) return next;
        if (!making) {
          throw refused("NOT_FOUND", given, `There is no folder "${name}" on its way`);
        }
        if (!this.#isInside(next)) {
          throw refused("PERMISSION", given, "It leads out of the working folder");
        }
        await makeFolder(next, given);
        real = next;
        continue;
      }
      if (!facts.isSymlink) {
        real = next;
        continue;
      }
      links += 1;
      if (links > LINKS_MAX) throw refused("INVALID", given, "It has too many links on its way");
      const target = await Deno.readLink(next).catch((cause) => {
        throw refused("PERMISSION", given, "A link on its way can't be read", cause);
      });
      if (isAbsolute(target)) real = "/";
      names.unshift(...target.split("/").filter((each) => each !== "" && each !== "."));
    }
    return real;
  }
}

async function lstat(path: string, given: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.lstat(path);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    if (thrown instanceof Deno.errors.NotADirectory) {
      throw refused("NOT_FOUND", given, "A part of it is no folder");
    }
    throw refused("PERMISSION", given, "It can't be looked at", thrown);
  }
}

async function makeFolder(path: string, given: string): Promise<void> {
  try {
    await disk.makeFolder(path, FOLDER_MODE);
  } catch (cause) {
    throw refused("PERMISSION", given, "A folder on its way can't be made", cause);
  }
}

async function kindOf(real: string, given: string): Promise<"file" | "folder" | undefined> {
  const facts = await lstat(real, given);
  if (facts === undefined) return undefined;
  if (facts.isFile) return "file";
  if (facts.isDirectory) return "folder";
  throw refused("PERMISSION", given, "It is neither a file nor a folder");
}

/** Opens a located file to read it. Rejects with PERMISSION where it is no longer the file that was judged. */
export async function openLocated({ path, shown }: Located): Promise<Deno.FsFile> {
  const judged = await Deno.lstat(path);
  if (!judged.isFile) throw refused("PERMISSION", shown, "It is no longer a file");
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path, { read: true });
  } catch (cause) {
    throw refused("PERMISSION", shown, "It can't be opened", cause);
  }
  const opened = await file.stat();
  if (opened.isFile && opened.ino === judged.ino && opened.dev === judged.dev) return file;
  file.close();
  throw refused("PERMISSION", shown, "It was replaced while it was opened");
}

/** An error about a path that a model gave. */
export function refused(
  code: "INVALID" | "PERMISSION" | "NOT_FOUND" | "RESOURCE_EXHAUSTED",
  path: string,
  why: string,
  cause?: unknown,
): SysError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new SysError(code, `Cannot use "${shown.toWellFormed()}": ${why}`, { cause });
}
