import assert from "node:assert/strict";
import { checkChatRequest } from "../../tests/servers/chat_request_check.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { DEPTH_MAX, projectSchema } from "./schema_projection.ts";

/** Projects and lets the strict endpoint's check look at the result. */
function projected(schema: Json): { schema: JsonObject; note?: string } {
  const projection = projectSchema(schema);
  assert.ok(!("refused" in projection), JSON.stringify(projection));
  const tool = { type: "function", function: { name: "t", parameters: projection.schema } };
  const problems = checkChatRequest({
    model: "m",
    stream: true,
    messages: [{ role: "user", content: "x" }],
    tools: [tool],
  });
  assert.deepEqual(problems, [], JSON.stringify(projection.schema));
  return projection;
}

function refusal(schema: Json): string {
  const projection = projectSchema(schema);
  assert.ok("refused" in projection, JSON.stringify(projection));
  return projection.refused;
}

const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: "object",
  properties,
  ...more,
});

Deno.test("a plain schema stays as it is, order of keys included", () => {
  const schema = object({
    b: { type: "string", description: "B" },
    a: { type: "integer", minimum: 1 },
  }, { required: ["b"], additionalProperties: false });
  assert.equal(JSON.stringify(projected(schema).schema), JSON.stringify(schema));
});

Deno.test("missing type and properties are added", () => {
  assert.deepEqual(projected({}).schema, object({}));
  assert.deepEqual(projected({ type: "object" }).schema, object({}));
  assert.deepEqual(projected(true).schema, object({}));
  assert.deepEqual(
    projected({ properties: { a: { properties: { b: {} } } } }).schema,
    object({ a: object({ b: {} }) }),
  );
});

Deno.test("[B27] a schema whose arguments aren't an object is refused with the reason", () => {
  assert.equal(
    refusal({ type: "string" }),
    'Input schema has type "string", a tool\'s arguments are an object',
  );
  assert.match(refusal({ type: ["string", "null"] }), /has type "string"/);
  assert.equal(refusal(null), "Input schema isn't an object");
  assert.equal(refusal(false), "Input schema isn't an object");
  assert.equal(
    refusal({ type: "object", properties: [] }),
    '"properties" in the input schema isn\'t an object',
  );
  assert.match(
    refusal({ type: "object", properties: { a: "string" } }),
    /holds "string" where a schema belongs/,
  );
});

Deno.test("[B29] anyOf of objects at the top becomes one object and a note", () => {
  const schema = {
    anyOf: [
      object({ id: { type: "string" }, deep: { type: "boolean" } }, { required: ["id", "deep"] }),
      object({ path: { type: "string" }, deep: { type: "boolean" } }, {
        required: ["path", "deep"],
      }),
    ],
  };
  assert.deepEqual(projected(schema), {
    schema: object(
      { id: { type: "string" }, deep: { type: "boolean" }, path: { type: "string" } },
      { required: ["deep"] },
    ),
    note: "Arguments follow at least one of these forms: (id, deep) or (path, deep)",
  });
});

Deno.test("[B29] a tagged oneOf keeps all tags, properties that differ stand side by side", () => {
  const form = (tag: string, value: Json) =>
    object({ kind: { type: "string", const: tag }, value }, { required: ["kind"] });
  const schema = {
    type: "object",
    oneOf: [form("a", { type: "string" }), form("b", { type: "number" })],
  };
  assert.deepEqual(
    projected(schema).schema,
    object({
      kind: { type: "string", enum: ["a", "b"] },
      value: { anyOf: [{ type: "string" }, { type: "number" }] },
    }, { required: ["kind"] }),
  );
});

Deno.test("[B29] allOf at the top and below is merged, everything required stays so", () => {
  const parts = [
    object({ a: { type: "string" } }, { required: ["a"] }),
    object({ b: {} }, { required: ["b"] }),
  ];
  const merged = object({ a: { type: "string" }, b: {} }, { required: ["a", "b"] });
  assert.deepEqual(projected({ allOf: parts }), { schema: merged });
  assert.deepEqual(projected(object({ x: { allOf: parts } })).schema, object({ x: merged }));
  assert.deepEqual(
    projected(object({ x: { allOf: [{ type: "string" }, { minLength: 2 }] } })).schema,
    object({ x: { type: "string", minLength: 2 } }),
  );
});

