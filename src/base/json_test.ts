import assert from "node:assert/strict";
import {
  canonicalJson,
  type Json,
  JSON_DEPTH_MAX,
  mapStrings,
  nestsDeeper,
  wellFormed,
} from "./json.ts";
import { createRedaction } from "./redaction.ts";

function nested(levels: number, inner: Json = "s3cr3t\ud800"): Json {
  let value = inner;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

Deno.test("levels are counted in lists and objects, in any branch", () => {
  assert.equal(nestsDeeper("x", 0), false);
  assert.equal(nestsDeeper(null, 0), false);
  assert.equal(nestsDeeper([], 0), true);
  assert.equal(nestsDeeper([1, { a: [] }], 3), false);
  assert.equal(nestsDeeper([1, { a: 1, b: [[]] }, 2], 3), true);
  assert.equal(nestsDeeper(nested(JSON_DEPTH_MAX)), false);
  assert.equal(nestsDeeper(nested(JSON_DEPTH_MAX + 1)), true);
});

Deno.test("a value without end costs no more than the limit", () => {
  assert.equal(nestsDeeper(nested(500_000)), true);
});

Deno.test("what the limit lets through every recursive function takes, with room to spare", () => {
  const value = nested(4 * JSON_DEPTH_MAX);
  const redactor = createRedaction({ intake: ["s3cr3t"] }).intake;
  const clean = redactor.redactJson(wellFormed(mapStrings(value, (text) => text)));
  assert.match(canonicalJson(clean), /"\[redacted\]\ufffd"/);
});
