/** Tool definitions that servers really give, good, odd and bad; each named after what is odd about it. */
import type { Fields, Value } from "./rpc_stdio.ts";

const string = { type: "string" };
const byId = { type: "object", properties: { id: string }, required: ["id"] };
const byName = { type: "object", properties: { name: string }, required: ["name"] };

function nested(levels: number): Fields {
  let schema: Fields = string;
  for (let level = 0; level < levels; level += 1) {
    schema = { type: "object", properties: { in: schema } };
  }
  return schema;
}

/** Tools that can be called, with arguments that fit. */
export const USABLE: { [tool: string]: { inputSchema: Fields; args: Fields } } = {
  plain: { inputSchema: { type: "object", properties: { a: string } }, args: { a: "x" } },
  no_properties: { inputSchema: { type: "object" }, args: {} },
  union_of_objects: { inputSchema: { type: "object", anyOf: [byId, byName] }, args: { id: "1" } },
  union_without_type: { inputSchema: { anyOf: [byId, byName] }, args: { name: "n" } },
  tagged: {
    inputSchema: {
      type: "object",
      oneOf: [
        { properties: { kind: { const: "a" }, a: string }, required: ["kind"] },
        { properties: { kind: { const: "b" }, b: string }, required: ["kind"] },
      ],
    },
    args: { kind: "a", a: "x" },
  },
  all_of: { inputSchema: { type: "object", allOf: [byId, byName] }, args: { id: "1", name: "n" } },
  made_by_zod: {
    inputSchema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { mail: { type: "string", format: "email", minLength: 3 } },
      required: ["mail"],
      additionalProperties: false,
    },
    args: { mail: "a@b.example" },
  },
  old_draft: {
    inputSchema: {
      $schema: "http://json-schema.org/draft-04/schema#",
      id: "http://old.example/schema",
      type: "object",
      properties: { n: { type: "number", minimum: 0, exclusiveMinimum: true } },
    },
    args: { n: 1 },
  },
  boolean_schemas: {
    inputSchema: { type: "object", properties: { data: true, never: false } },
    args: { data: [1, "two"] },
  },
  defs: {
    inputSchema: {
      type: "object",
      properties: { at: { $ref: "#/$defs/place" }, old: { $ref: "#/definitions/place" } },
      $defs: { place: { type: "object", properties: { x: { type: "number" } } } },
      definitions: { place: { type: "object", properties: { y: { type: "number" } } } },
    },
    args: { at: { x: 1 }, old: { y: 2 } },
  },
  ref_at_the_top: {
    inputSchema: { $ref: "#/$defs/args", $defs: { args: byId } },
    args: { id: "1" },
  },
  recursive: {
    inputSchema: {
      type: "object",
      properties: { tree: { $ref: "#/$defs/node" } },
      $defs: {
        node: {
          type: "object",
          properties: { next: { $ref: "#/$defs/node" }, value: string },
        },
      },
    },
    args: { tree: { next: { value: "leaf" } } },
  },
  nullable: {
    inputSchema: {
      type: "object",
      properties: { a: { type: ["string", "null"] }, b: { type: ["number", "string"] } },
    },
    args: { a: null, b: "x" },
  },
};

/** Tools that the mount takes though a provider may not: they can be called by hand. */
export const DOUBTFUL: { [tool: string]: Fields } = {
  remote_ref: { type: "object", properties: { a: { $ref: "http://127.0.0.1:9/schema.json" } } },
  missing_ref: { type: "object", properties: { a: { $ref: "#/$defs/nowhere" } } },
  deep: nested(60),
};

/** Tools that are set aside at the mount. */
export const UNUSABLE: { [tool: string]: Value } = {
  text_arguments: { type: "string" },
  list_arguments: { type: "array", items: string },
  true_schema: true,
  null_schema: null,
  text_schema: "object",
  empty_schema: {},
  list_of_properties: { type: "object", properties: [] },
  over_deep: nested(200),
};

/** All of them as a server lists them, and some that are no tools at all. */
export const ODD_TOOLS: Value[] = [
  ...Object.entries(USABLE).map(([name, { inputSchema }]) => ({ name, inputSchema })),
  ...Object.entries({ ...DOUBTFUL, ...UNUSABLE }).map(([name, inputSchema]) => ({
    name,
    inputSchema,
  })),
  { name: "without_schema" },
  { inputSchema: { type: "object" } },
  { name: 7, inputSchema: { type: "object" } },
  "no tool",
  null,
];
