/**
 * What a run used together with all below it, from their journals, counted as a budget of the tree counts: children that have ended by what their parents' journals say, those that haven't by their own; a detached one goes on for itself.
 *
 * This is the one count behind `ps`, `top` and every report.
 */
import { addTotals, type Totals } from "../base/budget.ts";
import type { TreeUse, Use } from "../base/operations.ts";
import type { Ledger } from "../kernel/ledger.ts";
import { shownCost } from "./report.ts";

/** Reads another run; undefined for one that isn't there or can't be read. */
export type LedgerOf = (runId: string) => Promise<Ledger | undefined>;

/** What all below a run used so far. */
export async function totalsBelow(ledger: Ledger, ledgerOf: LedgerOf): Promise<Totals> {
  let sum = ledger.state.childTotals;
  for (const { childRunId } of ledger.openChildren()) {
    const child = childRunId === undefined ? undefined : await ledgerOf(childRunId);
    if (child === undefined) continue;
    sum = addTotals(sum, addTotals(child.state.totals, await totalsBelow(child, ledgerOf)));
  }
  return sum;
}

/** `told` with the tree's use beside its own, where there is more than its own. */
export function withTree<T extends Use>(told: T, below: Totals): T & TreeUse {
  if (below.turns === 0 && below.tokens === 0) return told;
  const own = told.cost_usd === null ? {} : { cost_usd: told.cost_usd };
  const all = addTotals({
    turns: told.turns,
    tokens: told.tokens_used,
    tool_calls: 0,
    active_ms: 0,
    ...own,
  }, below);
  return {
    ...told,
    tree: { turns: all.turns, tokens_used: all.tokens, cost_usd: shownCost(all) },
  };
}
