/**
 * JSON Schema of a tool's input, rewritten to what OpenAI-shaped APIs take.
 *
 * Providers refuse a whole request for one schema that they don't like, so nothing is sent raw: local `$ref`s are resolved, boolean subschemas, type arrays and draft-04 to draft-07 leftovers are rewritten, unions at the top become one object. What can't be said otherwise goes into the description; what can't be projected at all is refused with a reason, and only that tool is set aside.
 * The result depends on the input alone and keeps its order of keys.
 */
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";

/** `note` is for the tool's description: what the projection could not say in the schema. */
export type Projection = { schema: JsonObject; note?: string } | { refused: string };

/** Levels of nesting, resolved references included. */
export const DEPTH_MAX = 32;
/** Subschemas in all, resolved references included. */
export const NODES_MAX = 5000;

/** Keywords that are dropped: identity and vocabulary, and validation that providers don't know and the server checks anyway. */
const DROPPED = new Set([
  "$schema",
  "$id",
  "id",
  "$anchor",
  "$comment",
  "$vocabulary",
  "$dynamicRef",
  "$dynamicAnchor",
  "$recursiveRef",
  "$recursiveAnchor",
  "$defs",
  "definitions",
  "examples",
  "readOnly",
  "writeOnly",
  "contentMediaType",
  "contentEncoding",
  "contentSchema",
  "if",
  "then",
  "else",
  "not",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "unevaluatedProperties",
  "unevaluatedItems",
  "additionalItems",
  "propertyNames",
  "contains",
  "minContains",
  "maxContains",
]);

const UNIONS = ["anyOf", "oneOf", "allOf"] as const;

class Refusal extends Error {}

/** Projects a tool's input schema. Never throws; never fetches anything. */
export function projectSchema(schema: Json): Projection {
  try {
    return new Projector(schema).top();
  } catch (thrown) {
    if (thrown instanceof Refusal) return { refused: thrown.message };
    throw thrown;
  }
}

class Projector {
  readonly #root: Json;
  readonly #notes: string[] = [];
  #nodes = 0;

  constructor(root: Json) {
    this.#root = root;
  }

  top(): Projection {
    if (this.#root === true) return { schema: emptyObject() };
    if (!isJsonObject(this.#root)) throw new Refusal("Input schema isn't an object");
    const projected = this.#project(this.#root, [], 0);
    const schema = this.#asObject(projected);
    const note = this.#notes.join("; ");
    return note === "" ? { schema } : { schema, note };
  }

  /** The top must be one plain object: unions there are merged. */
  #asObject(schema: JsonObject): JsonObject {
    let object = schema;
    for (const union of UNIONS) {
      const branches = object[union];
      if (!Array.isArray(branches)) continue;
      const { [union]: _, ...rest } = object;
      const forms = branches.filter(isObject);
      // Arguments are always an object: of a choice, the other branches can never be taken.
      const taken = union === "allOf" ? forms : forms.filter(mayBeObject);
      object = this.#merge(rest, taken.length === 0 ? forms : taken, union);
    }
    const type = object.type;
    if (!mayBeObject(object)) {
      throw new Refusal(
        `Input schema has type ${JSON.stringify(type)}, a tool's arguments are an object`,
      );
    }
    const { type: _, properties, ...rest } = object;
    return { type: "object", properties: isJsonObject(properties) ? properties : {}, ...rest };
  }

  /** One object with the properties of all branches; required is what every branch requires (all of it for `allOf`). */
  #merge(base: JsonObject, branches: JsonObject[], union: "anyOf" | "oneOf" | "allOf"): JsonObject {
    const objects = branches.map((branch) => this.#asObject(branch));
    if (objects.length === 0) return base;
    const properties: JsonObject = {};
    for (const object of [base, ...objects]) {
      for (const [name, value] of Object.entries(asObject(object.properties))) {
        const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
        define(properties, name, known === undefined ? value : joinTypes(known, value, union));
      }
    }
    const lists = objects.map((object) => requiredOf(object));
    const shared = union === "allOf"
      ? lists.flat()
      : (lists[0] ?? []).filter((name) => lists.every((list) => list.includes(name)));
    const required = [...new Set([...requiredOf(base), ...shared])];
    if (union !== "allOf" && objects.length > 1) {
      const forms = objects.map((object) =>
        Object.keys(asObject(object.properties)).join(", ") || "none"
      );
      const word = union === "oneOf" ? "exactly one" : "at least one";
      this.#notes.push(`Arguments follow ${word} of these forms: (${forms.join(") or (")})`);
    }
    const open = objects.some((object) => object.additionalProperties !== false);
    const { properties: _, required: __, additionalProperties, ...rest } = base;
    return {
      ...rest,
      type: "object",
      properties,
      ...(required.length === 0 ? {} : { required }),
      ...(additionalProperties === undefined
        ? (open ? {} : { additionalProperties: false })
        : { additionalProperties: open ? additionalProperties : false }),
    };
  }

  #project(schema: Json, trail: readonly string[], depth: number): JsonObject {
    if (depth > DEPTH_MAX) {
      throw new Refusal(`Input schema is nested more than ${DEPTH_MAX} levels deep`);
    }
    if (++this.#nodes > NODES_MAX) {
      throw new Refusal(`Input schema has more than ${NODES_MAX} parts`);
    }
    if (schema === true) return {};
    if (schema === false) return {};
    if (!isJsonObject(schema)) {
      throw new Refusal(`Input schema holds ${JSON.stringify(schema)} where a schema belongs`);
    }
    if (typeof schema.$ref === "string") return this.#resolve(schema, schema.$ref, trail, depth);
    const projected: JsonObject = {};
    for (const [key, value] of Object.entries(plainKeywords(schema))) {
      if (DROPPED.has(key)) continue;
      this.#keyword(projected, key, value, trail, depth);
    }
    return simplifyType(projected);
  }

  #keyword(
    into: JsonObject,
    key: string,
    value: Json,
    trail: readonly string[],
    depth: number,
  ): void {
    switch (key) {
      case "properties":
        into.properties = this.#properties(value, trail, depth);
        return;
      case "items":
        // A list of schemas is a tuple: any of them may stand anywhere.
        if (Array.isArray(value)) into.items = this.#anyOf(value, trail, depth);
        else into.items = this.#project(value, trail, depth + 1);
        return;
      case "additionalProperties":
        into[key] = typeof value === "boolean" ? value : this.#project(value, trail, depth + 1);
        return;
      case "anyOf":
      case "oneOf":
      case "allOf":
        this.#union(into, key, value, trail, depth);
        return;
      case "required":
        // Draft-04's predecessors had a boolean here.
        if (Array.isArray(value)) into.required = value.filter((name) => typeof name === "string");
        return;
      case "const":
        into.enum = [value];
        return;
      case "enum":
        if (Array.isArray(value)) into.enum = distinct(value);
        return;
      case "exclusiveMinimum":
      case "exclusiveMaximum":
        if (typeof value === "number") into[key] = value;
        return;
      default:
        define(into, key, value);
    }
  }

