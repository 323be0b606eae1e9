import assert from "node:assert/strict";
import type { JsonObject } from "../../base/json.ts";
import { asArguments, checkFor } from "./schema_check.ts";

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";
const DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema";

async function fault(schema: JsonObject, value: JsonObject): Promise<string | undefined> {
  return (await checkFor(schema))(value);
}

Deno.test("a mismatch names the path and what is wanted there", async () => {
  const schema = {
    type: "object",
    properties: {
      to: { type: "object", properties: { ids: { type: "array", items: { type: "number" } } } },
    },
    required: ["to"],
    additionalProperties: false,
  };
  assert.equal(await fault(schema, { to: { ids: [1] } }), undefined);
  assert.equal(await fault(schema, { to: { ids: [1, "x"] } }), "/to/ids/1 must be number");
  assert.match(await fault(schema, {}) ?? "", /required property 'to'/);
  assert.match(await fault(schema, { to: {}, too: 1 }) ?? "", /additional properties \("too"\)/);
});

Deno.test("draft-07 and 2020-12 each have their own rules", async () => {
  const tuple07 = { $schema: DRAFT_07, properties: { p: { items: [{ type: "number" }] } } };
  assert.equal(await fault(tuple07, { p: ["x"] }), "/p/0 must be number");
  const tuple2020 = {
    $schema: DRAFT_2020,
    properties: { p: { prefixItems: [{ type: "number" }] } },
  };
  assert.equal(await fault(tuple2020, { p: ["x"] }), "/p/0 must be number");
  assert.equal(
    await fault({ properties: { p: { prefixItems: [{ type: "number" }] } } }, { p: ["x"] }),
    "/p/0 must be number",
  );
});

Deno.test("[B35] local references are followed", async () => {
  const schema = {
    type: "object",
    properties: { a: { $ref: "#/$defs/n" } },
    $defs: { n: { type: "number" } },
  };
  assert.equal(await fault(schema, { a: 1 }), undefined);
  assert.equal(await fault(schema, { a: "1" }), "/a must be number");
});

Deno.test("[B35] a schema that can't be compiled checks nothing, and nothing is fetched", async () => {
  for (
    const schema of [
      { $ref: "https://example.invalid/schema.json" },
      { type: "object", properties: { a: { type: "nonsense" } } },
      { type: "object", properties: { a: { pattern: "(" } } },
      { properties: 5 },
      { type: "object", properties: { a: { enum: ["x".repeat(300_000)] } } },
    ]
  ) assert.equal(await fault(schema, { a: 1 }), undefined);
});

Deno.test("two schemas with the same $id, and the same schema twice, are no trouble", async () => {
  const one = { $id: "https://x/y", type: "object", required: ["a"] };
  const two = { $id: "https://x/y", type: "object", required: ["b"] };
  assert.match(await fault(one, {}) ?? "", /'a'/);
  assert.match(await fault(two, {}) ?? "", /'b'/);
  assert.equal(checkFor(one), checkFor(one));
});

Deno.test("[B33] boolean subschemas and unknown keywords are fine", async () => {
  const schema = { type: "object", properties: { any: true }, "x-thing": 1, $comment: "c" };
  assert.equal(await fault(schema, { any: [1] }), undefined);
});

Deno.test("[D07] no arguments come as null, empty text or an empty object", () => {
  assert.deepEqual([asArguments(null), asArguments(""), asArguments({})], [{}, {}, {}]);
  assert.deepEqual([asArguments("x"), asArguments(1), asArguments([])], [
    undefined,
    undefined,
    undefined,
  ]);
});

Deno.test("a pattern is held against a text only where that can't take ages", async () => {
  const check = await checkFor({
    properties: { id: { pattern: "^[a-z]+$" }, trap: { pattern: "^(a+)+$" } },
  });
  assert.match(check({ id: "A" }) ?? "", /must match pattern/);
  assert.equal(check({ id: "a" }), undefined);
  assert.equal(check({ trap: `${"a".repeat(60)}!` }), undefined);
  const keys = await checkFor({ patternProperties: { "^(a|a)*$": false } });
  assert.equal(keys({ [`${"a".repeat(60)}!`]: 1 }), undefined);
});

Deno.test("items that are to be unique are compared by value, and a long list takes no ages", async () => {
  for (const $schema of [DRAFT_07, DRAFT_2020]) {
    const check = await checkFor({ $schema, properties: { a: { uniqueItems: true } } });
    assert.equal(
      check({ a: [{ x: 1, y: [2] }, { y: [2], x: 1 }] }),
      "/a must NOT have duplicate items",
    );
    assert.equal(check({ a: [1, "1", [1], { a: 1 }, null] }), undefined);
    assert.equal(check({ a: Array.from({ length: 200_000 }, (_, id) => ({ id })) }), undefined);
    const free = await checkFor({ $schema, properties: { a: { uniqueItems: false } } });
    assert.equal(free({ a: [1, 1] }), undefined);
  }
});
