/**
 * An agent from its files: manifest, instructions and script together, checked, with a hash of each.
 *
 * The same code loads from disk and from the copies inside the program, so that both give the same agent.
 */
import { basename, dirname, join, resolve } from "node:path";
import type { OnUnknown } from "../base/effect.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { sha256Hex } from "../base/json.ts";
import type { Storage } from "../base/storage.ts";
import type { LoadedAgent, OwnFile } from "./agent_manifest.ts";
import { MANIFEST_FILE } from "./names.ts";
import { parseManifest } from "./parse_manifest.ts";
import { type PlaceOf, placesIn } from "./places.ts";
import { FILE_START, Problems } from "./problems.ts";
import type { ProviderTable } from "./provider_table.ts";
import type { ServerTable } from "./server_table.ts";
import type { ReadSkill, SkillTable } from "./skill_table.ts";
import { MANIFEST_BYTES_MAX, readSourceText, type SourceText } from "./source_text.ts";

export const INSTRUCTIONS_FILE = "instructions.md";

/** An agent shipped inside the program: its files by name, `agent.yaml` among them. */
export interface EmbeddedAgent {
  name: string;
  /** Those of agents that it starts stand in folders: `reader/agent.yaml`. */
  files: { readonly [name: string]: string };
}

/** What a manifest may name. */
export interface Nameable {
  /** Without them those that exist without a file. */
  providers?: ProviderTable | undefined;
  /** Those of `mcp.yaml`; without them none. */
  servers?: ServerTable | undefined;
  /** Names of agents that a workflow may start; without them any. */
  agents?: readonly string[] | undefined;
  /** Without them none. */
  skills?: SkillTable | undefined;
  /** `on_unknown` of `config.yaml`, for a manifest that doesn't say. */
  onUnknown?: OnUnknown | undefined;
}

export interface LoadOptions extends Nameable {
  /** How the file is named in messages. */
  shown?: string;
}

interface Place {
  /** As `LoadedAgent.path`. */
  path: string;
  folder: string;
  /** How the file is named in messages. */
  shown: string;
  /** Path of a file by its manifest-relative path. */
  at(relative: string): string;
  /** Reads a file by its manifest-relative path. */
  read(relative: string, bytesMax?: number): Promise<SourceText>;
}

/** Loads the manifest at an absolute path. Throws INVALID with all mistakes, NOT_FOUND when there is no file (exit 2). */
export async function loadAgentFile(
  storage: Storage,
  path: string,
  { shown = path, ...nameable }: LoadOptions = {},
): Promise<LoadedAgent> {
  const folder = dirname(path);
  return await load(basename(path), {
    path,
    folder,
    shown,
    at: (relative) => resolve(folder, relative),
    read: (relative, bytesMax) => readSourceText(storage, resolve(folder, relative), bytesMax),
  }, nameable);
}

/** What the path of an agent inside the program begins with. */
export const EMBEDDED = "embedded:";

/** Loads what has the path `embedded:<name>` or `embedded:<name>/<folder>`. Throws NOT_FOUND (exit 2) where there is none. */
export async function loadEmbeddedPath(
  path: string,
  embedded: readonly EmbeddedAgent[],
  nameable: Nameable = {},
): Promise<LoadedAgent> {
  const [name = "", ...folders] = path.slice(EMBEDDED.length).split("/");
  const agent = embedded.find((each) => each.name === name);
  if (agent === undefined) {
    throw new SysError("NOT_FOUND", `This version of rnix ships no agent "${name}"`, {
      exitCode: EXIT_USAGE,
    });
  }
  return await loadEmbeddedAgent(agent, nameable, folders.map((folder) => `${folder}/`).join(""));
}

/** Loads an agent from inside the program; one that it starts by the `folder` that it is in. Throws like `loadAgentFile`. */
export async function loadEmbeddedAgent(
  agent: EmbeddedAgent,
  nameable: Nameable = {},
  folder = "",
): Promise<LoadedAgent> {
  const path = `${EMBEDDED}${agent.name}/${folder}`.replace(/\/$/, "");
  return await load(MANIFEST_FILE, {
    path,
    folder: path,
    shown: `${path}/${MANIFEST_FILE}`,
    at: (relative) => `${path}/${relative}`,
    read(relative) {
      const name = `${folder}${relative}`;
      const text = Object.hasOwn(agent.files, name) ? agent.files[name] : undefined;
      return Promise.resolve(text === undefined ? { kind: "absent" } : { kind: "text", text });
    },
  }, nameable);
}

