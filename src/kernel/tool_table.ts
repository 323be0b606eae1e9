/**
 * The tools of one process: model-facing name → device path, class, limits. What isn't in here can't be called, so this table is also the permission check.
 *
 * It also knows the names that tools had before, this incarnation's and those that the journal tells of, so that a call of one that is gone is answered with why.
 */
import type { EffectClass, Risk, ToolRules } from "../base/effect.ts";
import { canonicalJson, type Json, sha256Hex } from "../base/json.ts";
import type { ToolRecord } from "../journal/entry.ts";
import { effectOf, isAllowed, isSensitive, riskOf } from "../policy/tool_rules.ts";
import type { ToolDefinition } from "../vfs/device.ts";
import type { ChildBinding } from "./children.ts";
import type { MountFacts, MountSpec } from "./mount.ts";

export interface ToolBinding {
  definition: ToolDefinition;
  /** Undefined for a tool of rnix itself. */
  server: string | undefined;
  /** Path in the process's own view, the same in every incarnation. */
  device: string;
  /** Full path, with the pid. */
  path: string;
  effect: EffectClass;
  risk: Risk;
  sensitive: boolean;
  outputTokensMax: number | undefined;
  /** Set where a call of it is a child process. */
  child?: ChildBinding;
}

/** Mount point of a server: `/mnt/mcp/{pid}-{server}`. */
export function mountPoint(pid: number, server: string): string {
  return `/mnt/mcp/${pid}-${server}`;
}

export class ToolTable {
  readonly #bindings = new Map<string, ToolBinding>();
  /** Servers of tools that were there once. */
  readonly #former = new Map<string, string>();
  readonly #mounted = new Set<string>();
  #definitions: readonly ToolDefinition[] = [];

  get(name: string): ToolBinding | undefined {
    return this.#bindings.get(name);
  }

  /** The tool whose node has this full path. */
  at(path: string): ToolBinding | undefined {
    return [...this.#bindings.values()].find((binding) =>
      binding.path === path && binding.child === undefined
    );
  }

  /** The server that had this tool once and has it no more, and whether it is mounted now. */
  former(name: string): { server: string; isMounted: boolean } | undefined {
    const server = this.#former.get(name);
    if (server === undefined) return undefined;
    return { server, isMounted: this.#mounted.has(server) };
  }

  /** Notes the tools that a server had in an earlier incarnation. */
  recall(server: string, tools: { [tool: string]: ToolRecord }): void {
    for (const { name } of Object.values(tools)) {
      if (!this.#bindings.has(name)) this.#former.set(name, server);
    }
  }

  /** Sorted by model-facing name; the same array until something changes. */
  get definitions(): readonly ToolDefinition[] {
    return this.#definitions;
  }

  /** Adds a tool of rnix itself, or replaces it. */
  bindOwn(binding: ToolBinding): void {
    const { modelName } = binding.definition;
    const before = this.#bindings.get(modelName);
    this.#bindings.set(modelName, binding);
    if (before?.definition !== binding.definition) this.#list();
  }

  /** Replaces the tools of one server by those in `facts`. */
  bind(spec: MountSpec, facts: MountFacts, pid: number): void {
    this.#mounted.add(spec.server);
    for (const [name, binding] of this.#bindings) {
      if (binding.server !== spec.server) continue;
      this.#bindings.delete(name);
      this.#former.set(name, spec.server);
    }
    for (const definition of facts.tools) {
      if (!isAllowed(spec.rules, definition.name)) continue;
      this.#former.delete(definition.modelName);
      const rules = withOwnEffect(spec.rules, definition);
      const tail = `/tools/${encodeURIComponent(definition.name)}`;
      this.#bindings.set(definition.modelName, {
        definition,
        server: spec.server,
        device: `/mnt/mcp/${spec.server}${tail}`,
        path: `${mountPoint(pid, spec.server)}${tail}`,
        effect: effectOf(rules, definition.name),
        risk: riskOf(rules, definition.name),
        sensitive: isSensitive(spec.rules, definition.name),
        outputTokensMax: spec.outputTokensMax,
      });
    }
    this.#list();
  }

  /** What the journal keeps of one server's tools. */
  records(server: string): { [tool: string]: ToolRecord } {
    return Object.fromEntries(
      this.#ofServer(server).map(({ definition, effect, risk, sensitive }) => [definition.name, {
        name: definition.modelName,
        sha256: definitionHash(definition),
        effect,
        risk,
        ...(sensitive ? { sensitive } : {}),
      }]),
    );
  }

  #list(): void {
    this.#definitions = [...this.#bindings.values()].map((binding) => binding.definition)
      .sort((a, b) => a.modelName < b.modelName ? -1 : 1);
  }

  #ofServer(server: string): ToolBinding[] {
    return [...this.#bindings.values()].filter((binding) => binding.server === server)
      .sort((a, b) => a.definition.name < b.definition.name ? -1 : 1);
  }
}

/** What the manifest declares goes before what a tool of rnix's own is. */
function withOwnEffect(rules: ToolRules, { name, effect }: ToolDefinition): ToolRules {
  if (effect === undefined) return rules;
  return { ...rules, effects: { ...rules.effects, [name]: effectOf(rules, name, effect) } };
}

/** Hash of all that a model is told of a tool, and of its output's schema. */
export function definitionHash(definition: ToolDefinition): string {
  const seen: Json = {
    name: definition.name,
    title: definition.title ?? null,
    description: definition.description ?? null,
    input: definition.inputSchema,
    output: definition.outputSchema ?? null,
  };
  return sha256Hex(canonicalJson(seen));
}

/** Names by what happened to them between two records of one server's tools. */
export function compareTools(
  before: { [tool: string]: ToolRecord },
  after: { [tool: string]: ToolRecord },
): { added: string[]; removed: string[]; changed: string[] } {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return {
    added: names.filter((name) => !Object.hasOwn(before, name)),
    removed: names.filter((name) => !Object.hasOwn(after, name)),
    changed: names.filter((name) => {
      // Names that every object has are names of tools too.
      if (!Object.hasOwn(before, name) || !Object.hasOwn(after, name)) return false;
      return before[name]?.sha256 !== after[name]?.sha256;
    }),
  };
}
