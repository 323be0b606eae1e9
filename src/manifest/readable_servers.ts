/**
 * What can still be read of a manifest that has mistakes: the servers that are whole.
 *
 * A run never starts from this; a check uses it so that one mistake doesn't hide the next.
 */
import type { ServerConfig } from "./agent_manifest.ts";
import { serverSchema } from "./manifest_schema.ts";
import { isMapping, takeOutNotBuilt } from "./not_built.ts";
import { checkShape } from "./schema_issues.ts";
import { toServer } from "./server_config.ts";
import { serverRules } from "./server_rules.ts";
import type { ServerTable } from "./server_table.ts";
import { readYaml } from "./yaml_source.ts";

/** What of `mcp` can be read. */
export interface Readable {
  /** All servers that it names, in order. */
  names: string[];
  /** Those without mistakes. */
  configs: ServerConfig[];
}

/** Servers in a manifest's text; undefined where it has no `mcp`, or can't be read at all. */
export function readableServers(text: string, table: ServerTable): Readable | undefined {
  const { value } = readYaml(text);
  if (!isMapping(value)) return undefined;
  const file = structuredClone(value);
  takeOutNotBuilt(file);
  const { mcp } = file;
  if (Array.isArray(mcp)) {
    const names = mcp.filter((name: unknown) => typeof name === "string");
    return { names, configs: names.flatMap((name) => table.get(name)?.config ?? []) };
  }
  if (!isMapping(mcp)) return undefined;
  const servers = isMapping(mcp["servers"]) ? mcp["servers"] : {};
  return {
    names: Object.keys(servers),
    configs: Object.entries(servers).flatMap(([name, server]) =>
      readableServer(name, server) ?? []
    ),
  };
}

function readableServer(name: string, server: unknown): ServerConfig | undefined {
  if (serverRules({ [name]: server }, []).length > 0) return undefined;
  const parsed = checkShape(serverSchema, server);
  return parsed?.success ? toServer(name, parsed.data) : undefined;
}
