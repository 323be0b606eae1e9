/** Limits of a run and what it has used of them. Names are snake_case where they are the bytes on disk. */

/** Limits over a run and all its resumes; an absent one is unlimited. */
export interface Budget {
  turns?: number;
  tokens?: number;
  tool_calls?: number;
  /** Active time, milliseconds. */
  duration_ms?: number;
  /** US dollars. */
  cost_usd?: number;
}

export const TURNS_DEFAULT = 50;

/** Tokens of one model reply. */
export interface Usage {
  /** Those from the provider's cache included. */
  input_tokens: number;
  output_tokens: number;
  cached_tokens?: number;
}

/** What a model costs, US dollars for a million tokens. */
export interface Price {
  input: number;
  output: number;
  /** Input that comes from the provider's cache; as `input` where it isn't given. */
  cached?: number;
}

/** What a run and its resumes have used so far. */
export interface Totals {
  turns: number;
  tokens: number;
  tool_calls: number;
  active_ms: number;
  /** US dollars; absent while no price is known, or once a part of it isn't. */
  cost_usd?: number;
}

export const NO_TOTALS: Totals = { turns: 0, tokens: 0, tool_calls: 0, active_ms: 0 };

/** Both together; a cost that one of them doesn't know counts as nothing. */
export function addTotals(one: Totals, other: Totals): Totals {
  return combined(one, other, 1);
}

/** What is left of `one` without `other`, which is part of it. */
export function subtractTotals(one: Totals, other: Totals): Totals {
  return combined(one, other, -1);
}

function combined(one: Totals, other: Totals, sign: 1 | -1): Totals {
  const cost = one.cost_usd === undefined && other.cost_usd === undefined
    ? {}
    : { cost_usd: (one.cost_usd ?? 0) + sign * (other.cost_usd ?? 0) };
  return {
    turns: one.turns + sign * other.turns,
    tokens: one.tokens + sign * other.tokens,
    tool_calls: one.tool_calls + sign * other.tool_calls,
    active_ms: one.active_ms + sign * other.active_ms,
    ...cost,
  };
}
