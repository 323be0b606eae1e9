/**
 * What `output:` may hold: the part of JSON Schema that says something about an answer. A word that isn't known is a mistake, since a validator would pass over it.
 */
import { z } from "zod";

const TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"] as const;
const count = z.int().min(0).optional();
/** Longest schema, as JSON. */
export const SCHEMA_CHARS_MAX = 64 * 1024;

/** Annotations, which say nothing about whether an answer fits. */
const annotations = {
  $schema: z.string().optional(),
  $id: z.string().optional(),
  $comment: z.string().optional(),
  title: z.string().optional(),
  description: z.string().optional(),
  default: z.json().optional(),
  examples: z.array(z.json()).optional(),
  format: z.string().optional(),
  deprecated: z.boolean().optional(),
};

const type = z.unknown().superRefine((value, context) => {
  const types: unknown[] = Array.isArray(value) ? value : [value];
  const wrong = types.find((one) => !TYPES.some((known) => known === one));
  if (types.length > 0 && wrong === undefined) return;
  const message = `Expected one of ${TYPES.join(", ")}, got ${JSON.stringify(wrong ?? value)}`;
  context.addIssue({ code: "custom", message });
});

const pattern = z.string().superRefine((value, context) => {
  try {
    new RegExp(value, "u");
  } catch {
    const message = `Not a regular expression: ${JSON.stringify(value)}`;
    context.addIssue({ code: "custom", message });
  }
});

const schema: z.ZodType = z.lazy(() => z.strictObject(words));
/** In most places a schema may also be true or false. */
const orBoolean: z.ZodType = z.unknown().superRefine((value, context) => {
  if (typeof value === "boolean") return;
  const parsed = schema.safeParse(value);
  for (const issue of parsed.error?.issues ?? []) context.addIssue({ ...issue });
});
const named = z.record(z.string(), orBoolean).optional();
const listed = z.array(orBoolean).min(1).optional();

const words = {
  ...annotations,
  type: type.optional(),
  enum: z.array(z.json()).min(1).optional(),
  const: z.json().optional(),
  properties: named,
  patternProperties: named,
  required: z.array(z.string()).optional(),
  additionalProperties: orBoolean.optional(),
  propertyNames: orBoolean.optional(),
  minProperties: count,
  maxProperties: count,
  items: orBoolean.optional(),
  prefixItems: listed,
  contains: orBoolean.optional(),
  minItems: count,
  maxItems: count,
  uniqueItems: z.boolean().optional(),
  minLength: count,
  maxLength: count,
  pattern: pattern.optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
  exclusiveMaximum: z.number().optional(),
  multipleOf: z.number().positive().optional(),
  allOf: listed,
  anyOf: listed,
  oneOf: listed,
  not: orBoolean.optional(),
  if: orBoolean.optional(),
  then: orBoolean.optional(),
  else: orBoolean.optional(),
};

/** Words of a schema, for the nearest one to a wrong one. */
export const SCHEMA_WORDS: readonly string[] = Object.keys(words);

/** A JSON schema for an answer: a mapping that isn't empty. */
export const outputSchema = z.strictObject(words).superRefine((value, context) => {
  if (Object.keys(value).length === 0) {
    context.addIssue({ code: "custom", message: "The schema is empty; say at least a type" });
  }
  if (JSON.stringify(value).length > SCHEMA_CHARS_MAX) {
    const message = `A schema has at most ${SCHEMA_CHARS_MAX} characters`;
    context.addIssue({ code: "custom", message });
  }
});
