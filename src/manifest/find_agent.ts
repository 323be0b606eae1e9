/**
 * Finds the agent a person means: by path, or by name.
 *
 * A path is consent to run what is there. A name is looked up in the project's `.rnix/agents/`, the user's `agents/`, `agents/` of the working folder, and among those inside the program, in this order; what is found in project scope needs trust.
 * A bare word is a name first, and a path only when no agent has that name: a cloned folder called like one of the user's agents doesn't take its place.
 */
import { basename, dirname, extname, join, resolve } from "node:path";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { nearest } from "../base/nearest.ts";
import { shownFrom } from "../base/paths.ts";
import type { Storage } from "../base/storage.ts";
import type { LoadedAgent } from "./agent_manifest.ts";
import { exists, namesIn } from "./folder_names.ts";
import {
  type AgentScope,
  type Known,
  type KnownAgent,
  knownAgents,
  type KnownPlaces,
} from "./known_agents.ts";
import { loadAgentFile, loadEmbeddedAgent, type Nameable } from "./load_agent.ts";
import { isName, MANIFEST_FILE } from "./names.ts";

/** Where agents may be, and what their manifests may name. */
export interface AgentPlaces extends KnownPlaces, Nameable {}

export interface FoundAgent {
  agent: LoadedAgent;
  scope: AgentScope;
  /** What a user should know of the search, a sentence each. */
  notices: string[];
}

/** Finds and loads an agent. Throws NOT_FOUND (exit 2) listing what there is, or INVALID with the mistakes of the file. */
export async function findAgent(reference: string, places: AgentPlaces): Promise<FoundAgent> {
  if (reference === "") {
    throw new SysError("INVALID", "The manifest is empty; name a file, a folder or an agent", {
      exitCode: EXIT_USAGE,
    });
  }
  if (!isBareName(reference)) return await loadPath(reference, places);
  const known = await knownAgents(places);
  const match = known.agents.find((agent) => agent.name === reference);
  if (match === undefined) {
    const facts = await places.storage.stat(resolve(places.cwd, reference));
    if (facts !== undefined) return await loadPath(reference, places);
    throw notFound(reference, known);
  }
  return {
    agent: await loadKnown(match, places),
    scope: match.scope,
    notices: known.notices,
  };
}

function isBareName(reference: string): boolean {
  return isName(reference) && extname(reference) === "";
}

async function loadKnown(known: KnownAgent, places: AgentPlaces): Promise<LoadedAgent> {
  const embedded = places.embedded.find(({ name }) => name === known.name);
  return known.scope === "embedded" && embedded !== undefined
    ? await loadEmbeddedAgent(embedded, places)
    : await loadAgentFile(places.storage, known.path, {
      shown: shownFrom(places.cwd, known.path),
      providers: places.providers,
      servers: places.servers,
      agents: places.agents,
      skills: places.skills,
      onUnknown: places.onUnknown,
    });
}

async function loadPath(reference: string, places: AgentPlaces): Promise<FoundAgent> {
  const { storage, cwd } = places;
  const path = resolve(cwd, reference);
  const facts = await storage.stat(path);
  if (facts === undefined) throw await nothingAt(reference, path, storage);
  const isFolder = facts.kind === "folder" ||
    (facts.kind === "link" && await leadsToFolder(storage, path));
  const file = isFolder ? join(path, MANIFEST_FILE) : path;
  if (isFolder && !await exists(storage, file)) {
    throw await noManifestIn(reference, path, storage);
  }
  const agent = await loadAgentFile(storage, file, {
    shown: isFolder ? join(reference, MANIFEST_FILE) : reference,
    providers: places.providers,
    servers: places.servers,
    agents: places.agents,
    skills: places.skills,
    onUnknown: places.onUnknown,
  });
  return { agent, scope: "path", notices: [] };
}

async function leadsToFolder(storage: Storage, path: string): Promise<boolean> {
  try {
    await storage.list(path);
    return true;
  } catch (thrown) {
    if (thrown instanceof SysError) return false;
    throw thrown;
  }
}

const WHAT_TO_GIVE =
  "give the path of a manifest, of a folder with an agent.yaml, or an agent's name";

async function nothingAt(reference: string, path: string, storage: Storage): Promise<SysError> {
  const near = nearest(basename(path), await namesIn(storage, dirname(path)));
  return new SysError("NOT_FOUND", `Nothing at "${reference}"`, {
    hint: near === undefined ? WHAT_TO_GIVE : `did you mean "${join(dirname(reference), near)}"?`,
    exitCode: EXIT_USAGE,
  });
}

async function noManifestIn(reference: string, path: string, storage: Storage): Promise<SysError> {
  const names = await namesIn(storage, path);
  const file = names.find((name) => [".yaml", ".yml"].includes(extname(name)));
  const folders: string[] = [];
  for (const name of names) {
    if (await exists(storage, join(path, name, MANIFEST_FILE))) folders.push(name);
  }
  const near = file ?? folders[0];
  return new SysError("NOT_FOUND", `The folder "${reference}" has no ${MANIFEST_FILE}`, {
    hint: near === undefined ? WHAT_TO_GIVE : `did you mean "${join(reference, near)}"?`,
    exitCode: EXIT_USAGE,
  });
}

function notFound(reference: string, known: Known): SysError {
  const names = known.agents.map(({ name }) => name);
  const near = nearest(reference, names);
  const listed = names.length === 0 ? "there are none" : `there are ${names.join(", ")}`;
  const message = [`No agent "${reference}"; ${listed}`, ...known.notices].join(". ");
  return new SysError("NOT_FOUND", message, {
    hint: near === undefined
      ? "give one of these names, or a path to a manifest"
      : `did you mean "${near}"?`,
    exitCode: EXIT_USAGE,
  });
}