Deno.test("[B29] branches at the top that aren't objects are left out, since arguments always are", () => {
  const form = object({ a: { type: "string" } }, { required: ["a"] });
  assert.deepEqual(projected({ anyOf: [{ type: "null" }, form] }), { schema: form });
  assert.deepEqual(projected({ ...form, type: ["object", "null"] }), { schema: form });
});

Deno.test("[B29] a union at the top of something else than objects is refused", () => {
  assert.match(refusal({ anyOf: [{ type: "string" }, { type: "number" }] }), /has type "string"/);
});

Deno.test("[B31] keywords that providers refuse are dropped, wherever they stand", () => {
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: "x",
    ...object({
      a: {
        type: "string",
        $comment: "c",
        examples: ["e"],
        contentEncoding: "base64",
        readOnly: true,
      },
      b: object({}, {
        patternProperties: { "^x": {} },
        propertyNames: { pattern: "a" },
        dependencies: { a: ["b"] },
        unevaluatedProperties: false,
      }),
    }),
    if: {},
    then: {},
    not: { required: ["z"] },
  };
  assert.deepEqual(projected(schema).schema, object({ a: { type: "string" }, b: object({}) }));
});

Deno.test("draft-04 and draft-07 forms are rewritten: exclusive bounds, tuples, required flags, const", () => {
  assert.deepEqual(
    projected(object({
      n: { type: "number", minimum: 0, exclusiveMinimum: true },
      t: { type: "array", items: [{ type: "string" }, { type: "number" }], additionalItems: false },
      p: { type: "array", prefixItems: [{ type: "string" }, { type: "string" }] },
      r: { type: "string", required: true },
      c: { const: 3 },
      l: { type: "array" },
    })).schema,
    object({
      n: { type: "number", minimum: 0 },
      t: { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } },
      p: { type: "array", items: { type: "string" } },
      r: { type: "string" },
      c: { enum: [3] },
      l: { type: "array", items: {} },
    }),
  );
});

Deno.test("[B33] boolean subschemas become schemas, a property that is never allowed goes", () => {
  assert.deepEqual(
    projected(
      object({ data: true, never: false, list: { type: "array", items: true } }, {
        additionalProperties: true,
      }),
    ).schema,
    object({ data: {}, list: { type: "array", items: {} } }, { additionalProperties: true }),
  );
});

Deno.test("type lists become anyOf, each branch with the keywords of its type", () => {
  assert.deepEqual(
    projected(object({
      s: { type: ["string", "null"], description: "S", minLength: 1, default: null },
      e: { type: ["string", "null"], enum: ["a", null] },
      one: { type: ["array"], items: { type: "string" } },
      many: { type: ["array", "integer"], items: true, minimum: 3 },
    })).schema,
    object({
      s: {
        description: "S",
        default: null,
        anyOf: [{ type: "string", minLength: 1 }, { type: "null" }],
      },
      e: { anyOf: [{ type: "string", enum: ["a"] }, { type: "null", enum: [null] }] },
      one: { type: "array", items: { type: "string" } },
      many: { anyOf: [{ type: "array", items: {} }, { type: "integer", minimum: 3 }] },
    }),
  );
});

Deno.test("[B35] local references are resolved, with what stands beside them", () => {
  const schema = {
    ...object({
      a: { $ref: "#/$defs/name" },
      b: { $ref: "#/definitions/odd~1na~0me%20x", description: "B" },
      whole: { type: "array", items: { $ref: "#/$defs/name" } },
    }),
    $defs: { name: { type: "string", title: "Name" } },
    definitions: { "odd/na~me x": { $ref: "#/$defs/name" } },
  };
  const name = { type: "string", title: "Name" };
  assert.deepEqual(
    projected(schema).schema,
    object({ a: name, b: { ...name, description: "B" }, whole: { type: "array", items: name } }),
  );
});

Deno.test("[B35] a reference at the top is resolved", () => {
  assert.deepEqual(
    projected({ $ref: "#/$defs/in", $defs: { in: object({ a: {} }, { required: ["a"] }) } }).schema,
    object({ a: {} }, { required: ["a"] }),
  );
});

Deno.test("[B35] a schema that holds itself ends with anything, and a note", () => {
  const node = object({
    name: { type: "string" },
    children: { type: "array", items: { $ref: "#/$defs/node" } },
  });
  const { schema, note } = projected({
    ...object({ root: { $ref: "#/$defs/node" } }),
    $defs: { node },
  });
  assert.deepEqual(
    schema,
    object({ root: object({ name: { type: "string" }, children: { type: "array", items: {} } }) }),
  );
  assert.equal(note, "Nested node has the same form again");
  assert.ok(projected({ ...object({ self: { $ref: "#" } }) }).note);
});

