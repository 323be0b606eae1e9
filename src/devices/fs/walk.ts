/** Files below a folder, breadth first, with a bound on how much is looked at; links are not followed and git's own folder is left out. */
import { SysError } from "../../base/errors.ts";
import { join } from "../../base/posix_path.ts";

/** Names that are looked at in one walk. */
export const WALKED_MAX = 200_000;
/** Left out wherever they are. */
const SKIPPED: ReadonlySet<string> = new Set([".git"]);

export interface Walk {
  /** Absolute, without links. */
  root: string;
  signal: AbortSignal;
  /** Set where the bound was met: what was found isn't all. */
  cut?: boolean;
  /** Folders that couldn't be read: what is in them wasn't looked at. */
  unread?: number;
}

/** Absolute paths of regular files. A folder that can't be read is passed over and counted; what is gone meanwhile is not. Rejects with PERMISSION where nothing can be looked at. */
export async function* filesBelow(walk: Walk): AsyncGenerator<string> {
  const folders = [walk.root];
  let walked = 0;
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const names = await entriesOf(folder);
    if (names === undefined) {
      if (folder === walk.root) throw new SysError("PERMISSION", "The folder can't be read");
      walk.unread = (walk.unread ?? 0) + 1;
      continue;
    }
    for (const { name, isFile, isDirectory } of names) {
      if (walk.signal.aborted) return;
      walked += 1;
      if (walked > WALKED_MAX) {
        walk.cut = true;
        return;
      }
      if (isFile) yield join(folder, name);
      else if (isDirectory && !SKIPPED.has(name)) folders.push(join(folder, name));
    }
  }
}

/** Undefined where it can't be read. */
async function entriesOf(folder: string): Promise<Deno.DirEntry[] | undefined> {
  const entries: Deno.DirEntry[] = [];
  try {
    for await (const entry of Deno.readDir(folder)) entries.push(entry);
  } catch (thrown) {
    return thrown instanceof Deno.errors.NotFound ? [] : undefined;
  }
  return entries.sort((a, b) => a.name < b.name ? -1 : 1);
}
