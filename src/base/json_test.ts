import assert from "node:assert/strict";
import {
  alteredNumber,
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

Deno.test("numbers that reading alters are found: whole ones with too many digits, and those beyond all limits", () => {
  const cases: [text: string, found: string | undefined][] = [
    ['{"id": 12345678901234567890}', "12345678901234567890"],
    ['[1, {"a": [-9007199254740993]}]', "-9007199254740993"],
    ["9007199254740993", "9007199254740993"],
    ['{"a": 1e400, "b": 2e400}', "1e400"],
    ['{"__proto__": 1E+999}', "1E+999"],
    ["9007199254740991", undefined],
    ["100000000000000000000", undefined],
    ["1e300", undefined],
    ["0.12345678901234567890", undefined],
    ['{"id": "12345678901234567890"}', undefined],
  ];
  for (const [text, found] of cases) assert.equal(alteredNumber(text), found, text);
});
