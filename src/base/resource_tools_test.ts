import assert from "node:assert/strict";
import { countText, countTools } from "./resource_tools.ts";

Deno.test("what a server has is counted by its own tools, wherever; that its resources can be had is told beside", () => {
  const both = countTools({ a: {}, "resources/list": {}, "resources/read": {} });
  assert.deepEqual(both, { tools: 1, resources: true });
  assert.equal(countText(both), "1 tool and resources");
  assert.equal(countText(countTools({ a: {}, b: {} })), "2 tools");
});