Deno.test("[B35] remote, missing, too deep and exploding references are refused, nothing is fetched", () => {
  assert.match(
    refusal(object({ a: { $ref: "https://example.com/s.json" } })),
    /only local references are followed/,
  );
  assert.match(
    refusal(object({ a: { $ref: "#/$defs/gone" } })),
    /"#\/\$defs\/gone", which isn't in it/,
  );
  assert.match(refusal(object({ a: { $ref: "#/__proto__" } })), /isn't in it/);
  assert.match(refusal(object({ a: { $ref: "#/%" } })), /isn't in it/);
  let deep: JsonObject = { type: "string" };
  for (let level = 0; level <= DEPTH_MAX; level++) deep = { type: "array", items: deep };
  assert.match(refusal(object({ deep })), /nested more than 32 levels/);
  const bomb: JsonObject = { l0: { type: "string" } };
  for (let level = 1; level < 14; level++) {
    bomb[`l${level}`] = object({
      a: { $ref: `#/$defs/l${level - 1}` },
      b: { $ref: `#/$defs/l${level - 1}` },
    });
  }
  assert.match(
    refusal({ ...object({ x: { $ref: "#/$defs/l13" } }), $defs: bomb }),
    /more than 5000 parts/,
  );
});

Deno.test("properties named like keywords or prototypes stay properties", () => {
  const properties: JsonObject = JSON.parse(
    '{"$ref": {"type":"string"}, "type": {"type":"string"}, "__proto__": {"type":"number"}, "anyOf": {}, "not": {}}',
  );
  const { schema } = projected(object(properties));
  assert.equal(JSON.stringify(schema), JSON.stringify(object(properties)));
});

Deno.test("a projected schema projects to itself, and equal schemas give equal bytes", () => {
  const schema = {
    anyOf: [object({ a: { type: ["string", "null"] } }), object({ b: { const: 1 } })],
  };
  const { schema: once } = projected(schema);
  assert.equal(JSON.stringify(projected(once).schema), JSON.stringify(once));
  assert.equal(
    JSON.stringify(projected(schema)),
    JSON.stringify(projected(structuredClone(schema))),
  );
});

Deno.test("[B31] what names by pattern may have isn't forbidden by what is left of the schema", () => {
  const text = { type: "string" };
  const map = { type: "object", patternProperties: { "^.*$": text }, additionalProperties: false };
  assert.deepEqual(projectSchema({ type: "object", properties: { map } }), {
    schema: {
      type: "object",
      properties: { map: { type: "object", additionalProperties: text } },
    },
  });
  const two = { a: true, "^x": { type: "number" }, "^y": text };
  for (const additionalProperties of [false, text]) {
    assert.deepEqual(
      projectSchema({
        type: "object",
        properties: {},
        patternProperties: two,
        additionalProperties,
      }),
      { schema: { type: "object", properties: {} } },
    );
  }
});

Deno.test("tuples of both drafts are lists of what any place may hold", () => {
  const [text, number, flag] = [{ type: "string" }, { type: "number" }, { type: "boolean" }];
  const itemsOf = (schema: JsonObject) => {
    const projection = projectSchema({ type: "object", properties: { list: schema } });
    return "schema" in projection ? projection.schema.properties : projection;
  };
  const listOf = (...anyOf: JsonObject[]) => ({ list: { type: "array", items: { anyOf } } });
  assert.deepEqual(itemsOf({ type: "array", items: [text, number] }), listOf(text, number));
  for (const items of [false, undefined]) {
    const tuple: JsonObject = { type: "array", prefixItems: [text, number, text] };
    if (items !== undefined) tuple["items"] = items;
    assert.deepEqual(itemsOf(tuple), listOf(text, number));
  }
  assert.deepEqual(
    itemsOf({ type: "array", items: flag, prefixItems: [text, number] }),
    listOf(text, number, flag),
  );
});

Deno.test("a value that an enumeration names twice is there once", () => {
  assert.deepEqual(projectSchema({ type: "object", properties: { a: { enum: [1, "1", 1] } } }), {
    schema: { type: "object", properties: { a: { enum: [1, "1"] } } },
  });
});
