import assert from "node:assert/strict";
import type { Budget, Totals } from "../base/budget.ts";
import { callLimit, describeLimit, modelLimit } from "./limits.ts";

const USED: Totals = { turns: 3, tokens: 500, tool_calls: 7, active_ms: 60_000, cost_usd: 0.25 };

Deno.test("what is used up to the limit is used up; one more unit of it isn't", () => {
  const cases: [Budget, string][] = [
    [{ turns: 3 }, "turns"],
    [{ tokens: 500 }, "tokens"],
    [{ tokens: 10 }, "tokens"],
    [{ duration_ms: 60_000 }, "duration"],
    [{ cost_usd: 0.25 }, "cost_usd"],
  ];
  for (const [budget, key] of cases) assert.equal(modelLimit(budget, USED)?.key, key);
  for (
    const budget of [
      {},
      { turns: 4 },
      { tokens: 501 },
      { duration_ms: 60_001 },
      { cost_usd: 0.26 },
      { tool_calls: 1 },
    ]
  ) {
    assert.equal(modelLimit(budget, USED), undefined);
  }
});

Deno.test("a call is limited by calls and time, not by turns and tokens", () => {
  assert.equal(callLimit({ tool_calls: 7 }, USED)?.key, "tool_calls");
  assert.equal(callLimit({ duration_ms: 1 }, USED)?.key, "duration");
  assert.equal(callLimit({ turns: 1, tokens: 1, tool_calls: 8 }, USED), undefined);
});

Deno.test("a limit of nothing allows nothing", () => {
  const none: Totals = { turns: 0, tokens: 0, tool_calls: 0, active_ms: 0 };
  assert.equal(modelLimit({ turns: 0 }, none)?.key, "turns");
  assert.equal(callLimit({ tool_calls: 0 }, none)?.key, "tool_calls");
});

Deno.test("a limit that was met is told with its numbers, and with the option that raises it", () => {
  assert.deepEqual(describeLimit({ key: "turns", limit: 3, used: 3 }), {
    message: 'Budget "turns" is used up: 3 of 3',
    hint: "Go on with a higher limit: rnix resume RUN --max-turns N",
  });
  const { message, hint } = describeLimit({ key: "duration", limit: 1_500, used: 1_600 });
  assert.equal(message, 'Budget "duration" is used up: 1.6 s of 1.5 s');
  assert.match(hint, /--budget duration=N/);
  const cost = describeLimit({ key: "cost_usd", limit: 2, used: 0.1 + 0.2 });
  assert.equal(cost.message, 'Budget "cost_usd" is used up: $0.3 of $2');
});

Deno.test("large numbers are grouped as they are everywhere", () => {
  const { message } = describeLimit({ key: "tokens", limit: 20_000, used: 1_234_567 });
  assert.equal(message, 'Budget "tokens" is used up: 1,234,567 of 20,000');
});
