/**
 * `agent.yaml` text to a checked manifest, or all its mistakes at once.
 *
 * YAML first, then keys that aren't built yet, then the schema, then the rules between keys. A text whose syntax is broken is told for its syntax alone: anything more would be guesswork.
 */
import type { z } from "zod";
import { TURNS_DEFAULT } from "../base/budget.ts";
import { nearest } from "../base/nearest.ts";
import type { AgentManifest, ModelConfig, ServerConfig } from "./agent_manifest.ts";
import { rulesBroken } from "./manifest_rules.ts";
import {
  KNOWN_KEYS,
  type ManifestFile,
  manifestSchema,
  MODEL_TIMEOUT_IN_ALL_MS,
  MODEL_TIMEOUT_MS,
  REQUEST_TIMEOUT_IN_ALL_MS,
  REQUEST_TIMEOUT_MS,
  type ServerFile,
} from "./manifest_schema.ts";
import { isMapping, notBuiltKeys, takeOutNotBuilt } from "./not_built.ts";
import { FILE_START, type KeyPath, type Position, type Problems } from "./problems.ts";
import { readYaml, type YamlSource } from "./yaml_source.ts";

/** What parsing gives. `script` and the places are there for a file with mistakes too, so that a script that isn't there is told with them. */
export interface ParsedManifest {
  /** Absent when there were mistakes. */
  manifest?: AgentManifest;
  /** `models.script`, if it is a text. */
  script?: string;
  valueAt(path: KeyPath): Position;
}

export interface ParseOptions {
  /** How the file is named in messages. */
  file: string;
  /** Text of `instructions.md` beside it, if there is one. */
  instructionsBeside: string | undefined;
}

/** Parses a manifest. Mistakes go to `problems`. Never throws. */
export function parseManifest(
  text: string,
  options: ParseOptions,
  problems: Problems,
): ParsedManifest {
  const before = problems.count;
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
  const parsed = checkShape(file);
  if (parsed === undefined) {
    add(FILE_START, "So many mistakes that they can't be listed");
    return result;
  }
  if (!parsed.success) addIssues(parsed.error.issues, source, add);
  for (const { path, at, message } of rulesBroken(file, options.instructionsBeside)) {
    add(() => at === "key" ? source.keyAt(path) : source.valueAt(path), message);
  }
  const script = isMapping(file["models"]) ? file["models"]["script"] : undefined;
  if (typeof script === "string" && script.trim() !== "") result.script = script;
  if (parsed.success && problems.count === before) {
    const instructions = parsed.data.instructions ?? options.instructionsBeside ?? "";
    result.manifest = toManifest(parsed.data, instructions);
  }
  return result;
}

