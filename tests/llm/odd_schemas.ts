/**
 * Odd JSON Schemas of tools, and values to try on them, the same for the same seed.
 *
 * They use all of what servers are seen to send: drafts from 04 to 2020-12, references (recursive ones too), unions at the top, lists of types, boolean schemas, keywords without their type, and what no draft allows.
 */
import type { Json, JsonObject } from "../../src/base/json.ts";

export type Random = () => number;

/** Pseudo-random numbers from 0 to 1 (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pick<T>(random: Random, items: readonly T[]): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error("Nothing to pick");
  return item;
}

const NAMES = ["a", "b", "c", "kind"];
const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];
const SCALARS: readonly Json[] = ["x", "", "yes", 0, 1, -3, 2.5, true, false, null];
const DEEP_MAX = 3;

/** A tool's input schema: mostly an object, sometimes a union of them, a reference, or nothing at all. */
export function oddInputSchema(random: Random): JsonObject {
  const schema: JsonObject = random() < 0.6 ? objectSchema(random, 0) : topUnion(random);
  if (random() < 0.3) schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema[random() < 0.5 ? "$defs" : "definitions"] = { node: nodeSchema(random) };
  if (random() < 0.15) schema["additionalProperties"] = pick<Json>(random, [true, false, {}]);
  return schema;
}

function topUnion(random: Random): JsonObject {
  const key = pick(random, ["anyOf", "oneOf", "allOf"]);
  const branches = some(random, 1, 3, () => objectSchema(random, 1));
  const typed: JsonObject = random() < 0.5 ? { type: "object" } : {};
  return { ...typed, ...(random() < 0.3 ? objectSchema(random, 2) : {}), [key]: branches };
}

/** What `#/$defs/node` stands for: often something that holds itself. */
function nodeSchema(random: Random): Json {
  return pick<Json>(random, [
    { type: "object", properties: { a: { type: "string" }, b: { $ref: "#/$defs/node" } } },
    { type: "object", properties: { b: { type: "array", items: { $ref: "#/definitions/node" } } } },
    { type: ["string", "null"] },
    true,
    { $ref: "#/$defs/node" },
  ]);
}

function some<T>(random: Random, least: number, most: number, make: () => T): T[] {
  return Array.from({ length: least + Math.floor(random() * (most - least + 1)) }, make);
}

function objectSchema(random: Random, depth: number): JsonObject {
  const properties: JsonObject = {};
  for (const name of some(random, 0, 3, () => pick(random, NAMES))) {
    properties[name] = oddSchema(random, depth + 1);
  }
  const schema: JsonObject = {};
  if (depth > 0 || random() < 0.85) schema["type"] = "object";
  if (random() < 0.9) schema["properties"] = properties;
  if (random() < 0.5) {
    schema["required"] = [...new Set(some(random, 0, 2, () => pick(random, NAMES)))];
  }
  if (random() < 0.3) {
    schema["additionalProperties"] = pick<Json>(random, [true, false, { type: "string" }]);
  }
  if (random() < 0.1) schema["patternProperties"] = { "^x": { type: "number" }, "^[ab]$": true };
  if (random() < 0.1) schema["minProperties"] = 1;
  if (random() < 0.1) schema["dependencies"] = { a: ["b"] };
  if (random() < 0.1) schema["if"] = { required: ["a"] };
  if (random() < 0.1) schema["not"] = { required: ["kind"] };
  return schema;
}