async function load(
  manifestName: string,
  place: Place,
  { providers, servers, skills, agents, onUnknown }: Nameable,
): Promise<LoadedAgent> {
  const problems = new Problems();
  const source = await place.read(manifestName, MANIFEST_BYTES_MAX);
  if (source.kind === "absent") {
    throw new SysError("NOT_FOUND", `No manifest at "${place.shown}"`, { exitCode: EXIT_USAGE });
  }
  if (source.kind === "unusable") {
    problems.add(place.shown, source.position, source.message);
    throw problems.toError();
  }
  const besideShown = join(dirname(place.shown), INSTRUCTIONS_FILE);
  const instructions = usable(await place.read(INSTRUCTIONS_FILE), besideShown, problems);
  const parsed = parseManifest(source.text, {
    file: place.shown,
    instructionsBeside: instructions,
    ...providers === undefined ? {} : { providers },
    ...onUnknown === undefined ? {} : { onUnknown },
    ...servers === undefined ? {} : { servers },
    ...agents === undefined ? {} : { agents },
    ...skills === undefined ? {} : { skills },
  }, problems);
  const { script } = parsed;
  const scriptSource = script === undefined ? undefined : await place.read(script);
  if (script !== undefined && scriptSource !== undefined && scriptSource.kind !== "text") {
    const position = parsed.valueAt(["models", "script"]);
    problems.add(place.shown, position, scriptFault(script, scriptSource));
  }
  const read = await readSkills(parsed.skills, skills, problems);
  for (const { reference, path } of parsed.agentFiles ?? []) {
    const file = /\.ya?ml$/.test(reference) ? reference : join(reference, MANIFEST_FILE);
    if ((await place.read(file, MANIFEST_BYTES_MAX)).kind !== "absent") continue;
    const message = `No agent at "${reference}" (a path that starts from the manifest's folder)`;
    problems.add(place.shown, parsed.valueAt(path), message);
  }
  if (parsed.manifest === undefined || problems.count > 0) throw problems.toError();
  const agent: LoadedAgent = {
    manifest: parsed.manifest,
    path: place.path,
    folder: place.folder,
    placeOf: placesOf(place.shown, source.text, servers),
  };
  if (read.length > 0) agent.skills = read.map(({ skill }) => skill);
  const notices = read.flatMap((each) => each.notices);
  if (notices.length > 0) agent.notices = notices;
  if (script !== undefined && scriptSource?.kind === "text") {
    agent.scriptText = scriptSource.text;
    agent.scriptFile = join(dirname(place.shown), script);
  }
  const projectFiles = [
    ...parsed.projectFiles,
    ...read.flatMap(({ projectFiles }) => projectFiles),
  ];
  if (projectFiles.length > 0) agent.projectFiles = projectFiles;
  const own = (part: OwnFile["part"], name: string, text: string | undefined): OwnFile[] =>
    text === undefined ? [] : [{ part, path: place.at(name), contentHash: sha256Hex(text) }];
  agent.ownFiles = [
    ...own("manifest", manifestName, source.text),
    ...own("instructions", INSTRUCTIONS_FILE, instructions),
    ...own("script", script ?? "", agent.scriptText),
  ];
  return agent;
}

/** Places in a manifest, and in the `mcp.yaml` that it takes servers from. */
function placesOf(shown: string, text: string, servers: ServerTable | undefined): PlaceOf {
  const own = placesIn(shown, text);
  return (path, piece) => {
    const [mcp, section, name, ...inner] = path;
    const found = own(path, piece);
    if (found !== undefined || mcp !== "mcp" || section !== "servers") return found;
    return servers?.get(String(name))?.placeOf?.(["servers", String(name), ...inner], piece);
  };
}

/** The skills of these names; mistakes go to `problems`. */
async function readSkills(
  names: readonly string[],
  table: SkillTable | undefined,
  problems: Problems,
): Promise<ReadSkill[]> {
  const read: ReadSkill[] = [];
  for (const name of names) read.push(...[await table?.read(name, problems) ?? []].flat());
  return read;
}

/** The text, if there is one; a file that isn't text is a mistake. */
function usable(source: SourceText, shown: string, problems: Problems): string | undefined {
  if (source.kind === "absent") return undefined;
  if (source.kind === "unusable") {
    problems.add(shown, source.position, source.message);
    return "";
  }
  if (source.text.trim() === "") {
    problems.add(shown, FILE_START, "The file is empty; write the instructions or remove it");
  }
  return source.text;
}

function scriptFault(script: string, source: SourceText): string {
  return source.kind === "unusable"
    ? `The script "${script}" can't be used: ${source.message}`
    : `No script at "${script}" (a path that starts from the manifest's folder)`;
}