/** Undefined when the mistakes are too many for the schema library to hand over. */
function checkShape(file: Record<string, unknown>) {
  try {
    return manifestSchema.safeParse(file);
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

type Add = (position: Position | (() => Position), message: string) => void;

function addIssues(
  issues: readonly z.core.$ZodIssue[],
  source: YamlSource,
  add: Add,
): void {
  const typedInstead = new Set<string>();
  for (const issue of issues) {
    if (issue.code !== "unrecognized_keys") continue;
    for (const key of issue.keys) {
      const general = generalPath(issue.path);
      const known = KNOWN_KEYS[general] ?? [];
      const near = nearest(key, [...known, ...notBuiltKeys(general)]);
      if (near !== undefined) typedInstead.add([...issue.path, near].join("\0"));
      const suggestion = near === undefined
        ? `; known here: ${known.join(", ")}`
        : `; did you mean \`${near}\`?`;
      const where = issue.path.length === 0 ? "" : ` in ${shownPath(issue.path)}`;
      add(() => source.keyAt([...issue.path, key]), `Unknown key "${key}"${where}${suggestion}`);
    }
  }
  for (const issue of issues) {
    if (issue.code === "unrecognized_keys") continue;
    const value = valueIn(source.value, issue.path);
    if (value !== undefined) {
      add(() => source.valueAt(issue.path), issueText(issue, value));
    } else if (!typedInstead.has(issue.path.join("\0"))) {
      const parent = issue.path.slice(0, -1);
      const where = parent.length === 0 ? "" : ` in ${shownPath(parent)}`;
      add(() => source.keyAt(parent), `Missing key "${String(issue.path.at(-1))}"${where}`);
    }
  }
}

/** The path with `*` for a server's name. */
function generalPath(path: KeyPath): string {
  return path.map((key, index) => index === 2 && path[1] === "servers" ? "*" : key).join(".");
}

function shownPath(path: KeyPath): string {
  return path.map((key, index) =>
    typeof key === "number" ? `[${key}]` : `${index === 0 ? "" : "."}${String(key)}`
  ).join("");
}

function valueIn(value: unknown, path: KeyPath): unknown {
  let inner = value;
  for (const key of path) {
    if (Array.isArray(inner)) inner = inner[Number(key)];
    else if (isMapping(inner) && Object.hasOwn(inner, String(key))) inner = inner[String(key)];
    else return undefined;
  }
  return inner;
}

const EXPECTED: { readonly [type: string]: string } = {
  string: "text",
  number: "a whole number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping",
  record: "a mapping",
};

function issueText(issue: z.core.$ZodIssue, value: unknown): string {
  switch (issue.code) {
    case "invalid_type": {
      const expected = `Expected ${EXPECTED[issue.expected] ?? issue.expected}`;
      const quoted = issue.expected === "string" && ["number", "boolean"].includes(typeof value)
        ? `; write "${String(value)}" in quotes`
        : "";
      return `${expected}, got ${describe(value)}${quoted}`;
    }
    case "invalid_value": {
      const allowed = issue.values.map(String);
      const near = typeof value === "string" ? nearest(value, allowed) : undefined;
      const suggestion = near === undefined ? "" : `; did you mean \`${near}\`?`;
      return `Expected one of ${allowed.join(", ")}, got ${describe(value)}${suggestion}`;
    }
    case "too_small":
      return `Expected a whole number from ${issue.minimum} on, got ${describe(value)}`;
    case "too_big":
      return `Expected at most ${issue.maximum}, got ${describe(value)}`;
    default:
      return issue.message;
  }
}

function describe(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") {
    return value.length > 60 ? `a text of ${value.length} characters` : JSON.stringify(value);
  }
  if (typeof value === "number") return `the number ${value}`;
  return typeof value === "boolean" ? String(value) : "a mapping";
}

function toManifest(file: ManifestFile, instructions: string): AgentManifest {
  const { duration, turns = TURNS_DEFAULT, tokens, tool_calls } = file.budget;
  const manifest: AgentManifest = {
    name: file.name,
    description: file.description,
    instructions,
    models: toModel(file.models),
    budget: {
      turns,
      ...tokens === undefined ? {} : { tokens },
      ...tool_calls === undefined ? {} : { tool_calls },
      ...duration === undefined ? {} : { duration_ms: duration },
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

function toModel(models: ManifestFile["models"]): ModelConfig {
  const timeoutMs = models.timeout ?? Math.min(MODEL_TIMEOUT_MS, models.max_timeout ?? Infinity);
  return {
    provider: models.provider,
    preferred: models.preferred ?? models.provider,
    ...models.base_url === undefined ? {} : { baseUrl: models.base_url },
    ...models.api_key_env === undefined ? {} : { apiKeyEnv: models.api_key_env },
    ...models.script === undefined ? {} : { script: models.script },
    timeoutMs,
    maxTimeoutMs: models.max_timeout ?? Math.max(MODEL_TIMEOUT_IN_ALL_MS, timeoutMs),
  };
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
    ...server.max_output_tokens === undefined ? {} : { outputTokensMax: server.max_output_tokens },
    required: server.required,
    rules: { ...allow === undefined ? {} : { allow }, effects, risk, sensitive },
  };
}
