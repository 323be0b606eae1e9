/**
 * The tools of one process: model-facing name → device path, class, limits. What isn't in here can't be called, so this table is also the permission check.
 */
import type { EffectClass, Risk } from "../base/effect.ts";
import { canonicalJson, type Json, sha256Hex } from "../base/json.ts";
import type { ToolRecord } from "../journal/entry.ts";
import { effectOf, isAllowed, isSensitive, riskOf } from "../policy/tool_rules.ts";
import type { ToolDefinition } from "../vfs/device.ts";
import type { MountFacts, MountSpec } from "./mount.ts";

export interface ToolBinding {
  definition: ToolDefinition;
  server: string;
  /** Path in the process's own view, the same in every incarnation. */
  device: string;
  /** Full path, with the pid. */
  path: string;
  effect: EffectClass;
  risk: Risk;
  sensitive: boolean;
  outputTokensMax: number | undefined;
}

/** Mount point of a server: `/mnt/mcp/{pid}-{server}`. */
export function mountPoint(pid: number, server: string): string {
  return `/mnt/mcp/${pid}-${server}`;
}

export class ToolTable {
  readonly #bindings = new Map<string, ToolBinding>();
  readonly #withdrawn = new Map<string, string>();
  #definitions: readonly ToolDefinition[] = [];

  get(name: string): ToolBinding | undefined {
    return this.#bindings.get(name);
  }

  /** Name of the server that had this tool once and has it no more. */
  withdrawnFrom(name: string): string | undefined {
    return this.#withdrawn.get(name);
  }

  /** Sorted by model-facing name; the same array until something changes. */
  get definitions(): readonly ToolDefinition[] {
    return this.#definitions;
  }

  /** Replaces the tools of one server by those in `facts`. */
  bind(spec: MountSpec, facts: MountFacts, pid: number): void {
    for (const [name, binding] of this.#bindings) {
      if (binding.server !== spec.server) continue;
      this.#bindings.delete(name);
      this.#withdrawn.set(name, spec.server);
    }
    for (const definition of facts.tools) {
      if (!isAllowed(spec.rules, definition.name)) continue;
      this.#withdrawn.delete(definition.modelName);
      const tail = `/tools/${encodeURIComponent(definition.name)}`;
      this.#bindings.set(definition.modelName, {
        definition,
        server: spec.server,
        device: `/mnt/mcp/${spec.server}${tail}`,
        path: `${mountPoint(pid, spec.server)}${tail}`,
        effect: effectOf(spec.rules, definition.name),
        risk: riskOf(spec.rules, definition.name),
        sensitive: isSensitive(spec.rules, definition.name),
        outputTokensMax: spec.outputTokensMax,
      });
    }
    this.#definitions = [...this.#bindings.values()].map((binding) => binding.definition)
      .sort((a, b) => a.modelName < b.modelName ? -1 : 1);
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

  #ofServer(server: string): ToolBinding[] {
    return [...this.#bindings.values()].filter((binding) => binding.server === server)
      .sort((a, b) => a.definition.name < b.definition.name ? -1 : 1);
  }
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
