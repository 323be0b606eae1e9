/**
 * Keys of the manifest that are designed and don't work yet. Each is refused by name: a manifest never promises what would not happen.
 *
 * To build one, take its line out here and add it to the schema.
 */
import type { KeyPath } from "./problems.ts";
import { TRANSPORTS_NOT_BUILT } from "./manifest_schema.ts";

interface NotBuilt {
  /** `*` stands for any key. */
  path: readonly string[];
  /** What to do instead. */
  instead: string;
}

const REMOVE = "remove it";

const NOT_BUILT: readonly NotBuilt[] = [
  { path: ["kind"], instead: "remove it, every manifest is an agent" },
  { path: ["skills"], instead: REMOVE },
  { path: ["tools"], instead: "remove it, tools come from mcp.servers" },
  { path: ["agents"], instead: REMOVE },
  {
    path: ["approval"],
    instead: "remove it, and limit the tools with mcp.servers.<name>.tools.allow",
  },
  { path: ["mcp", "servers", "*", "url"], instead: 'use a "command"' },
  { path: ["mcp", "servers", "*", "headers"], instead: 'use a "command" with "env"' },
  { path: ["mcp", "servers", "*", "share"], instead: "remove it, every run has its own servers" },
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
  const mcp = file["mcp"];
  if (Array.isArray(mcp)) {
    const message =
      '"mcp" as a list of names is not built yet; write the servers under mcp.servers';
    refusals.push({ path: ["mcp"], message });
    delete file["mcp"];
  }
  for (const { path, instead } of NOT_BUILT) {
    for (const [place, holder] of holders(file, path.slice(0, -1))) {
      const key = path.at(-1) ?? "";
      if (!Object.hasOwn(holder, key)) continue;
      refusals.push({ path: [...place, key], message: `"${key}" is not built yet; ${instead}` });
      delete holder[key];
      if (key === "url") needsNoCommand(holder);
    }
  }
  for (const [, server] of holders(file, ["mcp", "servers", "*"])) {
    if (TRANSPORTS_NOT_BUILT.some((name) => name === server["transport_type"])) {
      needsNoCommand(server);
    }
  }
  return refusals;
}

/** Whether a value is a mapping. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function needsNoCommand(server: Record<string, unknown>): void {
  server["command"] ??= "none";
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
