import assert from "node:assert/strict";
import { readArguments } from "./tool_arguments.ts";

Deno.test("[D07] nothing, blank and null are an empty object", () => {
  for (const text of [undefined, null, "", " \n", "null"]) {
    assert.deepEqual(readArguments(text), { input: {} });
  }
});

Deno.test("JSON of any type is given as it is", () => {
  assert.deepEqual(readArguments('{"a":[1]}'), { input: { a: [1] } });
  assert.deepEqual(readArguments("[1]"), { input: [1] });
  assert.deepEqual(readArguments("0"), { input: 0 });
});

Deno.test("anything else is kept as malformed text", () => {
  for (const text of ['{"a":', "{a: 1}", "hello"]) {
    assert.deepEqual(readArguments(text), { input: null, malformed: text });
  }
});

Deno.test("JSON nested too deep for what comes after is kept as text", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  assert.equal(readArguments(nested(128)).malformed, undefined);
  for (const text of [nested(129), nested(50_000)]) {
    assert.deepEqual(readArguments(text), { input: null, malformed: text });
  }
});

Deno.test("a number that would be sent as another one is kept as text", () => {
  for (const text of ['{"id": 12345678901234567890}', '{"a": [{"b": 1e999}]}']) {
    assert.deepEqual(readArguments(text), { input: null, malformed: text });
  }
  assert.deepEqual(readArguments('{"id": 9007199254740991, "x": 0.1}'), {
    input: { id: 9007199254740991, x: 0.1 },
  });
});
