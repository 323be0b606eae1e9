/**
 * A workflow's file as far as it can be understood, mistakes or not: what the checks between nodes look at, so that they are told together with the mistakes of single values.
 */
import type { Json } from "../../base/json.ts";
import { isMapping } from "../not_built.ts";
import type { KeyPath } from "../problems.ts";

/** A name that the file gives, and where. */
export interface Named {
  name: string;
  path: KeyPath;
}

/** A text that may hold expressions. `lone`: it is one expression, with or without `${{ }}`. */
export interface DraftText {
  text: string;
  path: KeyPath;
  kind: "text" | "lone";
  /** Whether the item of `for_each` is known there. */
  hasItem: boolean;
}

/** A node as far as it can be understood. */
export interface DraftNode {
  name: string;
  path: KeyPath;
  after: Named[];
  texts: DraftText[];
  when?: DraftText;
  isForEach: boolean;
  /** Name of the item in expressions. */
  as: string;
  /** Schema of the answer, as it stands there. */
  output?: Record<string, unknown>;
  /** Who does it. */
  agent?: Named;
}

/** A file as far as it can be understood. */
export interface Draft {
  nodes: DraftNode[];
  parameters: string[];
  /** The result of the whole. */
  result?: DraftText;
}

/** What the item of `for_each` is called without `as`. */
export const ITEM = "item";

/** What there is of a `kind: workflow` file. */
export function draftOfWorkflow(file: Record<string, unknown>): Draft {
  const nodes = mappingOf(file["nodes"]).map(([name, node]) => draftNode(name, node));
  const { result } = file;
  return {
    nodes,
    parameters: isMapping(file["parameters"]) ? Object.keys(file["parameters"]) : [],
    ...typeof result === "string"
      ? { result: { text: result, path: ["result"], kind: "text" as const, hasItem: false } }
      : {},
  };
}

/** What there is of a compose file. */
export function draftOfCompose(file: Record<string, unknown>): Draft {
  const nodes = mappingOf(file["agents"]).map(([name, node]): DraftNode => {
    const path = ["agents", name];
    const { intent, agent } = node;
    return {
      name,
      path,
      after: afterOf(node["depends_on"], [...path, "depends_on"]),
      texts: typeof intent === "string" ? [textAt(intent, [...path, "intent"], false)] : [],
      isForEach: false,
      as: ITEM,
      agent: typeof agent === "string" ? { name: agent, path: [...path, "agent"] } : { name, path },
    };
  });
  return { nodes, parameters: [] };
}

function mappingOf(value: unknown): [string, Record<string, unknown>][] {
  if (!isMapping(value)) return [];
  return Object.entries(value).map(([name, inner]) => [name, isMapping(inner) ? inner : {}]);
}

function draftNode(name: string, node: Record<string, unknown>): DraftNode {
  const path = ["nodes", name];
  const { when, for_each: forEach, output, as } = node;
  const isForEach = forEach !== undefined;
  const texts: DraftText[] = [];
  if (typeof node["intent"] === "string") {
    texts.push(textAt(node["intent"], [...path, "intent"], isForEach));
  }
  for (const [key, value] of isMapping(node["with"]) ? Object.entries(node["with"]) : []) {
    if (typeof value === "string") texts.push(textAt(value, [...path, "with", key], isForEach));
  }
  if (typeof forEach === "string") texts.push(loneAt(forEach, [...path, "for_each"]));
  const condition = typeof when === "boolean" ? String(when) : when;
  const agent = ["agent", "workflow"].find((key) => typeof node[key] === "string");
  return {
    name,
    path,
    after: afterOf(node["depends_on"], [...path, "depends_on"]),
    texts,
    ...typeof condition === "string" ? { when: loneAt(condition, [...path, "when"]) } : {},
    isForEach,
    as: typeof as === "string" ? as : ITEM,
    ...isMapping(output) ? { output } : {},
    ...agent === undefined ? {} : { agent: { name: String(node[agent]), path: [...path, agent] } },
  };
}

function textAt(text: string, path: KeyPath, hasItem: boolean): DraftText {
  return { text, path, kind: "text", hasItem };
}

function loneAt(text: string, path: KeyPath): DraftText {
  return { text, path, kind: "lone", hasItem: false };
}

function afterOf(value: unknown, path: KeyPath): Named[] {
  if (typeof value === "string") return [{ name: value, path }];
  if (isMapping(value)) {
    return Object.keys(value).map((name) => ({ name, path: [...path, name] }));
  }
  if (!Array.isArray(value)) return [];
  return value.flatMap((name: unknown, index) =>
    typeof name === "string" ? [{ name, path: [...path, index] }] : []
  );
}

/** Whether a value is a schema of an object whose members are known by name. */
export function membersOf(schema: Json | Record<string, unknown>): string[] | undefined {
  if (!isMapping(schema) || !isMapping(schema["properties"])) return undefined;
  const open = schema["additionalProperties"];
  const isOpen = open !== undefined && open !== false;
  const others = ["allOf", "anyOf", "oneOf", "patternProperties", "if"];
  if (isOpen || others.some((word) => Object.hasOwn(schema, word))) return undefined;
  return Object.keys(schema["properties"]);
}
