/**
 * Checks values against a tool's JSON Schema (draft-07, 2020-12), before a call is sent and after its answer came.
 *
 * A schema that can't be compiled checks nothing: the server is the judge then, and also where a pattern in it could search for ages: that would stop everything else. Nothing is fetched. The validator library is loaded with the first check.
 */
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { patternSteps } from "./pattern_steps.ts";

/** What is wrong with a value, or undefined: `/a/b must be string`. */
export type Check = (value: Json) => string | undefined;

/** Larger schemas are not compiled: it would block every other run. */
const SCHEMA_CHARS_MAX = 256 * 1024;
const PROBLEMS_MAX = 3;
/** Of all patterns in one check, by the bound of `patternSteps`: a second at worst. */
const PATTERN_STEPS_MAX = 20_000_000;

/** What the patterns of the check at work may still cost. */
let patternStepsLeft = PATTERN_STEPS_MAX;

/** In place of the library's own, which holds each item against each other one: minutes for a long list. */
const UNIQUE_ITEMS = {
  keyword: "uniqueItems",
  type: "array" as const,
  schemaType: "boolean" as const,
  validate: (isWanted: boolean, items: Json[]) =>
    !isWanted || new Set(items.map(canonicalJson)).size === items.length,
  error: { message: "must NOT have duplicate items" },
};

/** A value that can't be judged. */
class Unjudged extends Error {}

/** A pattern of a schema, for the validator library. */
function measuredPattern(pattern: string, flags: string) {
  const expression = new RegExp(pattern, flags);
  return {
    test(text: string): boolean {
      patternStepsLeft -= pattern.length + patternSteps(pattern, text.length);
      if (patternStepsLeft < 0) throw new Unjudged();
      return expression.test(text);
    },
    /** The library tells patterns apart by it. */
    toString: () => expression.toString(),
  };
}

/** Throws for a schema that can't be compiled. */
type Compile = (schema: JsonObject) => Check;

interface Compilers {
  draft07: Compile;
  draft2020: Compile;
}

let compilers: Promise<Compilers> | undefined;
const checks = new WeakMap<JsonObject, Promise<Check>>();

/** The check for `schema`, compiled once per schema object. Rejects only where the library can't be loaded: then nothing would be checked, and nobody would know. */
export function checkFor(schema: JsonObject): Promise<Check> {
  let check = checks.get(schema);
  if (check === undefined) {
    check = compile(schema);
    checks.set(schema, check);
  }
  return check;
}

async function compile(schema: JsonObject): Promise<Check> {
  if (JSON.stringify(schema).length > SCHEMA_CHARS_MAX) return () => undefined;
  const { draft07, draft2020 } = await loadCompilers();
  const dialect = schema["$schema"];
  const old = typeof dialect === "string" && /draft-0[467]/.test(dialect);
  try {
    return (old ? draft07 : draft2020)(schema);
  } catch {
    return () => undefined;
  }
}

interface Problem {
  instancePath: string;
  message?: string;
  params: Record<string, unknown>;
}

interface Validator {
  (value: unknown): unknown;
  errors?: Problem[] | null;
}

/** Loads the validator library, once; the first check does it otherwise. */
export function loadCompilers(): Promise<Compilers> {
  compilers ??= importCompilers();
  return compilers;
}

async function importCompilers(): Promise<Compilers> {
  // Modules of the older format: bundled, they have nothing but a default export.
  const [{ default: ajv }, { default: ajv2020 }] = await Promise.all([
    import("ajv"),
    import("ajv/dist/2020.js"),
  ]);
  const options = {
    strict: false,
    validateSchema: false,
    allErrors: false,
    validateFormats: false,
    addUsedSchema: false,
    logger: false,
    code: { regExp: Object.assign(measuredPattern, { code: "measuredPattern" }) },
  } as const;
  const draft07 = new ajv.Ajv(options);
  const draft2020 = new ajv2020.Ajv2020(options);
  for (const each of [draft07, draft2020]) {
    each.removeKeyword("uniqueItems").addKeyword(UNIQUE_ITEMS);
  }
  return {
    draft07: (schema) => toCheck(draft07.compile(withoutDialect(schema))),
    draft2020: (schema) => toCheck(draft2020.compile(withoutDialect(schema))),
  };
}

/** The dialect was chosen by us; naming one that the library doesn't hold would only make it fail. */
function withoutDialect(schema: JsonObject): JsonObject {
  const { $schema: _, ...rest } = schema;
  return rest;
}

function toCheck(validate: Validator): Check {
  return (value) => {
    patternStepsLeft = PATTERN_STEPS_MAX;
    try {
      if (validate(value) === true) return undefined;
    } catch (thrown) {
      if (thrown instanceof Unjudged) return undefined;
      throw thrown;
    }
    return (validate.errors ?? []).slice(0, PROBLEMS_MAX).map(sentence).join("; ") || "is invalid";
  };
}

function sentence({ instancePath, message, params }: Problem): string {
  const detail = params["additionalProperty"] ?? params["allowedValues"] ?? params["allowedValue"];
  return `${instancePath === "" ? "/" : instancePath} ${message ?? "is invalid"}${
    detail === undefined ? "" : ` (${JSON.stringify(detail)})`
  }`;
}

/** Arguments as a tool takes them: none, null and empty text mean no arguments; undefined for what is no object. */
export function asArguments(input: Json): JsonObject | undefined {
  if (input === null || input === "") return {};
  return isJsonObject(input) ? input : undefined;
}
