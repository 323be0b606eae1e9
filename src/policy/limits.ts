/** Which limit stands in the way of the next model request or call, and how a limit is changed. */
import { count } from "../base/amount.ts";
import { shortRunId } from "../base/ids.ts";
import type { Budget, Totals } from "../base/budget.ts";

export interface LimitHit {
  key: "turns" | "tokens" | "tool_calls" | "duration" | "cost_usd";
  limit: number;
  used: number;
  /** The process above whose limit it is, where it isn't the process's own. */
  of?: { runId: string; pid: number };
}

/** The limit that forbids another model request now, if one does. */
export function modelLimit(budget: Budget, totals: Totals): LimitHit | undefined {
  return over("turns", budget.turns, totals.turns) ??
    over("tokens", budget.tokens, totals.tokens) ??
    over("cost_usd", budget.cost_usd, totals.cost_usd ?? 0) ??
    over("duration", budget.duration_ms, totals.active_ms);
}

/** The limit that forbids another call now, if one does. */
export function callLimit(budget: Budget, totals: Totals): LimitHit | undefined {
  return over("tool_calls", budget.tool_calls, totals.tool_calls) ??
    over("duration", budget.duration_ms, totals.active_ms);
}

function over(key: LimitHit["key"], limit: number | undefined, used: number): LimitHit | undefined {
  return limit !== undefined && used >= limit ? { key, limit, used } : undefined;
}

/** How a limit that was reached is told, with what to do. */
export function describeLimit(hit: LimitHit): { message: string; hint: string } {
  const amount = (value: number) => {
    if (hit.key === "duration") return `${value / 1000} s`;
    return hit.key === "cost_usd" ? `$${Number(value.toFixed(6))}` : count(value);
  };
  const option = hit.key === "turns" ? "--max-turns N" : `--budget ${hit.key}=N`;
  const { of } = hit;
  const whose = of === undefined ? "" : ` of PID ${of.pid}, for all below it,`;
  const run = of === undefined ? "RUN" : shortRunId(of.runId);
  return {
    message: `Budget "${hit.key}"${whose} is used up: ${amount(hit.used)} of ${amount(hit.limit)}`,
    hint: `Go on with a higher limit: rnix resume ${run} ${option}`,
  };
}