function oddSchema(random: Random, depth: number): Json {
  if (depth > DEEP_MAX) {
    return pick<Json>(random, [true, {}, { type: "string" }, { type: "number" }]);
  }
  const deeper = () => oddSchema(random, depth + 1);
  const kinds: (() => Json)[] = [
    () => objectSchema(random, depth),
    () => ({ type: pick(random, TYPES) }),
    () => ({ type: some(random, 1, 3, () => pick(random, TYPES)).filter(isFirst) }),
    () => ({ type: ["string", "null"], enum: ["x", "yes", null] }),
    () => ({ enum: some(random, 1, 4, () => pick(random, SCALARS)) }),
    () => ({ type: "string", enum: ["x", "yes", ""] }),
    () => ({ const: pick(random, SCALARS) }),
    () => ({ [pick(random, ["anyOf", "oneOf", "allOf"])]: some(random, 1, 3, deeper) }),
    () => ({ type: "object", allOf: some(random, 1, 2, () => objectSchema(random, depth + 1)) }),
    () => ({ ...objectSchema(random, depth), anyOf: [{ required: ["a"] }, { required: ["b"] }] }),
    () => ({ $ref: pick(random, ["#/$defs/node", "#/definitions/node", "#"]), description: "one" }),
    () => pick<Json>(random, [true, false, {}]),
    () => ({ type: "array" }),
    () => ({ type: "array", items: deeper(), minItems: 1, uniqueItems: true }),
    () => ({ type: "array", items: [deeper(), deeper()], additionalItems: false }),
    () => ({ type: "array", prefixItems: [deeper(), deeper()], items: false }),
    () => ({ type: "string", pattern: "^x", minLength: 1, maxLength: 3, format: "uri" }),
    () => ({ type: "integer", minimum: 0, exclusiveMaximum: 2, multipleOf: 1 }),
    () => ({ type: "number", minimum: 1, exclusiveMinimum: true, default: 1, nullable: true }),
    () => ({ items: { type: "number" }, minLength: 1 }),
    () => ({ title: "T", description: "d", examples: ["x"], "x-own": { y: 1 }, deprecated: true }),
  ];
  return pick(random, kinds)();
}

function isFirst<T>(item: T, index: number, items: readonly T[]): boolean {
  return items.indexOf(item) === index;
}

/** A value such as the schema's author had in mind: of a union one branch, of an object its own properties. Mostly, not surely, one that fits. */
export function valueFor(random: Random, schema: Json, root: Json = schema, depth = 0): Json {
  const views = viewsOf(random, schema, root, depth);
  const listed = views.flatMap((view) => asList(view["enum"]));
  const fixed = [
    ...listed,
    ...views.flatMap((view) => "const" in view ? [view["const"] ?? null] : []),
  ];
  if (fixed.length > 0) return pick(random, fixed);
  const types = views.flatMap((view) => asList(view["type"] ?? []).filter((type) => type !== ""));
  const isObject = types.includes("object") ||
    types.length === 0 && views.some((view) => isRecord(view["properties"]));
  if (depth === 0 || isObject) return objectFor(random, views, root, depth);
  if (types.includes("array")) return arrayFor(random, views, root, depth);
  const type = types.length === 0 ? undefined : pick(random, types);
  const fitting = SCALARS.filter((value) => type === undefined || hasType(value, type));
  return pick(random, fitting.length === 0 ? SCALARS : fitting);
}

/** The schema with what it refers to and one way through its unions. */
function viewsOf(random: Random, schema: Json, root: Json, depth: number): JsonObject[] {
  if (!isRecord(schema) || depth > 6) return [];
  const { $ref, allOf, anyOf, oneOf } = schema;
  const deeper = (part: Json) => viewsOf(random, part, root, depth + 1);
  return [
    schema,
    ...(typeof $ref === "string" ? deeper(targetOf(root, $ref)) : []),
    ...asList(allOf ?? []).flatMap(deeper),
    ...[anyOf, oneOf].flatMap((union) =>
      Array.isArray(union) && union.length > 0 ? deeper(pick(random, union)) : []
    ),
  ];
}

function targetOf(root: Json, ref: string): Json {
  let target: Json = root;
  for (const part of ref.split("/").slice(1)) target = isRecord(target) ? target[part] ?? {} : {};
  return target;
}

function objectFor(
  random: Random,
  views: readonly JsonObject[],
  root: Json,
  depth: number,
): JsonObject {
  const value: JsonObject = {};
  for (const { properties, additionalProperties, patternProperties } of views) {
    for (const [name, member] of Object.entries(isRecord(properties) ? properties : {})) {
      if (random() < 0.75) value[name] = valueFor(random, member, root, depth + 1);
    }
    if (isRecord(additionalProperties) && random() < 0.3) {
      value["more"] = valueFor(random, additionalProperties, root, depth + 1);
    }
    if (patternProperties !== undefined && random() < 0.5) value["x1"] = 2;
  }
  return value;
}

function arrayFor(random: Random, views: readonly JsonObject[], root: Json, depth: number): Json {
  const items = views.flatMap((view) => [view["items"], view["prefixItems"]])
    .flatMap((part) => Array.isArray(part) ? part : part === undefined ? [] : [part]);
  return some(
    random,
    0,
    2,
    () => valueFor(random, pick(random, [...items, true]), root, depth + 1),
  );
}

function hasType(value: Json, type: Json): boolean {
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  const kind: Json = typeof value;
  return kind === type;
}

function asList(value: Json | undefined): Json[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

function isRecord(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
