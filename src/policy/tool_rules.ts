/** Effect class, risk and permission of a tool, from local rules alone. */
import type { EffectClass, Risk, ToolRules } from "../base/effect.ts";

/** Whether `name` fits `glob`, in which `*` stands for any characters. */
export function matchesGlob(glob: string, name: string): boolean {
  const parts = glob.split("*");
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  if (parts.length === 1) return glob === name;
  if (!name.startsWith(first)) return false;
  let from = first.length;
  for (const part of parts.slice(1, -1)) {
    const at = name.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return name.length - last.length >= from && name.endsWith(last);
}

export function isAllowed(rules: ToolRules, tool: string): boolean {
  return rules.allow === undefined || rules.allow.some((glob) => matchesGlob(glob, tool));
}

export function isSensitive(rules: ToolRules, tool: string): boolean {
  return rules.sensitive.some((glob) => matchesGlob(glob, tool));
}

/** The declared class; without one `undeclared`. */
export function effectOf(
  rules: ToolRules,
  tool: string,
  undeclared: EffectClass = "write",
): EffectClass {
  return lookUp(rules.effects, tool) ?? undeclared;
}

/** The declared risk; without one it follows from the effect class. */
export function riskOf(rules: ToolRules, tool: string): Risk {
  const declared = lookUp(rules.risk, tool);
  if (declared !== undefined) return declared;
  const effect = effectOf(rules, tool);
  if (effect === "read") return "low";
  return effect === "destructive" ? "high" : "medium";
}

function lookUp<T>(table: { [tool: string]: T }, tool: string): T | undefined {
  if (Object.hasOwn(table, tool)) return table[tool];
  return Object.entries(table).find(([glob]) => matchesGlob(glob, tool))?.[1];
}
