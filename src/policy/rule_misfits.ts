/** Whether a configuration's rules for tools fit the tools that the server has: a rule for a name that isn't there says nothing, and a tool may go without the one it was meant to have. */
import type { ToolRules } from "../base/effect.ts";
import { nearest } from "../base/nearest.ts";
import { matchesGlob } from "./tool_rules.ts";

/** A rule that fits no tool. */
export interface Misfit {
  /** Its key under `tools`. */
  key: "allow" | "effects" | "risk" | "sensitive";
  /** As it is written. */
  glob: string;
  /** The name, or the glob, that may be meant. */
  near?: string;
}

/** The rules that fit none of the names: of all that the server lists, usable or not. */
export function misfitsOf(rules: ToolRules, names: readonly string[]): Misfit[] {
  return globsOf(rules)
    .filter(({ glob }) => !names.some((name) => matchesGlob(glob, name)))
    .map((misfit) => {
      const near = nearGlob(misfit.glob, names);
      return near === undefined ? misfit : { ...misfit, near };
    });
}

/** The nearest name; of a glob, what fits once `-` and `_` are what they are in the names. */
function nearGlob(glob: string, names: readonly string[]): string | undefined {
  const swapped = [glob.replaceAll("_", "-"), glob.replaceAll("-", "_")];
  return nearest(glob, names) ??
    swapped.find((each) => names.some((name) => matchesGlob(each, name)));
}

/** The sentence on a rule that fits no tool, for who watches a run. */
export function misfitNotice(server: string, { key, glob, near }: Misfit): string {
  const advice = near === undefined
    ? "rnix mcp connect lists those that there are"
    : `did you mean "${near}"?`;
  return `${server}: tools.${key} names "${glob}", and there is no such tool; ${advice}`;
}

function globsOf(rules: ToolRules): Misfit[] {
  const under = (key: Misfit["key"], globs: readonly string[]) =>
    globs.map((glob) => ({ key, glob }));
  return [
    ...under("allow", rules.allow ?? []),
    ...under("effects", Object.keys(rules.effects)),
    ...under("risk", Object.keys(rules.risk)),
    ...under("sensitive", rules.sensitive),
  ];
}
