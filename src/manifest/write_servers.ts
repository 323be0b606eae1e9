/**
 * Adds servers to an `mcp.yaml`, whole or not at all: comments and other entries stay, and a name that is there is replaced only where that was asked for.
 *
 * A file with mistakes is never written over. What would be written is read back first: the new entries must be what was meant, the others what they were.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { canonicalJson, type JsonObject } from "../base/json.ts";
import { dirname } from "../base/posix_path.ts";
import { makeDurableFolder, writeStateFile } from "../base/state_file.ts";
import type { FileFacts, Storage } from "../base/storage.ts";
import type { ServerConfig } from "./agent_manifest.ts";
import { parseServers } from "./parse_servers.ts";
import { Problems } from "./problems.ts";
import { MANIFEST_BYTES_MAX, readSourceText } from "./source_text.ts";
import { withEntries } from "./yaml_edit.ts";

export interface WriteServersOptions {
  /** Absolute path of the `mcp.yaml`; made with its folder when it isn't there. */
  path: string;
  /** How it is named in messages. */
  shown: string;
  servers: readonly { name: string; entry: JsonObject }[];
  /** Entries of the same name are replaced. */
  overwrite: boolean;
  /** Nothing is written. */
  dryRun?: boolean;
}

/** What became of each server, by name. */
export interface WrittenServers {
  added: string[];
  replaced: string[];
  /** Left as they were: their names are taken. */
  kept: string[];
}

/** Durable when the promise resolves. Throws INVALID (exit 2) with the mistakes of the file as it is, or where it can't be replaced. */
export async function writeServers(
  storage: Storage,
  { path, shown, servers, overwrite, dryRun = false }: WriteServersOptions,
): Promise<WrittenServers> {
  const facts = await storage.stat(path);
  if (facts?.kind === "link") {
    throw new SysError("INVALID", `"${shown}" is a link, which would be replaced by a file`, {
      exitCode: EXIT_USAGE,
      hint: "Make it a file, or add the servers by hand",
    });
  }
  const text = await textOf(storage, path, shown);
  const before = read(text, { path, shown });
  const names = new Set(before.map(({ name }) => name));
  const taken = servers.filter(({ name }) => names.has(name)).map(({ name }) => name);
  const chosen = overwrite ? servers : servers.filter(({ name }) => !names.has(name));
  const written: WrittenServers = {
    added: chosen.filter(({ name }) => !names.has(name)).map(({ name }) => name),
    replaced: overwrite ? taken : [],
    kept: overwrite ? [] : taken,
  };
  if (chosen.length === 0) return written;
  const next = withEntries(text, "servers", chosen);
  requireSame(before, read(next, { path, shown }), chosen.map(({ name }) => name));
  if (!dryRun) await write(storage, path, { text: next, facts });
  return written;
}

async function textOf(storage: Storage, path: string, shown: string): Promise<string> {
  const source = await readSourceText(storage, path, MANIFEST_BYTES_MAX);
  if (source.kind === "text") return source.text;
  if (source.kind === "absent") return "";
  const problems = new Problems();
  problems.add(shown, source.position, source.message);
  throw problems.toError();
}

function read(text: string, { path, shown }: { path: string; shown: string }): ServerConfig[] {
  const problems = new Problems();
  const servers = parseServers(text, { file: shown, path }, problems);
  if (servers === undefined) throw problems.toError();
  return servers;
}

/** Throws INTERNAL where an edit did more, or less, than it was meant to. */
function requireSame(
  before: readonly ServerConfig[],
  after: readonly ServerConfig[],
  changed: readonly string[],
): void {
  const now = new Map(after.map((server) => [server.name, server]));
  const untouched = before.filter(({ name }) => !changed.includes(name));
  const isSame = changed.every((name) => now.has(name)) &&
    now.size === untouched.length + changed.length &&
    untouched.every((server) => {
      const other = now.get(server.name);
      return other !== undefined && textOfConfig(other) === textOfConfig(server);
    });
  if (!isSame) throw new SysError("INTERNAL", "Adding servers would have changed others");
}

function textOfConfig(server: ServerConfig): string {
  return canonicalJson(JSON.parse(JSON.stringify(server)));
}

async function write(
  storage: Storage,
  path: string,
  { text, facts }: { text: string; facts: FileFacts | undefined },
): Promise<void> {
  const folder = dirname(path);
  if (await storage.stat(folder) === undefined) await makeDurableFolder(storage, folder, 0o700);
  await writeStateFile(storage, path, text, facts?.mode ?? 0o600);
}
