/** Whether a configuration's rules for tools fit the tools that the server has: a rule for a name that isn't there says nothing, and a tool may go without the one it was meant to have. */
import type { ToolRules } from "../base/effect.ts";
import { nearest } from "../base/nearest.ts";
import type { Finding, ServerVerdict } from "../base/server_verdict.ts";
import { matchesGlob } from "../policy/tool_rules.ts";

/** The verdict with a warning for each rule that no tool fits. */
export function withRuleFindings(verdict: ServerVerdict, rules: ToolRules): ServerVerdict {
  if (verdict.error !== undefined) return verdict;
  const { usable, set_aside } = verdict.tools;
  const names = [...usable, ...set_aside.map(({ tool }) => tool)];
  const warnings = globsOf(rules)
    .filter(({ glob }) => !names.some((name) => matchesGlob(glob, name)))
    .map(({ key, glob }): Finding => {
      const near = nearest(glob, names);
      return {
        severity: "warning",
        message: `tools.${key} names '${glob}', and there is no such tool`,
        hint: near === undefined
          ? `It has ${names.length === 0 ? "no tools" : "others"}: rnix mcp connect lists them`
          : `Did you mean '${near}'?`,
      };
    });
  if (warnings.length === 0) return verdict;
  const result = verdict.result === "ok" ? "warnings" : verdict.result;
  const notes = verdict.findings.filter(({ severity }) => severity === "note");
  const others = verdict.findings.filter(({ severity }) => severity !== "note");
  return { ...verdict, result, findings: [...others, ...warnings, ...notes] };
}

function globsOf(rules: ToolRules): { key: string; glob: string }[] {
  const under = (key: string, globs: readonly string[]) => globs.map((glob) => ({ key, glob }));
  return [
    ...under("allow", rules.allow ?? []),
    ...under("effects", Object.keys(rules.effects)),
    ...under("risk", Object.keys(rules.risk)),
    ...under("sensitive", rules.sensitive),
  ];
}
