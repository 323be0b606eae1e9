/**
 * Whose use is told where, one rule for all commands: a list (`ps`, `top`) has a row for each process and counts each for itself, only a workflow, which itself uses nothing, by all below it; the end of a run counts it and all below it.
 */
import type { TreeUse, Use } from "../base/operations.ts";

/** Of a row in a list. */
export function rowUse(row: TreeUse): Use {
  return row.turns === 0 && row.tokens_used === 0 ? treeUse(row) : row;
}

/** Of a process and all below it. */
export function treeUse(process: TreeUse): Use {
  return process.tree ?? process;
}
