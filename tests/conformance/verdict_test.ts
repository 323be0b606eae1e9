import assert from "node:assert/strict";
import { sampleOf } from "./sample.ts";
import { checkedScenario, requiredScenarios } from "./verdict.ts";

Deno.test("a scenario in which nothing of its own succeeded hasn't passed", () => {
  const general = { id: "wire-schema-valid", status: "SUCCESS" } as const;
  const own = { id: "tool-add-numbers", status: "SUCCESS" } as const;
  assert.equal(checkedScenario(0, []).passed, false);
  assert.equal(checkedScenario(0, [general]).passed, false);
  assert.equal(checkedScenario(0, [general, { id: "x", status: "SKIPPED" }]).passed, false);
  assert.equal(checkedScenario(0, [general, own]).passed, true);
  assert.equal(checkedScenario(1, [general, own]).passed, false);
  assert.equal(checkedScenario(0, [own, { id: "x", status: "WARNING" }]).passed, false);
});

Deno.test("authorization and extensions aren't asked for, what isn't scored is shown", () => {
  const file = {
    client: ["initialize", "auth/basic"],
    not_scored: [
      { scenario: "later", leg: "client", reason: "added-after-release" },
      { scenario: "tasks", leg: "server", reason: "pending" },
      { scenario: "more", leg: "client", reason: "extension" },
    ],
  };
  assert.deepEqual(requiredScenarios(file), [
    { scenario: "initialize", required: true },
    { scenario: "later", required: false },
  ]);
});

Deno.test("arguments are made from a schema", () => {
  const schema = {
    type: "object",
    properties: { a: { type: "number" }, b: { enum: ["x", "y"] }, schema: { type: "object" } },
  };
  assert.deepEqual(sampleOf(schema, { tools: [{ inputSchema: { $id: "rich" } }] }), {
    a: 3,
    b: "x",
    schema: { $id: "rich" },
  });
});
