import assert from "node:assert/strict";
import type { ToolRules } from "../base/effect.ts";
import { effectOf, isAllowed, isSensitive, matchesGlob, riskOf } from "./tool_rules.ts";

const NONE: ToolRules = { effects: {}, risk: {}, sensitive: [] };

Deno.test("a glob's stars stand for any characters, none included, and the rest is literal", () => {
  const fits = [
    ["search_*", "search_repos"],
    ["search_*", "search_"],
    ["*", ""],
    ["*_*_*", "a_b_c"],
    ["a*b*c", "abbbc"],
    ["get", "get"],
    ["a.b", "a.b"],
    ["**", "x"],
  ];
  for (const [glob = "", name = ""] of fits) assert.ok(matchesGlob(glob, name), `${glob} ${name}`);
  const others = [
    ["search_*", "research_x"],
    ["*_repos", "search_repos_2"],
    ["aba*aba", "aba"],
    ["a*b*c", "acb"],
    ["get", "gets"],
    ["a.b", "axb"],
    ["get?", "gets"],
    ["[ab]", "a"],
    ["", "x"],
  ];
  for (const [glob = "", name = ""] of others) {
    assert.ok(!matchesGlob(glob, name), `${glob} ${name}`);
  }
});

Deno.test("without `allow` every tool is allowed, with it only what fits; an empty list allows none", () => {
  assert.ok(isAllowed(NONE, "anything"));
  const rules = { ...NONE, allow: ["get_*", "put"] };
  assert.deepEqual(["get_a", "put", "put_a"].map((tool) => isAllowed(rules, tool)), [
    true,
    true,
    false,
  ]);
  assert.ok(!isAllowed({ ...NONE, allow: [] }, "get"));
});

Deno.test("a tool nobody has classed is a write of medium risk", () => {
  assert.deepEqual([effectOf(NONE, "x"), riskOf(NONE, "x")], ["write", "medium"]);
});

Deno.test("an exact name goes before a glob, an earlier glob before a later one", () => {
  const rules: ToolRules = {
    ...NONE,
    effects: { "*": "destructive", "get_*": "read", get_lock: "write" },
  };
  assert.equal(effectOf(rules, "get_lock"), "write");
  assert.equal(effectOf(rules, "get_file"), "destructive");
});

Deno.test("names that every object has are no rules", () => {
  assert.equal(effectOf(NONE, "constructor"), "write");
  assert.equal(effectOf(NONE, "__proto__"), "write");
  assert.equal(riskOf(NONE, "toString"), "medium");
});

Deno.test("risk follows from the class unless it is declared", () => {
  const effects = { r: "read", i: "idempotent", w: "write", d: "destructive" } as const;
  const rules: ToolRules = { ...NONE, effects, risk: { w: "critical" } };
  assert.deepEqual(Object.keys(effects).map((tool) => riskOf(rules, tool)), [
    "low",
    "medium",
    "critical",
    "high",
  ]);
});

Deno.test("sensitive tools are named by glob", () => {
  const rules = { ...NONE, sensitive: ["*secret*"] };
  assert.deepEqual(["get_secret", "secrets", "get"].map((tool) => isSensitive(rules, tool)), [
    true,
    true,
    false,
  ]);
});
