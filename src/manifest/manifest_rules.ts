/** Rules of a manifest that hold between keys, or for names of keys. They look at the file as it is, so that they are told together with the mistakes of single values. */
import { parseDuration } from "../base/duration.ts";
import { nearest } from "../base/nearest.ts";
import { isName, NAME_RULE } from "./names.ts";
import { isMapping } from "./not_built.ts";
import type { KeyPath } from "./problems.ts";
import { isVariableName } from "./template.ts";

/** A broken rule; `at` says whether the key or its value is to blame. */
export interface BrokenRule {
  path: KeyPath;
  at: "key" | "value";
  message: string;
}

/** Variables that rnix itself puts into a server's environment. */
const RESERVED_PREFIX = "RNIX_";

/** All rules that a parsed file breaks. */
export function rulesBroken(
  file: Record<string, unknown>,
  instructionsBeside: string | undefined,
): BrokenRule[] {
  return [
    ...instructionsRule(file, instructionsBeside),
    ...modelRules(file["models"]),
    ...serverRules(file["mcp"]),
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

function modelRules(models: unknown): BrokenRule[] {
  if (!isMapping(models)) return [];
  const scripted = models["provider"] === "scripted";
  const broken: BrokenRule[] = [];
  const needs = (key: string, example: string) => {
    const misspelt = Object.keys(models).some((given) =>
      given !== key && nearest(given, [key]) !== undefined
    );
    if (Object.hasOwn(models, key) || misspelt) return;
    const message = `Provider "${String(models["provider"])}" needs "${key}", such as ${example}`;
    broken.push({ path: ["models"], at: "key", message });
  };
  const refuses = (key: string) => {
    if (!Object.hasOwn(models, key)) return;
    const message = `Provider "${String(models["provider"])}" has no use for "${key}"; remove it`;
    broken.push({ path: ["models", key], at: "key", message });
  };
  if (scripted) {
    needs("script", "script.yaml");
    refuses("base_url");
    refuses("api_key_env");
  } else if (models["provider"] === "openai-compatible") {
    needs("base_url", "http://localhost:11434/v1");
    needs("preferred", "the name of a model");
    refuses("script");
  }
  return [...broken, ...timeoutRule(["models"], models)];
}

function serverRules(mcp: unknown): BrokenRule[] {
  const servers = isMapping(mcp) ? mcp["servers"] : undefined;
  if (!isMapping(servers)) return [];
  return Object.entries(servers).flatMap(([name, server]) => {
    const path = ["mcp", "servers", name];
    const broken: BrokenRule[] = [];
    if (!isName(name)) {
      const message = `Invalid server name "${name}": use ${NAME_RULE}`;
      broken.push({ path, at: "key", message });
    }
    if (!isMapping(server)) return broken;
    return [...broken, ...variableRules(path, server["env"]), ...timeoutRule(path, server)];
  });
}

function variableRules(path: KeyPath, env: unknown): BrokenRule[] {
  if (!isMapping(env)) return [];
  return Object.keys(env).flatMap((name): BrokenRule[] => {
    if (!isVariableName(name) || name === "__proto__") {
      const message = `Invalid variable name "${name}": use letters, digits and _`;
      return [{ path: [...path, "env", name], at: "key", message }];
    }
    if (!name.startsWith(RESERVED_PREFIX)) return [];
    const message = `Variable "${name}" is reserved: rnix sets what begins with ${RESERVED_PREFIX}`;
    return [{ path: [...path, "env", name], at: "key", message }];
  });
}

function timeoutRule(path: KeyPath, server: Record<string, unknown>): BrokenRule[] {
  const { timeout, max_timeout } = server;
  if (typeof timeout !== "string" || typeof max_timeout !== "string") return [];
  const shorter = parseDuration(timeout);
  const longer = parseDuration(max_timeout);
  if (shorter === undefined || longer === undefined || shorter <= longer) return [];
  const message = `"timeout" (${timeout}, one silence) is longer than "max_timeout" ` +
    `(${max_timeout}, in all)`;
  return [{ path: [...path, "timeout"], at: "value", message }];
}
