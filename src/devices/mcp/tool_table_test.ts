import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import { buildToolTable, sameTools } from "./tool_table.ts";

const object = { type: "object" };

Deno.test("tools are sorted by name and keep what the server says of them", () => {
  const { tools, setAside } = buildToolTable("s", [
    { name: "b", title: "B", description: "second", inputSchema: object, icons: [1] },
    { name: "a", inputSchema: object, outputSchema: object, annotations: { readOnlyHint: true } },
  ]);
  assert.deepEqual(setAside, {});
  assert.deepEqual(tools, [
    {
      name: "a",
      modelName: "mcp__s__a",
      inputSchema: object,
      outputSchema: object,
      annotations: { readOnlyHint: true },
    },
    { name: "b", modelName: "mcp__s__b", title: "B", description: "second", inputSchema: object },
  ]);
});

Deno.test("[B27] a tool with an unusable schema is set aside with its reason, the rest work", () => {
  const { tools, setAside } = buildToolTable("s", [
    { name: "good", inputSchema: object },
    { name: "text", inputSchema: { type: "string" } },
    { name: "none" },
    { name: "flag", inputSchema: true },
    { name: "typeless", inputSchema: {} },
    { name: "odd", inputSchema: { type: "object", properties: [] } },
    { inputSchema: object },
    "nonsense",
  ]);
  assert.deepEqual(tools.map((tool) => tool.name), ["good"]);
  assert.deepEqual(Object.keys(setAside).sort(), [
    "#7",
    "#8",
    "flag",
    "none",
    "odd",
    "text",
    "typeless",
  ]);
  assert.match(setAside["text"] ?? "", /type "string", not "object"/);
});

Deno.test("[B27] a tool that can only be called as a task is set aside; one that may be is a tool like any other", () => {
  const { tools, setAside } = buildToolTable("s", [
    { name: "research", inputSchema: object, execution: { taskSupport: "required" } },
    { name: "either", inputSchema: object, execution: { taskSupport: "optional" } },
    { name: "never", inputSchema: object, execution: { taskSupport: "forbidden" } },
  ]);
  assert.deepEqual(tools.map((tool) => tool.name), ["either", "never"]);
  assert.match(setAside["research"] ?? "", /only be called as a task/);
});

Deno.test("[B29] [B35] a schema composed of others need not say that it is an object", () => {
  const { tools, setAside } = buildToolTable("s", [
    { name: "union", inputSchema: { anyOf: [object, object] } },
    { name: "ref", inputSchema: { $ref: "#/$defs/a", $defs: { a: object } } },
    { name: "text", inputSchema: { type: "string", anyOf: [object] } },
  ]);
  assert.deepEqual(tools.map((tool) => tool.name), ["ref", "union"]);
  assert.deepEqual(Object.keys(setAside), ["text"]);
});

Deno.test("[B39] a tool listed twice is taken once", () => {
  const { tools, setAside } = buildToolTable("s", [
    { name: "a", inputSchema: object, description: "first" },
    { name: "a", inputSchema: object, description: "second" },
  ]);
  assert.deepEqual(tools.map((tool) => tool.description), ["first"]);
  assert.equal(setAside["a"], "It is listed twice");
});

Deno.test("odd types of title and description are left out", () => {
  const { tools } = buildToolTable("s", [
    {
      name: "a",
      title: 1,
      description: {},
      outputSchema: "x",
      annotations: [],
      inputSchema: object,
    },
  ]);
  assert.deepEqual(tools, [{ name: "a", modelName: "mcp__s__a", inputSchema: object }]);
});

Deno.test("two tables are the same whatever the order of the server and of the members", () => {
  const one = buildToolTable("s", [{ name: "a", inputSchema: { type: "object", x: 1 } }, {
    name: "b",
    inputSchema: object,
  }]);
  const two = buildToolTable("s", [{ name: "b", inputSchema: object }, {
    inputSchema: { x: 1, type: "object" },
    name: "a",
  }]);
  assert.ok(sameTools(one, two));
  assert.ok(!sameTools(one, buildToolTable("s", [{ name: "a", inputSchema: object }])));
});

Deno.test("[B27] a tool whose definition is nested too deep is set aside", () => {
  let deep: Json = {};
  for (let level = 0; level < 3_000; level += 1) deep = { type: "object", properties: { a: deep } };
  const { tools, setAside } = buildToolTable("s", [
    { name: "deep", inputSchema: deep },
    { name: "good", inputSchema: object },
  ]);
  assert.deepEqual(tools.map(({ name }) => name), ["good"]);
  assert.deepEqual(setAside, { deep: "Its definition is nested deeper than 128 levels" });
});

Deno.test("[D11] a tool whose name holds half a character is set aside: no path could name it", () => {
  const { tools, setAside } = buildToolTable("s", [
    { name: "cut\ud83d", inputSchema: object },
    { name: "whole😀", inputSchema: object },
  ]);
  assert.deepEqual(tools.map((tool) => tool.name), ["whole😀"]);
  assert.deepEqual(setAside, { "cut\ufffd": "Its name holds half a character" });
});
