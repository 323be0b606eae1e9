/** What a judge says of a configuration's rules for tools that fit none of the server's. */
import type { ToolRules } from "../base/effect.ts";
import type { Finding, ServerVerdict } from "../base/server_verdict.ts";
import { misfitsOf } from "../policy/rule_misfits.ts";

/** The verdict with a warning for each rule that no tool fits. */
export function withRuleFindings(verdict: ServerVerdict, rules: ToolRules): ServerVerdict {
  if (verdict.error !== undefined) return verdict;
  const { usable, set_aside } = verdict.tools;
  const names = [...usable, ...set_aside.map(({ tool }) => tool)];
  const warnings = misfitsOf(rules, names).map(({ key, glob, near }): Finding => ({
    severity: "warning",
    message: `tools.${key} names '${glob}', and there is no such tool`,
    hint: near === undefined
      ? `It has ${names.length === 0 ? "no tools" : "others"}: rnix mcp connect lists them`
      : `Did you mean '${near}'?`,
  }));
  if (warnings.length === 0) return verdict;
  const result = verdict.result === "ok" ? "warnings" : verdict.result;
  const notes = verdict.findings.filter(({ severity }) => severity === "note");
  const others = verdict.findings.filter(({ severity }) => severity !== "note");
  return { ...verdict, result, findings: [...others, ...warnings, ...notes] };
}
