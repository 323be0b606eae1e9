/**
 * JSON Schema of a tool's input as Gemini takes it: a subset of keywords, with which it refuses the whole request for any other.
 *
 * It starts from the common form, where references and unions at the top are gone already. What the subset can't say goes into descriptions, for the model to read.
 */
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { type Projection, projectSchema } from "../schema_projection.ts";

/** Keywords that are passed on as they are. */
const KEPT = new Set([
  ...["type", "title", "description", "required"],
  ...["minItems", "maxItems", "minimum", "maximum"],
]);

/** Formats that each type may have. */
const FORMATS: { readonly [type: string]: readonly string[] } = {
  string: ["date-time", "enum"],
  number: ["float", "double"],
  integer: ["int32", "int64"],
};

/** Keywords that a description can say. */
const TOLD: { readonly [keyword: string]: string } = {
  default: "default",
  format: "format",
  pattern: "pattern",
  minLength: "at least this many characters",
  maxLength: "at most this many characters",
  exclusiveMinimum: "more than",
  exclusiveMaximum: "less than",
  multipleOf: "a multiple of",
};

/** Projects a tool's input schema for Gemini. Never throws. */
export function projectForGemini(schema: JsonObject): Projection {
  const projection = projectSchema(schema);
  if ("refused" in projection) return projection;
  return { ...projection, schema: subset(projection.schema) };
}

function subset(schema: JsonObject): JsonObject {
  const { anyOf } = schema;
  if (Array.isArray(anyOf)) return union(schema, anyOf.filter(isJsonObject));
  const kept: JsonObject = {};
  const told: string[] = [];
  for (const [key, value] of Object.entries(schema)) {
    if (key === "properties" && isJsonObject(value)) kept.properties = properties(value);
    else if (key === "items" && isJsonObject(value)) kept.items = subset(value);
    else if (key === "enum" && Array.isArray(value)) choice(kept, told, schema, value);
    else if (key === "format" && isFormat(schema, value)) kept.format = value;
    else if (KEPT.has(key)) kept[key] = value;
    else if (TOLD[key] !== undefined) told.push(`${TOLD[key]}: ${JSON.stringify(value)}`);
  }
  return withRequiredKnown(described(kept, told));
}

/** Beside `anyOf` nothing else may stand: a description goes into the branches. */
function union(schema: JsonObject, branches: JsonObject[]): JsonObject {
  const { description } = schema;
  return {
    anyOf: branches.map((branch) => {
      const inner = subset(branch);
      return typeof description === "string" && inner.description === undefined
        ? { ...inner, description }
        : inner;
    }),
  };
}

function properties(members: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const [name, member] of Object.entries(members)) {
    Object.defineProperty(kept, name, {
      value: isJsonObject(member) ? subset(member) : {},
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return kept;
}

/** A list of values: only texts may be in it. */
function choice(kept: JsonObject, told: string[], schema: JsonObject, values: Json[]): void {
  const texts = values.filter((value) => typeof value === "string" && value !== "");
  const type = schema.type ?? "string";
  if (type === "string" && texts.length === values.length && texts.length > 0) {
    kept.type = "string";
    kept.enum = texts;
  } else told.push(`one of: ${values.map((value) => JSON.stringify(value)).join(", ")}`);
}

function isFormat({ type }: JsonObject, format: Json): boolean {
  return typeof type === "string" && typeof format === "string" &&
    (FORMATS[type] ?? []).includes(format);
}

function described(schema: JsonObject, told: readonly string[]): JsonObject {
  if (told.length === 0) return schema;
  const { description } = schema;
  const before = typeof description === "string" && description !== "" ? `${description} ` : "";
  return { ...schema, description: `${before}(${told.join("; ")})` };
}

/** Only properties that are there may be required. */
function withRequiredKnown(schema: JsonObject): JsonObject {
  const { required, ...rest } = schema;
  if (!Array.isArray(required)) return schema;
  const known = isJsonObject(rest.properties) ? rest.properties : {};
  const names = required.filter((name) => typeof name === "string" && Object.hasOwn(known, name));
  return names.length === 0 ? rest : { ...rest, required: names };
}
