/** Rules of a manifest that hold between keys, or for names of keys. They look at the file as it is, so that they are told together with the mistakes of single values. */
import { nearest } from "../base/nearest.ts";
import { type BrokenRule, isMisspelt, timeoutRule } from "./broken_rule.ts";
import { isMapping } from "./not_built.ts";
import type { ProviderEntry, ProviderTable } from "./provider_table.ts";
import { serverRules } from "./server_rules.ts";

const NO_DEFAULT = 'and providers.yaml names no "default" to do without it';

/** All rules that a parsed file breaks. */
export function rulesBroken(
  file: Record<string, unknown>,
  { instructionsBeside, providers }: {
    instructionsBeside: string | undefined;
    providers: ProviderTable;
  },
): BrokenRule[] {
  return [
    ...instructionsRule(file, instructionsBeside),
    ...modelRules(file, providers),
    ...agentRules(file["agents"]),
    ...serverRules(isMapping(file["mcp"]) ? file["mcp"]["servers"] : undefined, ["mcp", "servers"]),
  ];
}

function instructionsRule(
  file: Record<string, unknown>,
  beside: string | undefined,
): BrokenRule[] {
  const given = Object.hasOwn(file, "instructions");
  if (given && beside !== undefined) {
    const message = 'Both "instructions" and an instructions.md beside the file; keep one of them';
    return [{ path: ["instructions"], at: "key", message }];
  }
  const misspelt = Object.keys(file).some((key) => nearest(key, ["instructions"]) !== undefined);
  if (given || beside !== undefined || misspelt) return [];
  const message = "No instructions: write the key, or a file instructions.md beside this one";
  return [{ path: [], at: "key", message }];
}

/** A name stands for one agent: its tool is called by it. */
function agentRules(agents: unknown): BrokenRule[] {
  if (!Array.isArray(agents)) return [];
  const names = agents.map((agent) => isMapping(agent) ? agent["name"] : agent);
  return names.flatMap((name, index): BrokenRule[] => {
    if (typeof name !== "string" || names.indexOf(name) === index) return [];
    return [{ path: ["agents", index], at: "value", message: `Agent "${name}" is named twice` }];
  });
}

function modelRules(file: Record<string, unknown>, providers: ProviderTable): BrokenRule[] {
  if (!Object.hasOwn(file, "models")) return missingModels(file, providers);
  const { models } = file;
  if (!isMapping(models)) return [];
  const { provider = providers.default?.name } = models;
  if (provider === undefined && !isMisspelt(models, "provider")) {
    return [
      { path: ["models"], at: "key", message: `Missing key "provider" in models, ${NO_DEFAULT}` },
      ...timeoutRule(["models"], models),
    ];
  }
  const broken = [
    ...nameRule(models, "provider", providers),
    ...nameRule(models, "fallback_provider", providers),
    ...timeoutRule(["models"], models),
  ];
  const entry = typeof provider === "string" ? providers.get(provider) : undefined;
  if (entry === undefined) return broken;
  return [...broken, ...keyRules(models, entry), ...fallbackRules(models, { entry, providers })];
}

function missingModels(file: Record<string, unknown>, providers: ProviderTable): BrokenRule[] {
  if (isMisspelt(file, "models")) return [];
  const name = providers.default?.name;
  const entry = name === undefined ? undefined : providers.get(name);
  if (entry !== undefined) return keyRules({}, entry).map((rule) => ({ ...rule, path: [] }));
  return [{ path: [], at: "key", message: `Missing key "models", ${NO_DEFAULT}` }];
}

function nameRule(
  models: Record<string, unknown>,
  key: string,
  providers: ProviderTable,
): BrokenRule[] {
  const name = models[key];
  if (typeof name !== "string" || name.trim() === "") return [];
  const message = providers.faultOf(name);
  return message === undefined ? [] : [{ path: ["models", key], at: "value", message }];
}

/** Keys that a provider needs or can't use. */
function keyRules(models: Record<string, unknown>, entry: ProviderEntry): BrokenRule[] {
  const broken: BrokenRule[] = [];
  const needs = (key: string, example: string) => {
    if (Object.hasOwn(models, key) || isMisspelt(models, key)) return;
    const message = `Provider "${entry.name}" needs "${key}", such as ${example}`;
    broken.push({ path: ["models"], at: "key", message });
  };
  const refuses = (key: string) => {
    if (!Object.hasOwn(models, key)) return;
    const message = `Provider "${entry.name}" has no use for "${key}"; remove it`;
    broken.push({ path: ["models", key], at: "key", message });
  };
  if (entry.kind === "scripted") {
    needs("script", "script.yaml");
    refuses("base_url");
    refuses("api_key_env");
    return broken;
  }
  if (entry.kind === "openai-compatible" && entry.baseUrl === undefined) {
    needs("base_url", "http://localhost:11434/v1");
  }
  if (entry.defaultModel === undefined) needs("preferred", "the name of a model");
  if (models["fallback_provider"] !== "scripted") refuses("script");
  return broken;
}

function fallbackRules(
  models: Record<string, unknown>,
  { entry, providers }: { entry: ProviderEntry; providers: ProviderTable },
): BrokenRule[] {
  const { fallback, fallback_provider: name } = models;
  const other = typeof name === "string" ? providers.get(name) : undefined;
  if (other === undefined || other === entry) return [];
  const at = (message: string): BrokenRule[] => [
    { path: ["models", "fallback_provider"], at: "value", message },
  ];
  if (other.kind === "scripted") {
    return Object.hasOwn(models, "script") ? [] : at(`Provider "${other.name}" needs "script"`);
  }
  if (other.kind === "openai-compatible" && other.baseUrl === undefined) {
    return at(`Provider "${other.name}" needs a base_url in providers.yaml`);
  }
  if (fallback !== undefined || other.defaultModel !== undefined) return [];
  if (isMisspelt(models, "fallback")) return [];
  return at(`Provider "${other.name}" needs "fallback", the name of a model`);
}
