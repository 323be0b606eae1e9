/**
 * `agent.yaml` text to a checked manifest, or all its mistakes at once.
 *
 * YAML first, then keys that aren't built yet, then the schema, then the rules between keys. A text whose syntax is broken is told for its syntax alone: anything more would be guesswork.
 */
import { TURNS_DEFAULT } from "../base/budget.ts";
import type { OnUnknown } from "../base/effect.ts";
import { budgetOf } from "./budget_of.ts";
import type { AgentManifest, ChildAgent, ModelConfig, ServerConfig } from "./agent_manifest.ts";
import { rulesBroken } from "./manifest_rules.ts";
import { KNOWN_KEYS, type ManifestFile, manifestSchema } from "./manifest_schema.ts";
import { isMapping, notBuiltKeys, takeOutNotBuilt } from "./not_built.ts";
import { toModels } from "./model_config.ts";
import { FILE_START, type KeyPath, type Position, type Problems } from "./problems.ts";
import type { ProjectFile } from "./project_folder.ts";
import { BUILT_IN_TABLE, type ProviderTable } from "./provider_table.ts";
import { type Add, addIssues, checkShape, describe } from "./schema_issues.ts";
import { toServer } from "./server_config.ts";
import { type KnownServer, NO_SERVERS, type ServerTable } from "./server_table.ts";
import { NO_SKILLS, type SkillTable } from "./skill_table.ts";
import { agentPaths, isWorkflow } from "./workflow/parse_workflow.ts";
import { workflowManifest } from "./workflow/workflow_manifest.ts";
import { readYaml, type YamlSource } from "./yaml_source.ts";

/** What parsing gives. `script` and the places are there for a file with mistakes too, so that a script that isn't there is told with them. */
export interface ParsedManifest {
  /** Absent when there were mistakes. */
  manifest?: AgentManifest;
  /** `models.script`, if it is a text. */
  script?: string;
  /** Names of skills, also of a file with mistakes: theirs are told with them. */
  skills: string[];
  /** Agents that are named by their paths, with the place of each. */
  agentFiles?: { reference: string; path: KeyPath }[];
  /** Files of the project that have a part in this manifest. */
  projectFiles: ProjectFile[];
  valueAt(path: KeyPath): Position;
}

export interface ParseOptions {
  /** How the file is named in messages. */
  file: string;
  /** Text of `instructions.md` beside it, if there is one. */
  instructionsBeside: string | undefined;
  /** Providers that may be named; without them those that exist without a file. */
  providers?: ProviderTable;
  /** Servers of `mcp.yaml` that may be named; without them none. */
  servers?: ServerTable;
  /** Skills that may be named; without them none. */
  skills?: SkillTable;
  /** `on_unknown` of `config.yaml`, for a manifest that doesn't say. */
  onUnknown?: OnUnknown;
  /** Names of agents that a workflow may start; without them any. */
  agents?: readonly string[];
}

/** Parses a manifest. Mistakes go to `problems`. Never throws. */
export function parseManifest(
  text: string,
  options: ParseOptions,
  problems: Problems,
): ParsedManifest {
  const before = problems.count;
  const { providers = BUILT_IN_TABLE, servers: table = NO_SERVERS, skills = NO_SKILLS } = options;
  const add: Add = (position, message) => problems.add(options.file, position, message);
  const source = readYaml(text);
  for (const { position, message } of source.mistakes) add(position, message);
  const result: ParsedManifest = { skills: [], projectFiles: [], valueAt: source.valueAt };
  if (source.value === undefined) return result;
  if (source.value === null) {
    add(FILE_START, "The file is empty; a manifest needs name, instructions and models");
    return result;
  }
  if (!isMapping(source.value)) {
    add(source.valueAt([]), `Expected a mapping of keys, got ${describe(source.value)}`);
    return result;
  }
  const file = structuredClone(source.value);
  if (isWorkflow(file)) {
    const { agents: known, onUnknown } = options;
    const manifest = workflowManifest(file, { source, text, add, known }, onUnknown);
    if (manifest !== undefined && problems.count === before) result.manifest = manifest;
    result.agentFiles = agentPaths(file);
    return result;
  }
  for (const { path, message } of takeOutNotBuilt(file)) add(() => source.keyAt(path), message);
  const named = takeNamedServers(file, { table, problems, add, source });
  const parsed = checkShape(manifestSchema, file);
  if (parsed === undefined) {
    add(FILE_START, "So many mistakes that they can't be listed");
    return result;
  }
  if (!parsed.success) addIssues(parsed.error.issues, source, { add, keysAt });
  for (
    const { path, at, message } of rulesBroken(file, {
      instructionsBeside: options.instructionsBeside,
      providers,
    })
  ) {
    add(() => at === "key" ? source.keyAt(path) : source.valueAt(path), message);
  }
  result.skills = takeSkillNames(file["skills"], { skills, add, source });
  result.agentFiles = agentManifests(file["agents"]);
  const script = isMapping(file["models"]) ? file["models"]["script"] : undefined;
  if (typeof script === "string" && script.trim() !== "") result.script = script;
  if (parsed.success && problems.count === before) {
    const instructions = parsed.data.instructions ?? options.instructionsBeside ?? "";
    const { models, projectFile } = toModels(parsed.data.models ?? {}, providers);
    const servers = named?.map(({ config }) => config) ?? ownServers(parsed.data);
    result.manifest = toManifest(parsed.data, { instructions, models, servers });
    const isSilent = !Object.hasOwn(source.value, "on_unknown");
    if (isSilent) result.manifest.onUnknown = options.onUnknown ?? result.manifest.onUnknown;
    result.projectFiles = filesOf([projectFile, ...(named ?? []).map((each) => each.projectFile)]);
  }
  return result;
}

