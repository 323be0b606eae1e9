import assert from "node:assert/strict";
import { MODEL_NAME_CHARS_MAX, modelNameOf } from "./tool_names.ts";

Deno.test("an ordinary name is only put together", () => {
  assert.equal(modelNameOf("github", "create_issue"), "mcp__github__create_issue");
  assert.equal(modelNameOf("a-b", "X-1"), "mcp__a-b__X-1");
});

Deno.test("[B37] a long name is cut to 64 characters with a stable hash", () => {
  const name = modelNameOf("s".repeat(40), "t".repeat(40));
  assert.equal(name.length, MODEL_NAME_CHARS_MAX);
  assert.equal(name, modelNameOf("s".repeat(40), "t".repeat(40)));
  assert.notEqual(name, modelNameOf("s".repeat(40), "t".repeat(41)));
  assert.match(name, /^[A-Za-z0-9_-]+_[0-9a-f]{8}$/);
});

Deno.test("[B37] exactly 64 characters need no hash", () => {
  const tool = "t".repeat(64 - "mcp__s__".length);
  assert.equal(modelNameOf("s", tool), `mcp__s__${tool}`);
  assert.match(modelNameOf("s", `${tool}t`), /_[0-9a-f]{8}$/);
});

Deno.test("[B39] names that would be equal after sanitising stay apart", () => {
  const names = ["a.b", "a_b", "a b", "a/b", "a:b", "äb", "😀b", "a..b"].map((tool) =>
    modelNameOf("s", tool)
  );
  assert.equal(new Set(names).size, names.length);
  assert.ok(names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name)));
});

Deno.test("[B39] equal tools of two servers, and names that would join alike, stay apart", () => {
  const pairs: [string, string][] = [
    ["a", "b__c"],
    ["a__b", "c"],
    ["a_", "b"],
    ["a", "_b"],
    ["mail", "send_email"],
    ["post", "send_email"],
    ["a", ""],
  ];
  const names = pairs.map(([server, tool]) => modelNameOf(server, tool));
  assert.equal(new Set(names).size, pairs.length);
});
