import assert from "node:assert/strict";
import type { JsonObject } from "../../base/json.ts";
import { projectForGemini } from "./gemini_schema.ts";

/** Schemas and what Gemini is sent for them. */
const GOLDEN: [what: string, schema: JsonObject, sent: JsonObject][] = [
  [
    "[B31] additionalProperties, $schema and other keywords of zod go",
    {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { path: { type: "string", minLength: 1, description: "A path" } },
      required: ["path"],
      additionalProperties: false,
    },
    {
      type: "object",
      properties: {
        path: { type: "string", description: "A path (at least this many characters: 1)" },
      },
      required: ["path"],
    },
  ],
  [
    "[B33] boolean subschemas become open ones",
    { type: "object", properties: { data: true, none: false } },
    { type: "object", properties: { data: {} } },
  ],
  [
    "[B29] a union at the top is one object",
    {
      oneOf: [
        { type: "object", properties: { a: { const: "x" } }, required: ["a"] },
        { type: "object", properties: { a: { const: "y" } }, required: ["a"] },
      ],
    },
    {
      type: "object",
      properties: { a: { type: "string", enum: ["x", "y"] } },
      required: ["a"],
    },
  ],
  [
    "[B35] local references are resolved",
    {
      type: "object",
      $defs: { n: { type: "integer", format: "int64", minimum: 0 } },
      properties: { n: { $ref: "#/$defs/n" } },
    },
    { type: "object", properties: { n: { type: "integer", format: "int64", minimum: 0 } } },
  ],
  [
    "beside anyOf nothing stands; null is a branch",
    {
      type: "object",
      properties: { name: { type: ["string", "null"], description: "A name", default: null } },
    },
    {
      type: "object",
      properties: {
        name: {
          anyOf: [
            { type: "string", description: "A name" },
            { type: "null", description: "A name" },
          ],
        },
      },
    },
  ],
  [
    "values that aren't texts are told in the description",
    {
      type: "object",
      properties: { size: { type: "integer", enum: [1, 2], default: 1, multipleOf: 1 } },
    },
    {
      type: "object",
      properties: {
        size: { type: "integer", description: "(one of: 1, 2; default: 1; a multiple of: 1)" },
      },
    },
  ],
  [
    "formats that the API knows stay, others are told",
    {
      type: "object",
      properties: {
        at: { type: "string", format: "date-time" },
        to: { type: "string", format: "uri", pattern: "^h" },
      },
    },
    {
      type: "object",
      properties: {
        at: { type: "string", format: "date-time" },
        to: { type: "string", description: '(format: "uri"; pattern: "^h")' },
      },
    },
  ],
  [
    "lists have items; only properties that are there are required; odd names stay",
    {
      type: "object",
      properties: {
        enum: { type: "array", items: { type: "object", required: ["gone"] }, uniqueItems: true },
        format: { type: "array" },
      },
      required: ["enum", "gone"],
    },
    {
      type: "object",
      properties: {
        enum: { type: "array", items: { type: "object" } },
        format: { type: "array", items: {} },
      },
      required: ["enum"],
    },
  ],
];

for (const [what, schema, sent] of GOLDEN) {
  Deno.test(`gemini: ${what}`, () => {
    const projection = projectForGemini(schema);
    assert.ok("schema" in projection, "refused" in projection ? projection.refused : "");
    assert.deepEqual(projection.schema, sent);
    assert.deepEqual(projectForGemini(sent), { schema: sent }, "a projected schema stays as it is");
  });
}

Deno.test("[B27] gemini: what can't be projected is refused with its reason", () => {
  assert.match(JSON.stringify(projectForGemini({ type: "string" })), /refused.*type/);
  assert.match(
    JSON.stringify(projectForGemini({ type: "object", properties: { a: { $ref: "http://x/y" } } })),
    /only local references/,
  );
});
