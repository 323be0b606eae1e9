/** What a schema finds wrong with a YAML file, in rnix's words and with line and column. */
import type { z } from "zod";
import { nearest } from "../base/nearest.ts";
import { isMapping } from "./not_built.ts";
import type { KeyPath, Position } from "./problems.ts";
import type { YamlSource } from "./yaml_source.ts";

/** Keys of the mapping at a path: those that exist, and others that one may mean. */
export type KeysAt = (path: KeyPath) => { known: readonly string[]; others: readonly string[] };

/** Undefined when the mistakes are too many for the schema library to hand over. */
export function checkShape<S extends z.ZodType>(
  schema: S,
  file: unknown,
): z.ZodSafeParseResult<z.output<S>> | undefined {
  try {
    return schema.safeParse(file);
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

/** Takes a mistake and its place. */
export type Add = (position: Position | (() => Position), message: string) => void;

/** Adds what a schema found, each at its place, unknown keys with the nearest known one. */
export function addIssues(
  issues: readonly z.core.$ZodIssue[],
  source: YamlSource,
  { add, keysAt }: { add: Add; keysAt: KeysAt },
): void {
  const typedInstead = new Set<string>();
  for (const issue of issues) {
    if (issue.code !== "unrecognized_keys") continue;
    for (const key of issue.keys) {
      const { known, others } = keysAt(issue.path);
      const near = nearest(key, [...known, ...others]);
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

/** The path as a person writes it. */
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
  number: "a number",
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
      if (issue.inclusive === false) {
        return `Expected a number above ${issue.minimum}, got ${describe(value)}`;
      }
      if (issue.minimum === 0) return `Expected a number from 0 on, got ${describe(value)}`;
      return `Expected a whole number from ${issue.minimum} on, got ${describe(value)}`;
    case "too_big":
      return `Expected at most ${issue.maximum}, got ${describe(value)}`;
    default:
      return issue.message;
  }
}

/** A value in the words of a message. */
export function describe(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") {
    return value.length > 60 ? `a text of ${value.length} characters` : JSON.stringify(value);
  }
  if (typeof value === "number") return `the number ${value}`;
  return typeof value === "boolean" ? String(value) : "a mapping";
}
