import assert from "node:assert/strict";
import type { ToolRules } from "../base/effect.ts";
import type { ToolDefinition } from "../vfs/device.ts";
import type { MountFacts, MountSpec } from "./mount.ts";
import { compareTools, definitionHash, mountPoint, ToolTable } from "./tool_table.ts";

function spec(server: string, rules: Partial<ToolRules> = {}): MountSpec {
  const whole = { effects: {}, risk: {}, sensitive: [], ...rules };
  return { server, required: true, rules: whole, outputTokensMax: 99, config: null };
}

function tool(name: string, more: Partial<ToolDefinition> = {}, server = "s"): ToolDefinition {
  return { name, modelName: `mcp__${server}__${name}`, inputSchema: { type: "object" }, ...more };
}

function facts(...tools: ToolDefinition[]): MountFacts {
  return { era: "modern", protocolVersion: "x", tools, setAside: {} };
}

Deno.test("a tool is bound with its paths, class, risk and limit", () => {
  const table = new ToolTable();
  const rules = { effects: { "a b": "destructive" as const }, sensitive: ["a*"] };
  table.bind(spec("s", rules), facts(tool("a b")), 7);
  const { definition: _definition, ...binding } = table.get("mcp__s__a b") ?? assert.fail();
  assert.deepEqual(binding, {
    server: "s",
    device: "/mnt/mcp/s/tools/a%20b",
    path: `${mountPoint(7, "s")}/tools/a%20b`,
    effect: "destructive",
    risk: "high",
    sensitive: true,
    outputTokensMax: 99,
  });
});

Deno.test("[C27] what isn't allowed isn't there: not by name, not in the list, not in the records", () => {
  const table = new ToolTable();
  table.bind(spec("s", { allow: ["get_*"] }), facts(tool("get_a"), tool("put_a")), 1);
  assert.equal(table.get("mcp__s__put_a"), undefined);
  assert.equal(table.former("mcp__s__put_a"), undefined);
  assert.deepEqual(table.definitions.map(({ name }) => name), ["get_a"]);
  assert.deepEqual(Object.keys(table.records("s")), ["get_a"]);
});

Deno.test("definitions are sorted by their full names, and the same array until something changes", () => {
  const table = new ToolTable();
  table.bind(spec("z"), facts(tool("b", {}, "z"), tool("a", {}, "z")), 1);
  table.bind(spec("a"), facts(tool("y", {}, "a")), 1);
  const { definitions } = table;
  assert.deepEqual(definitions.map(({ modelName }) => modelName), [
    "mcp__a__y",
    "mcp__z__a",
    "mcp__z__b",
  ]);
  assert.equal(table.definitions, definitions);
  table.bind(spec("a"), facts(), 1);
  assert.notEqual(table.definitions, definitions);
});

Deno.test("binding anew withdraws what isn't there any more, until it comes back; other servers stay", () => {
  const table = new ToolTable();
  table.bind(spec("s"), facts(tool("a"), tool("b")), 1);
  table.bind(spec("t"), facts(tool("a", {}, "t")), 1);
  table.bind(spec("s"), facts(tool("b")), 1);
  assert.equal(table.get("mcp__s__a"), undefined);
  assert.deepEqual(table.former("mcp__s__a"), { server: "s", isMounted: true });
  assert.equal(table.former("mcp__s__b"), undefined);
  assert.notEqual(table.get("mcp__t__a"), undefined);
  table.bind(spec("s"), facts(tool("a"), tool("b")), 1);
  assert.equal(table.former("mcp__s__a"), undefined);
});

Deno.test("a definition's hash covers all that a model is told, and not the order of keys", () => {
  const base = tool("a", { description: "d", inputSchema: { type: "object", title: "T" } });
  const same = tool("a", { description: "d", inputSchema: { title: "T", type: "object" } });
  assert.equal(definitionHash(base), definitionHash(same));
  const others = [
    tool("b", base),
    { ...base, description: "e" },
    { ...base, title: "t" },
    { ...base, inputSchema: { type: "object" } },
    { ...base, outputSchema: { type: "object" } },
  ].map((each, index) => index === 0 ? { ...each, name: "b" } : each);
  const hashes = [base, ...others].map(definitionHash);
  assert.equal(new Set(hashes).size, hashes.length);
  assert.equal(
    definitionHash({ ...base, annotations: { readOnlyHint: true } }),
    definitionHash(base),
  );
});

Deno.test("two records are compared by name and hash; names that every object has are names", () => {
  const table = new ToolTable();
  const records = (...tools: ToolDefinition[]) => {
    table.bind(spec("s"), facts(...tools), 1);
    return table.records("s");
  };
  const before = records(tool("a"), tool("b"), tool("constructor"), tool("__proto__"));
  const after = records(tool("b", { description: "new" }), tool("c"), tool("toString"));
  assert.deepEqual(compareTools(before, after), {
    added: ["c", "toString"],
    removed: ["__proto__", "a", "constructor"],
    changed: ["b"],
  });
  assert.deepEqual(compareTools(before, before), { added: [], removed: [], changed: [] });
});
