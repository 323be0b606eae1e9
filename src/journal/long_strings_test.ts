import assert from "node:assert/strict";
import { INLINE_BYTES_MAX, longStrings, mapText } from "./long_strings.ts";

Deno.test("a string is long by its bytes, not by its characters", () => {
  const found = (text: string): number => longStrings({ text }).length;
  assert.equal(found("x".repeat(INLINE_BYTES_MAX)), 0);
  assert.equal(found("x".repeat(INLINE_BYTES_MAX + 1)), 1);
  assert.equal(found("ä".repeat(INLINE_BYTES_MAX / 2)), 0);
  assert.equal(found("ä".repeat(INLINE_BYTES_MAX / 2 + 1)), 1);
  assert.equal(found("€".repeat(Math.floor(INLINE_BYTES_MAX / 3))), 0);
  assert.equal(found("€".repeat(Math.floor(INLINE_BYTES_MAX / 3) + 1)), 1);
});

Deno.test("pointers are those of RFC 6901, and lead back to the string", () => {
  const long = "x".repeat(INLINE_BYTES_MAX + 1);
  const value = { a: [1, { "b/c~d": long, short: "y" }, long], "": long, n: null };
  const found = longStrings(value);
  assert.deepEqual(found.map(({ pointer }) => pointer), ["/a/1/b~1c~0d", "/a/2", "/"]);
  const pointers = new Set(found.map(({ pointer }) => pointer));
  const mapped = mapText(value, (text, pointer) => pointers.has(pointer) ? "cut" : text);
  assert.deepEqual(mapped, {
    a: [1, { "b/c~d": "cut", short: "y" }, "cut"],
    "": "cut",
    n: null,
  });
  assert.equal(value.a[2], long, "the original stays as it is");
});

Deno.test("what doesn't change keeps its identity", () => {
  const value = { a: [{ b: "x" }], c: { d: "y" } };
  assert.equal(mapText(value, (text) => text), value);
  const mapped = mapText(value, (text) => text === "y" ? "z" : text);
  assert.notEqual(mapped, value);
  assert.equal(mapped.a, value.a);
});