  #properties(value: Json, trail: readonly string[], depth: number): JsonObject {
    if (!isJsonObject(value)) {
      throw new Refusal('"properties" in the input schema isn\'t an object');
    }
    const properties: JsonObject = {};
    for (const [name, member] of Object.entries(value)) {
      if (member === false) continue;
      define(properties, name, this.#project(member, trail, depth + 1));
    }
    return properties;
  }

  #anyOf(branches: Json[], trail: readonly string[], depth: number): JsonObject {
    const distinct = new Map<string, JsonObject>();
    for (const branch of branches) {
      const projected = this.#project(branch, trail, depth + 1);
      distinct.set(JSON.stringify(projected), projected);
    }
    const [only, ...more] = distinct.values();
    if (only === undefined) return {};
    return more.length === 0 ? only : { anyOf: [only, ...more] };
  }

  #union(
    into: JsonObject,
    key: "anyOf" | "oneOf" | "allOf",
    value: Json,
    trail: readonly string[],
    depth: number,
  ): void {
    if (!Array.isArray(value)) throw new Refusal(`"${key}" in the input schema isn't a list`);
    const branches = value.filter((branch) => branch !== false)
      .map((branch) => this.#project(branch, trail, depth + 1));
    if (depth === 0 || branches.length === 0) {
      if (branches.length > 0) into[key] = branches;
      return;
    }
    if (key !== "allOf") {
      // Strict providers know only anyOf below the top.
      into.anyOf = Array.isArray(into.anyOf) ? [...into.anyOf, ...branches] : branches;
      return;
    }
    const merged = branches.every((branch) => isPlainObject(branch))
      ? this.#merge({}, branches, "allOf")
      : Object.assign({}, ...branches);
    for (const [name, member] of Object.entries(asObject(merged))) {
      if (into[name] === undefined) define(into, name, member);
      else if (name === "properties") {
        define(into, name, { ...asObject(into[name]), ...asObject(member) });
      } else if (name === "required") {
        define(into, name, [
          ...new Set([...requiredOf(into), ...requiredOf({ required: member })]),
        ]);
      }
    }
  }

  #resolve(schema: JsonObject, ref: string, trail: readonly string[], depth: number): JsonObject {
    if (!ref.startsWith("#")) {
      throw new Refusal(`Input schema refers to "${ref}", only local references are followed`);
    }
    if (trail.includes(ref)) {
      // A schema that holds itself has no finite form: from the second round on anything goes.
      this.#notes.push(`Nested ${ref.split("/").at(-1) ?? ref} has the same form again`);
      return {};
    }
    const target = pointerTarget(this.#root, ref);
    if (target === undefined) {
      throw new Refusal(`Input schema refers to "${ref}", which isn't in it`);
    }
    const { $ref: _, ...siblings } = schema;
    const resolved = this.#project(target, [...trail, ref], depth + 1);
    if (Object.keys(siblings).every((key) => DROPPED.has(key))) return resolved;
    return { ...resolved, ...this.#project(siblings, trail, depth + 1) };
  }
}

/** Tuples as draft-07 has them, and names by pattern as further properties: what is dropped must not leave the rest narrower. */
function plainKeywords(schema: JsonObject): JsonObject {
  const { prefixItems, patternProperties, ...rest } = schema;
  const plain: JsonObject = rest;
  if (Array.isArray(prefixItems)) {
    const more = isJsonObject(rest["items"]) ? [rest["items"]] : [];
    plain["items"] = [...prefixItems, ...more];
  }
  if (!isJsonObject(patternProperties)) return plain;
  const members = Object.values(patternProperties).filter((member) => member !== false);
  const [only, ...others] = distinct(members);
  if (only === undefined) return plain;
  const { additionalProperties, ...open } = plain;
  // `{"^.*$": …}` and nothing else is how maps are written.
  const isMap = others.length === 0 && additionalProperties === false;
  return isMap ? { ...open, additionalProperties: only } : open;
}

/** Without what is there twice. */
function distinct(values: readonly Json[]): Json[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

/** `["string", "null"]` and several types become `anyOf`; types are inferred where only their keywords are given; an empty enum is kept out. */
function simplifyType(schema: JsonObject): JsonObject {
  const { type } = schema;
  if (type === undefined && isJsonObject(schema.properties)) return { type: "object", ...schema };
  if (type === "array" && schema.items === undefined) return { ...schema, items: {} };
  if (!Array.isArray(type)) return schema;
  const types = type.filter((name) => typeof name === "string");
  const [only] = types;
  if (only !== undefined && types.length === 1) return simplifyType({ ...schema, type: only });
  const { type: _, title, description, default: fallback, ...rest } = schema;
  const branches = types.map((name): JsonObject =>
    simplifyType({ type: name, ...keywordsOf(name, rest) })
  );
  return {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(Array.isArray(rest.anyOf) ? { anyOf: rest.anyOf } : { anyOf: branches }),
  };
}

const KEYWORDS: { [type: string]: readonly string[] } = {
  object: ["properties", "required", "additionalProperties", "minProperties", "maxProperties"],
  array: ["items", "minItems", "maxItems", "uniqueItems"],
  string: ["minLength", "maxLength", "pattern", "format"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  integer: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
};

/** The keywords that concern one of several types, and its values of an enum. */
function keywordsOf(type: string, schema: JsonObject): JsonObject {
  const known = KEYWORDS[type] ?? [];
  const members = Object.entries(schema).filter(([key]) => known.includes(key));
  const values = Array.isArray(schema.enum)
    ? schema.enum.filter((value) =>
      typeOf(value) === type || (type === "number" && typeof value === "number")
    )
    : [];
  if (values.length > 0) members.push(["enum", values]);
  return Object.fromEntries(members);
}

function typeOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}

/** Two schemas of one property as one. */
function joinTypes(one: Json, other: Json, union: string): Json {
  if (JSON.stringify(one) === JSON.stringify(other)) return one;
  if (union === "allOf") return { ...asObject(one), ...asObject(other) };
  const [first, second] = [asObject(one), asObject(other)];
  // Enumerations (the usual tag of a union) are joined, anything else stands side by side.
  if (Array.isArray(first.enum) && Array.isArray(second.enum) && first.type === second.type) {
    return { ...first, enum: [...new Set([...first.enum, ...second.enum])] };
  }
  return { anyOf: [...(Array.isArray(first.anyOf) ? first.anyOf : [first]), second] };
}

function pointerTarget(root: Json, ref: string): Json | undefined {
  let target: Json | undefined = root;
  let pointer: string;
  try {
    pointer = decodeURIComponent(ref.slice(1));
  } catch {
    return undefined;
  }
  if (pointer !== "" && !pointer.startsWith("/")) return undefined;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(target)) target = target[Number(key)];
    else target = isJsonObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
  }
  return target;
}

/** Sets a member of any name, `__proto__` included. */
function define(object: JsonObject, name: string, value: Json): void {
  Object.defineProperty(object, name, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function mayBeObject(schema: JsonObject): boolean {
  return schema.type === undefined || schema.type === "object";
}

function isObject(value: Json): value is JsonObject {
  return isJsonObject(value);
}

function asObject(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function isPlainObject(schema: JsonObject): boolean {
  return schema.type === "object" || isJsonObject(schema.properties) ||
    Array.isArray(schema.required);
}

function requiredOf(schema: JsonObject): string[] {
  return Array.isArray(schema.required)
    ? schema.required.filter((name) => typeof name === "string")
    : [];
}

function emptyObject(): JsonObject {
  return { type: "object", properties: {} };
}