/** Agents of an agent that are named by a path. */
function agentManifests(agents: unknown): { reference: string; path: KeyPath }[] {
  if (!Array.isArray(agents)) return [];
  return agents.flatMap((agent: unknown, index) => {
    const reference = isMapping(agent) ? agent["manifest"] : undefined;
    if (typeof reference !== "string" || reference.trim() === "") return [];
    return [{ reference, path: ["agents", index, "manifest"] }];
  });
}

/** Known keys at a path, for the nearest one. */
function keysAt(path: KeyPath) {
  const general = generalPath(path);
  return { known: KNOWN_KEYS[general] ?? [], others: notBuiltKeys(general) };
}

/** The path with `*` for a server's name. */
function generalPath(path: KeyPath): string {
  return path.map((key, index) => index === 2 && path[1] === "servers" ? "*" : key).join(".");
}

function toManifest(
  file: ManifestFile,
  { instructions, models, servers }: {
    instructions: string;
    models: ModelConfig;
    servers: ServerConfig[] | undefined;
  },
): AgentManifest {
  return {
    name: file.name,
    description: file.description,
    instructions,
    models,
    ...servers === undefined ? {} : { servers },
    budget: { turns: TURNS_DEFAULT, ...budgetOf(file.budget) },
    tools: [...new Set(file.tools)],
    agents: file.agents.map(toChild),
    ...file.skills.length === 0 ? {} : { skills: file.skills },
    ...file.agents_md ? {} : { agentsMd: false },
    onUnknown: file.on_unknown,
  };
}

function ownServers({ mcp }: ManifestFile): ServerConfig[] | undefined {
  if (mcp === undefined) return undefined;
  return Object.entries(mcp.servers ?? {}).map(([name, server]) => toServer(name, server));
}

/** The names of known skills; what is wrong with others is told. What isn't a name is the schema's. */
function takeSkillNames(
  names: unknown,
  { skills, add, source }: { skills: SkillTable; add: Add; source: YamlSource },
): string[] {
  if (!Array.isArray(names)) return [];
  return names.flatMap((name: unknown, index): string[] => {
    if (typeof name !== "string" || name.trim() === "") return [];
    const isTwice = names.indexOf(name) < index;
    const fault = isTwice ? `Skill "${name}" is listed twice` : skills.faultOf(name);
    if (fault === undefined) return [name];
    add(() => source.valueAt(["skills", index]), fault);
    return [];
  });
}

/** Each file once. */
function filesOf(files: readonly (ProjectFile | undefined)[]): ProjectFile[] {
  const found = new Map<string, ProjectFile>();
  for (const file of files) if (file !== undefined) found.set(file.path, file);
  return [...found.values()];
}

/** Takes `mcp` as a list of names out of a parsed file (changing it). Undefined where it isn't one. */
function takeNamedServers(
  file: Record<string, unknown>,
  { table, problems, add, source }: {
    table: ServerTable;
    problems: Problems;
    add: Add;
    source: YamlSource;
  },
): KnownServer[] | undefined {
  const { mcp } = file;
  if (!Array.isArray(mcp)) return undefined;
  delete file["mcp"];
  if (mcp.length > 0) problems.addAll(table.problems);
  const names = new Set<string>();
  return mcp.flatMap((name: unknown, index) => {
    const fault = nameFault(name, { names, table });
    if (fault !== undefined) add(() => source.valueAt(["mcp", index]), fault);
    if (typeof name !== "string") return [];
    names.add(name);
    return table.get(name) ?? [];
  });
}

function nameFault(
  name: unknown,
  { names, table }: { names: ReadonlySet<string>; table: ServerTable },
): string | undefined {
  if (typeof name !== "string") {
    return `Expected the name of a server in mcp.yaml, got ${describe(name)}`;
  }
  if (names.has(name)) return `Server "${name}" is listed twice`;
  // It may be in the file that has mistakes.
  return table.problems.length > 0 ? undefined : table.faultOf(name);
}

function toChild(agent: ManifestFile["agents"][number]): ChildAgent {
  if (typeof agent === "string") return { name: agent, detach: false };
  const { name, manifest, detach } = agent;
  return { name, detach, ...manifest === undefined ? {} : { manifest } };
}
