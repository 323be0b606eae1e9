/** The agents that can be run by name, found without reading one: light enough for a shell that completes their names. */
import { join } from "node:path";
import { exists, namesIn } from "./folder_names.ts";
import type { EmbeddedAgent } from "./load_agent.ts";
import { isName, MANIFEST_FILE } from "./names.ts";
import { findProjectFolder, type ProjectSearch } from "./project_folder.ts";

/** How an agent was found. Only `project` needs trust. */
export type AgentScope = "path" | "project" | "user" | "embedded";

/** Where agents may be. */
export interface KnownPlaces extends ProjectSearch {
  /** Folder of the user's configuration (`RnixPaths.config`). */
  config: string;
  embedded: readonly EmbeddedAgent[];
}

/** An agent that could be run by name. */
export interface KnownAgent {
  name: string;
  scope: Exclude<AgentScope, "path">;
  /** Absolute path of the manifest, or `embedded:<name>`. */
  path: string;
}

/** What a search found, and what a user should know of it. */
export interface Known {
  /** First of each name wins. */
  agents: KnownAgent[];
  notices: string[];
}

/** All agents that can be run by name, in the order in which they are looked up; one entry for each name. */
export async function listAgents(places: KnownPlaces): Promise<KnownAgent[]> {
  return (await knownAgents(places)).agents;
}

/** The same with what a user should know of the search. */
export async function knownAgents(places: KnownPlaces): Promise<Known> {
  const project = await findProjectFolder(places);
  const folders: [string, KnownAgent["scope"]][] = [
    [join(places.config, "agents"), "user"],
    [join(places.cwd, "agents"), "project"],
  ];
  if (project !== undefined && project.refused === undefined) {
    folders.unshift([join(project.path, "agents"), "project"]);
  }
  const found: KnownAgent[] = [];
  for (const [folder, scope] of folders) {
    for (const name of await namesIn(places.storage, folder)) {
      const path = join(folder, name, MANIFEST_FILE);
      if (isName(name) && await exists(places.storage, path)) found.push({ name, scope, path });
    }
  }
  for (const { name } of places.embedded) {
    found.push({ name, scope: "embedded", path: `embedded:${name}` });
  }
  const agents = found.filter(({ name }, index) =>
    found.findIndex((other) => other.name === name) === index
  );
  return { agents, notices: project?.refused === undefined ? [] : [project.refused] };
}
