import assert from "node:assert/strict";
import type { ToolRules } from "../base/effect.ts";
import { SysError } from "../base/errors.ts";
import { unreachedVerdict } from "../devices/mcp/judge.ts";
import { withRuleFindings } from "./judge_rules.ts";

const { error: _, ...BLANK } = unreachedVerdict("s", new SysError("DRIVER", "none"));
const VERDICT = {
  ...BLANK,
  result: "ok" as const,
  findings: [{ severity: "note" as const, message: "a note" }],
  tools: {
    usable: ["search_repos", "pay"],
    set_aside: [{ tool: "odd", reason: "it is" }],
    renamed: [],
  },
};
const NO_RULES: ToolRules = { effects: {}, risk: {}, sensitive: [] };

Deno.test("rules that fit a tool, also one that is set aside, are not told", () => {
  const rules: ToolRules = {
    allow: ["search_*", "*"],
    effects: { pay: "write", odd: "read" },
    risk: { "p*": "high" },
    sensitive: ["pay"],
  };
  assert.equal(withRuleFindings(VERDICT, rules), VERDICT);
  assert.equal(withRuleFindings(VERDICT, NO_RULES), VERDICT);
});

Deno.test("a rule for a tool that isn't there is a warning with the name that was meant", () => {
  const judged = withRuleFindings(VERDICT, {
    allow: ["search_*", "delete_*", "search-r*"],
    effects: { serach_repos: "read" },
    risk: {},
    sensitive: [],
  });
  assert.equal(judged.result, "warnings");
  assert.deepEqual(judged.findings, [
    {
      severity: "warning",
      message: "tools.allow names 'delete_*', and there is no such tool",
      hint: "It has others: rnix mcp connect lists them",
    },
    {
      severity: "warning",
      message: "tools.allow names 'search-r*', and there is no such tool",
      hint: "Did you mean 'search_r*'?",
    },
    {
      severity: "warning",
      message: "tools.effects names 'serach_repos', and there is no such tool",
      hint: "Did you mean 'search_repos'?",
    },
    { severity: "note", message: "a note" },
  ]);
});

Deno.test("of a server that could not be mounted nothing is known of its tools", () => {
  const failed = unreachedVerdict("s", new SysError("DRIVER", "none"));
  assert.equal(withRuleFindings(failed, { ...NO_RULES, allow: ["x"] }), failed);
});
