/**
 * `agent.yaml` text to a checked manifest, or all its mistakes at once.
 *
 * YAML first, then keys that aren't built yet, then the schema, then the rules between keys. A text whose syntax is broken is told for its syntax alone: anything more would be guesswork.
 */
import { TURNS_DEFAULT } from "../base/budget.ts";
import type { AgentManifest, ModelConfig, ServerConfig } from "./agent_manifest.ts";
import { rulesBroken } from "./manifest_rules.ts";
import {
  KNOWN_KEYS,
  type ManifestFile,
  manifestSchema,
  REQUEST_TIMEOUT_IN_ALL_MS,
  REQUEST_TIMEOUT_MS,
  type ServerFile,
} from "./manifest_schema.ts";
import { isMapping, notBuiltKeys, takeOutNotBuilt } from "./not_built.ts";
import { toModels } from "./model_config.ts";
import { FILE_START, type KeyPath, type Position, type Problems } from "./problems.ts";
import { BUILT_IN_TABLE, type ProviderFile, type ProviderTable } from "./provider_table.ts";
import { type Add, addIssues, checkShape, describe } from "./schema_issues.ts";
import { readYaml } from "./yaml_source.ts";

/** What parsing gives. `script` and the places are there for a file with mistakes too, so that a script that isn't there is told with them. */
export interface ParsedManifest {
  /** Absent when there were mistakes. */
  manifest?: AgentManifest;
  /** `models.script`, if it is a text. */
  script?: string;
  /** The project's `providers.yaml`, where it has a part in this manifest. */
  projectFile?: ProviderFile;
  valueAt(path: KeyPath): Position;
}

export interface ParseOptions {
  /** How the file is named in messages. */
  file: string;
  /** Text of `instructions.md` beside it, if there is one. */
  instructionsBeside: string | undefined;
  /** Providers that may be named; without them those that exist without a file. */
  providers?: ProviderTable;
}

/** Parses a manifest. Mistakes go to `problems`. Never throws. */
export function parseManifest(
  text: string,
  options: ParseOptions,
  problems: Problems,
): ParsedManifest {
  const before = problems.count;
  const { providers = BUILT_IN_TABLE } = options;
  const add: Add = (position, message) => problems.add(options.file, position, message);
  const source = readYaml(text);
  for (const { position, message } of source.mistakes) add(position, message);
  const result: ParsedManifest = { valueAt: source.valueAt };
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
  for (const { path, message } of takeOutNotBuilt(file)) add(() => source.keyAt(path), message);
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
  const script = isMapping(file["models"]) ? file["models"]["script"] : undefined;
  if (typeof script === "string" && script.trim() !== "") result.script = script;
  if (parsed.success && problems.count === before) {
    const instructions = parsed.data.instructions ?? options.instructionsBeside ?? "";
    const { models, projectFile } = toModels(parsed.data.models ?? {}, providers);
    result.manifest = toManifest(parsed.data, { instructions, models });
    if (projectFile !== undefined) result.projectFile = projectFile;
  }
  return result;
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
  { instructions, models }: { instructions: string; models: ModelConfig },
): AgentManifest {
  const { duration, turns = TURNS_DEFAULT, tokens, tool_calls, cost_usd } = file.budget;
  const manifest: AgentManifest = {
    name: file.name,
    description: file.description,
    instructions,
    models,
    budget: {
      turns,
      ...tokens === undefined ? {} : { tokens },
      ...tool_calls === undefined ? {} : { tool_calls },
      ...duration === undefined ? {} : { duration_ms: duration },
      ...cost_usd === undefined ? {} : { cost_usd },
    },
    onUnknown: file.on_unknown,
  };
  if (file.mcp !== undefined) {
    manifest.servers = Object.entries(file.mcp.servers ?? {}).map(([name, server]) =>
      toServer(name, server)
    );
  }
  return manifest;
}

function toServer(name: string, server: ServerFile): ServerConfig {
  const { allow, effects, risk, sensitive } = server.tools;
  const timeoutMs = server.timeout ?? Math.min(REQUEST_TIMEOUT_MS, server.max_timeout ?? Infinity);
  return {
    name,
    command: server.command,
    args: server.args,
    env: server.env,
    ...server.cwd === undefined ? {} : { cwd: server.cwd },
    inheritEnv: server.inherit_env,
    startupTimeoutMs: server.startup_timeout,
    timeoutMs,
    maxTimeoutMs: server.max_timeout ?? Math.max(REQUEST_TIMEOUT_IN_ALL_MS, timeoutMs),
    ...server.max_output_tokens === 0 ? {} : { outputTokensMax: server.max_output_tokens },
    required: server.required,
    rules: { ...allow === undefined ? {} : { allow }, effects, risk, sensitive },
  };
}
