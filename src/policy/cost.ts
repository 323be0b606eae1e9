/** What tokens cost. */
import type { Price, Usage } from "../base/budget.ts";

const TOKENS_PER_PRICE = 1_000_000;

/** Cost of a reply, US dollars; undefined without a price. */
export function costOf(price: Price | undefined, usage: Usage): number | undefined {
  if (price === undefined) return undefined;
  const cached = Math.min(usage.cached_tokens ?? 0, usage.input_tokens);
  const sum = (usage.input_tokens - cached) * price.input +
    cached * (price.cached ?? price.input) +
    usage.output_tokens * price.output;
  return sum / TOKENS_PER_PRICE;
}

/** Cost of a request that brought no reply, by the estimate of its tokens; undefined without a price. */
export function costOfEstimate(price: Price | undefined, tokens: number): number | undefined {
  return costOf(price, { input_tokens: tokens, output_tokens: 0 });
}
