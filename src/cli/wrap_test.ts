import assert from "node:assert/strict";
import { rewrapped, wrapped } from "./wrap.ts";

Deno.test("lines break between words, later ones begin with the indent", () => {
  assert.deepEqual(wrapped("one two three four", 9, "  "), ["one two", "  three", "  four"]);
  assert.deepEqual(wrapped("short", 9), ["short"]);
});

Deno.test("a word that is wider than the line stands alone and whole", () => {
  assert.deepEqual(wrapped("a incomprehensible b", 6), ["a", "incomprehensible", "b"]);
});

Deno.test("the lines of a paragraph are joined first, indented lines stay", () => {
  assert.equal(
    rewrapped("one\ntwo three\n  as  it is\n\nfour", 8),
    "one two\nthree\n  as  it is\n\nfour",
  );
});
