/**
 * Headers that repeat what a message says, so that what lies between can route by them (2026-07-28): the version, the method, the name, and arguments that a tool's schema marks with `x-mcp-header`.
 *
 * A mark anywhere but on a text, integer or boolean property that is reached by names alone, or one name twice, makes the tool unusable over HTTP.
 */
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";

const MARK = "x-mcp-header";
const VERSION_META = "io.modelcontextprotocol/protocolVersion";
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const MARKED_TYPES: readonly Json[] = ["string", "integer", "boolean"];
/** Parameter that names what a request is about. */
const NAME_PARAMETERS: { readonly [method: string]: string } = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** An argument that is sent as a header too. */
interface Mark {
  path: readonly string[];
  header: string;
}

/** Headers of a request that names its protocol version in `_meta`; none for any other message. */
export function bodyHeaders(method: string, params: unknown): { [name: string]: string } {
  const given = asObject(params);
  const version = asObject(given["_meta"])[VERSION_META];
  if (typeof version !== "string") return {};
  const parameter = Object.hasOwn(NAME_PARAMETERS, method) ? NAME_PARAMETERS[method] : undefined;
  const name = parameter === undefined ? undefined : given[parameter];
  return {
    "mcp-protocol-version": version,
    "mcp-method": method,
    ...(typeof name === "string" ? { "mcp-name": fieldValue(name) } : {}),
  };
}

/** Headers for the marked arguments of a call; arguments that aren't given have none. */
export function argumentHeaders(
  inputSchema: Json | undefined,
  args: JsonObject,
): { [name: string]: string } {
  const { marks = [] } = marksOf(inputSchema);
  const headers: { [name: string]: string } = {};
  for (const { path, header } of marks) {
    const value = path.reduce<Json | undefined>(
      (node, key) => isJsonObject(node) && Object.hasOwn(node, key) ? node[key] : undefined,
      args,
    );
    const text = textOf(value);
    if (text !== undefined) headers[`mcp-param-${header}`] = fieldValue(text);
  }
  return headers;
}

/** Why a tool can't be called over HTTP; undefined when it can. */
export function markFault(inputSchema: Json | undefined): string | undefined {
  return marksOf(inputSchema).fault;
}

function marksOf(inputSchema: Json | undefined): { marks?: Mark[]; fault?: string } {
  const search = new MarkSearch();
  search.visit(inputSchema, []);
  return search.fault === undefined ? { marks: search.marks } : { fault: search.fault };
}

class MarkSearch {
  readonly marks: Mark[] = [];
  fault: string | undefined;
  readonly #taken = new Set<string>();

  /** `path` is undefined where a property isn't reached by names alone. */
  visit(node: Json | undefined, path: readonly string[] | undefined): void {
    if (this.fault !== undefined || typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) return node.forEach((item) => this.visit(item, undefined));
    if (Object.hasOwn(node, MARK)) this.#take(node, path);
    for (const [key, child] of Object.entries(node)) {
      if (DATA_KEYWORDS.has(key)) continue;
      if (!NAMED_SCHEMAS.has(key) || !isJsonObject(child)) this.visit(child, undefined);
      else {for (const [name, schema] of Object.entries(child)) {
          this.visit(
            schema,
            key === "properties" && path !== undefined ? [...path, name] : undefined,
          );
        }}
    }
  }

  #take(schema: JsonObject, path: readonly string[] | undefined): void {
    const header = schema[MARK];
    if (path === undefined || path.length === 0) {
      this.fault = `Its ${MARK} is on no property of its arguments`;
    } else if (typeof header !== "string" || !TOKEN.test(header)) {
      this.fault = `The ${MARK} of ${path.join(".")} is no header name`;
    } else if (!MARKED_TYPES.includes(schema["type"] ?? null)) {
      this.fault = `The ${MARK} of ${path.join(".")} is on no string, integer or boolean`;
    } else if (this.#taken.has(header.toLowerCase())) {
      this.fault = `Two of its properties have the ${MARK} ${JSON.stringify(header)}`;
    } else {
      this.#taken.add(header.toLowerCase());
      this.marks.push({ path, header });
    }
  }
}

/** Keywords whose value is a map of schemas, where `x-mcp-header` would be a name. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "$defs",
  "definitions",
]);
/** Keywords whose value is data, in which nothing is a mark. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(["default", "const", "enum", "examples"]);

function textOf(value: Json | undefined): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return String(value);
  if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}

/** Text as a header can carry it: as it is, or its UTF-8 as base64 in the protocol's brackets. */
function fieldValue(text: string): string {
  const plain = /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/.test(text) &&
    !/^=\?base64\?.*\?=$/.test(text);
  return plain ? text : `=?base64?${new TextEncoder().encode(text).toBase64()}?=`;
}

/** A message's parts were parsed from JSON or will be JSON. */
function asObject(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? value as JsonObject : {};
}
