/**
 * From the MCP servers of other programs' configurations to entries of `mcp.yaml`.
 *
 * Known are JSON with `mcpServers` (Claude, Cursor and many more), `servers` (VS Code) and `context_servers` (Zed), and TOML with `[[mcp_servers]]` or `[mcp_servers.name]`. Every entry that is given would load; what can't be carried over is told in a note. Pure: nothing is read or written.
 */
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { serverSchema } from "../manifest_schema.ts";
import { isName } from "../names.ts";
import { checkShape } from "../schema_issues.ts";
import { serverRules } from "../server_rules.ts";
import { convertEntry } from "./entry.ts";
import { type ForeignFormat, formatOf, readForeign } from "./foreign_text.ts";
import type { VariableStyle } from "./variables.ts";

/** An entry of `mcp.yaml`. */
export interface NewServer {
  name: string;
  /** As under `servers.<name>`. */
  entry: JsonObject;
}

/** What to know of the conversion. */
export interface ImportNote {
  /** Its name in the other program. */
  server: string;
  /** A clause; never holds a value. */
  message: string;
}

export interface ConvertedServers {
  servers: NewServer[];
  /** Names, in the other program, of servers that can't be carried over at all; the notes say why. */
  skipped: string[];
  notes: ImportNote[];
}

export interface ConvertOptions {
  /** Told by the text itself where it isn't given. */
  format?: ForeignFormat;
  /** How the text is named in messages. */
  file: string;
}

/** A server as another program has it. */
interface ForeignServer {
  name: string;
  value: Json;
  style: VariableStyle;
}

/** Converts all servers of a text. Throws INVALID (exit 2) for a text that can't be read or has no servers. */
export async function convertServers(
  text: string,
  { format = formatOf(text), file }: ConvertOptions,
): Promise<ConvertedServers> {
  const found = findServers(await readForeign(text, { format, file }), format);
  if (found.length === 0) {
    throw new SysError("INVALID", `No MCP servers in "${file}"`, {
      exitCode: EXIT_USAGE,
      hint: "Known are mcpServers, servers and context_servers in JSON, mcp_servers in TOML",
    });
  }
  const converted: ConvertedServers = { servers: [], skipped: [], notes: [] };
  const taken = new Set<string>();
  for (const { name, value, style } of found) {
    const note = (message: string) => converted.notes.push({ server: name, message });
    const { entry, notes } = isJsonObject(value)
      ? convertEntry(value, style)
      : { entry: undefined, notes: ["it is no mapping; left out"] };
    notes.forEach(note);
    const faults = entry === undefined ? [] : faultsOf(entry);
    faults.forEach((fault) => note(`${fault}; left out`));
    if (entry === undefined || faults.length > 0) {
      converted.skipped.push(name);
      continue;
    }
    const own = freeName(name, taken);
    taken.add(own);
    if (own !== name) note(`its name is "${own}" here: lower-case letters, digits and -`);
    converted.servers.push({ name: own, entry });
  }
  return converted;
}

/** Everything in a file that is a list of servers. */
function findServers(root: JsonObject, format: ForeignFormat): ForeignServer[] {
  const inner = isJsonObject(root["mcp"]) ? root["mcp"] : {};
  const places: [Json | undefined, VariableStyle][] = [
    [root["mcpServers"], "plain and editor"],
    [root["servers"], "editor"],
    [inner["servers"], "editor"],
    [root["context_servers"], "none"],
    [root["mcp_servers"], Array.isArray(root["mcp_servers"]) ? "plain" : "none"],
  ];
  const found = places.flatMap(([value, style]) => serversIn(value, style));
  if (found.length > 0 || format === "toml") return found;
  // A part of a file, as documentation shows it.
  const isServer = (value: Json) =>
    isJsonObject(value) && ["command", "url", "serverUrl"].some((key) => Object.hasOwn(value, key));
  return Object.entries(root).filter(([, value]) => isServer(value))
    .map(([name, value]) => ({ name, value, style: "plain and editor" }));
}

function serversIn(value: Json | undefined, style: VariableStyle): ForeignServer[] {
  if (Array.isArray(value)) {
    return value.map((server, index) => ({ name: nameIn(server, index), value: server, style }));
  }
  if (!isJsonObject(value)) return [];
  return Object.entries(value).map(([name, server]) => ({ name, value: server, style }));
}

function nameIn(server: Json, index: number): string {
  const name = isJsonObject(server) ? server["name"] : undefined;
  return typeof name === "string" && name !== "" ? name : `server-${index + 1}`;
}

/** A name of rnix that no server has yet. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  const plain = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  const own = isName(name) ? name : plain.slice(0, 60) || "server";
  if (!taken.has(own)) return own;
  let number = 2;
  while (taken.has(`${own.slice(0, 60)}-${number}`)) number += 1;
  return `${own.slice(0, 60)}-${number}`;
}

/** What would keep the entry from loading. */
function faultsOf(entry: JsonObject): string[] {
  const parsed = checkShape(serverSchema, entry);
  const shape = parsed === undefined || parsed.success
    ? []
    : parsed.error.issues.map(({ path, message }) =>
      // Without what it got: that may be a secret.
      `${path.map(String).join(".")}: ${message.replace(/, got .*$/s, "")}`
    );
  const rules = serverRules({ server: entry }, []).map(({ message }) => message);
  return [...shape, ...rules];
}
