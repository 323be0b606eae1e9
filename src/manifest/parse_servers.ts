/** `mcp.yaml` text to checked servers, or all its mistakes at once, each with line and column. */
import type { ServerConfig } from "./agent_manifest.ts";
import { KNOWN_KEYS, mcpSchema } from "./manifest_schema.ts";
import { isMapping, notBuiltKeys, takeOutOfServers } from "./not_built.ts";
import { FILE_START, type KeyPath, type Problems } from "./problems.ts";
import { type Add, addIssues, checkShape, describe } from "./schema_issues.ts";
import { toServer } from "./server_config.ts";
import { serverRules } from "./server_rules.ts";
import { readYaml } from "./yaml_source.ts";

/** How a file is named. */
export interface ParseServersOptions {
  /** In messages. */
  file: string;
  /** Absolute. */
  path: string;
}

/** Parses the file. Mistakes go to `problems`; then nothing is given. Never throws. */
export function parseServers(
  text: string,
  options: ParseServersOptions,
  problems: Problems,
): ServerConfig[] | undefined {
  const before = problems.count;
  const add: Add = (position, message) => problems.add(options.file, position, message);
  const source = readYaml(text);
  for (const { position, message } of source.mistakes) add(position, message);
  if (source.value === undefined) return undefined;
  if (source.value === null) return [];
  if (!isMapping(source.value)) {
    add(source.valueAt([]), `Expected a mapping with "servers", got ${describe(source.value)}`);
    return undefined;
  }
  const file = structuredClone(source.value);
  for (const { path, message } of takeOutOfServers(file)) add(() => source.keyAt(path), message);
  const parsed = checkShape(mcpSchema, file);
  if (parsed === undefined) {
    add(FILE_START, "So many mistakes that they can't be listed");
    return undefined;
  }
  if (!parsed.success) addIssues(parsed.error.issues, source, { add, keysAt });
  for (const { path, at, message } of serverRules(file["servers"], ["servers"])) {
    add(() => at === "key" ? source.keyAt(path) : source.valueAt(path), message);
  }
  if (!parsed.success || problems.count > before) return undefined;
  return Object.entries(parsed.data.servers ?? {}).map(([name, server]) =>
    toServer(name, server, options.path)
  );
}

/** Known keys at a path, for the nearest one: those of `mcp` in a manifest. */
function keysAt(path: KeyPath) {
  const general = ["mcp", ...path].map((key, index) => index === 2 ? "*" : key).join(".");
  return { known: KNOWN_KEYS[general] ?? [], others: notBuiltKeys(general) };
}
