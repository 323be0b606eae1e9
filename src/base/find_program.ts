/** Where a program is, as a shell would look for it. */
import { isAbsolute, join } from "node:path";
import type { Storage } from "./storage.ts";

const EXECUTABLE = 0o111;

/** Absolute path of the first executable file called `name` in the folders of a PATH; undefined when there is none. A link is taken for what it says. */
export async function findProgram(
  storage: Storage,
  name: string,
  path: string | undefined,
): Promise<string | undefined> {
  for (const folder of (path ?? "").split(":")) {
    if (!isAbsolute(folder)) continue;
    const candidate = join(folder, name);
    const facts = await storage.stat(candidate).catch(() => undefined);
    const executable = facts?.kind === "link" ||
      (facts?.kind === "file" && (facts.mode === undefined || (facts.mode & EXECUTABLE) !== 0));
    if (executable) return candidate;
  }
  return undefined;
}
