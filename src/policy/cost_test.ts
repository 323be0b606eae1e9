import assert from "node:assert/strict";
import { costOf, costOfEstimate } from "./cost.ts";

const PRICE = { input: 3, output: 15, cached: 0.3 };

Deno.test("tokens cost what a million of their kind costs, those from the cache less", () => {
  const usage = { input_tokens: 1_000_000, output_tokens: 100_000, cached_tokens: 400_000 };
  assert.equal(costOf(PRICE, usage), 0.6 * 3 + 0.4 * 0.3 + 0.1 * 15);
});

Deno.test("without a price for the cache its tokens cost as input, without any price nothing is known", () => {
  const usage = { input_tokens: 1_000_000, output_tokens: 0, cached_tokens: 400_000 };
  assert.equal(costOf({ input: 3, output: 15 }, usage), 3);
  assert.equal(costOf(undefined, usage), undefined);
  assert.equal(costOf({ input: 0, output: 0 }, usage), 0);
});

Deno.test("more tokens from the cache than went in count as all of them", () => {
  const usage = { input_tokens: 10, output_tokens: 0, cached_tokens: 99 };
  assert.equal(costOf({ input: 1, output: 1, cached: 0 }, usage), 0);
});

Deno.test("an estimate costs as input", () => {
  assert.equal(costOfEstimate(PRICE, 500_000), 1.5);
  assert.equal(costOfEstimate(undefined, 500_000), undefined);
});
