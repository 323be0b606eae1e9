/**
 * `mcp.yaml` of the user and of the project, as one table.
 *
 * The project's file is read without asking; only who takes a server from it needs consent (`trust.ts`): it decides what is started and where values are sent.
 */
import { join } from "node:path";
import { sha256Hex } from "../base/json.ts";
import { shownFrom, withTilde } from "../base/paths.ts";
import type { ServerConfig } from "./agent_manifest.ts";
import { parseServers } from "./parse_servers.ts";
import { placesIn } from "./places.ts";
import { Problems } from "./problems.ts";
import { findProjectFolder, type ProjectFile, type ProjectSearch } from "./project_folder.ts";
import { effectOf } from "./server_config.ts";
import { type KnownServer, ServerTable } from "./server_table.ts";
import { MANIFEST_BYTES_MAX, readSourceText } from "./source_text.ts";

export const SERVERS_FILE = "mcp.yaml";

/** Where the files may be. */
export interface ServerPlaces extends ProjectSearch {
  /** Folder of the user's configuration (`RnixPaths.config`). */
  config: string;
}

/** Reads both files. Their mistakes are in the table. */
export async function loadServers(places: ServerPlaces): Promise<ServerTable> {
  const problems = new Problems();
  const folder = await findProjectFolder(places);
  const user = await read(places, join(places.config, SERVERS_FILE), problems);
  const lookedInto = [withTilde(user.shown, places.home)];
  let project: ServersFile | undefined;
  if (folder?.refused !== undefined) {
    lookedInto.unshift(`nothing of the project: ${folder.refused}`);
  } else if (folder !== undefined) {
    project = await read(places, join(folder.path, SERVERS_FILE), problems);
    lookedInto.unshift(project.shown);
  }
  const entries = [...ofUser(user), ...project === undefined ? [] : ofProject(project)];
  return new ServerTable(entries, { lookedInto, problems: problems.list });
}

/** A file that was looked into. */
interface ServersFile {
  path: string;
  shown: string;
  text: string;
  servers: ServerConfig[];
}

async function read(
  { storage, cwd }: ServerPlaces,
  path: string,
  problems: Problems,
): Promise<ServersFile> {
  const file = shownFrom(cwd, path);
  const nothing = { path, shown: file, text: "", servers: [] };
  const source = await readSourceText(storage, path, MANIFEST_BYTES_MAX);
  if (source.kind === "absent") return { ...nothing, shown: `${file} (not there)` };
  if (source.kind === "unusable") {
    problems.add(file, source.position, source.message);
    return nothing;
  }
  const servers = parseServers(source.text, { file, path }, problems) ?? [];
  return { ...nothing, text: source.text, servers };
}

function ofUser(file: ServersFile): KnownServer[] {
  return file.servers.map((config) => ({ ...entryOf(file, config), scope: "user" }));
}

function ofProject(file: ServersFile): KnownServer[] {
  const { path, text, servers } = file;
  const projectFile: ProjectFile = {
    name: SERVERS_FILE,
    path,
    contentHash: sha256Hex(text),
    effects: servers.map((config) => `${config.name}: ${effectOf(config)}`),
  };
  return servers.map((config) => ({ ...entryOf(file, config), scope: "project", projectFile }));
}

function entryOf({ path, shown, text }: ServersFile, config: ServerConfig) {
  return { name: config.name, config, file: path, placeOf: placesIn(shown, text) };
}
