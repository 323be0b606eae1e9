/**
 * Keys of the manifest that are designed and don't work yet. Each is refused by name: a manifest never promises what would not happen.
 *
 * To build one, take its line out here and add it to the schema.
 */
import type { KeyPath } from "./problems.ts";

interface NotBuilt {
  /** `*` stands for any key. */
  path: readonly string[];
  /** What to do instead. */
  instead: string;
}

const NOT_BUILT: readonly NotBuilt[] = [
  {
    path: ["approval"],
    instead: "remove it, and limit the tools with mcp.servers.<name>.tools.allow",
  },
];

/** A refused key and its sentence. */
export interface Refusal {
  path: KeyPath;
  message: string;
}

/** Names of refused keys in a mapping at a path in which servers are `*`. */
export function notBuiltKeys(path: string): string[] {
  const key = (entry: NotBuilt) => entry.path.at(-1) ?? "";
  return NOT_BUILT.filter((entry) => entry.path.slice(0, -1).join(".") === path).map(key);
}

/** Takes the refused keys out of a parsed file (changing it), so that they aren't told twice. */
export function takeOutNotBuilt(file: Record<string, unknown>): Refusal[] {
  const refusals: Refusal[] = [];
  for (const { path, instead } of NOT_BUILT) {
    for (const [place, holder] of holders(file, path.slice(0, -1))) {
      const key = path.at(-1) ?? "";
      if (!Object.hasOwn(holder, key)) continue;
      refusals.push({ path: [...place, key], message: `"${key}" is not built yet; ${instead}` });
      delete holder[key];
    }
  }
  return refusals;
}

/** The same for a file whose top is what `mcp` is in a manifest. */
export function takeOutOfServers(file: Record<string, unknown>): Refusal[] {
  return takeOutNotBuilt({ mcp: file }).map(({ path, message }) => ({
    path: path.slice(1),
    message,
  }));
}

/** Whether a value is a mapping. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Mappings at a path. */
function holders(
  file: Record<string, unknown>,
  path: readonly string[],
): [string[], Record<string, unknown>][] {
  let found: [string[], Record<string, unknown>][] = [[[], file]];
  for (const step of path) {
    found = found.flatMap(([place, holder]) =>
      Object.entries(holder).filter(([key]) => step === "*" || key === step)
        .flatMap(([key, value]): [string[], Record<string, unknown>][] =>
          isMapping(value) ? [[[...place, key], value]] : []
        )
    );
  }
  return found;
}
