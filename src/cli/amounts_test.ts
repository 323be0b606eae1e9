import assert from "node:assert/strict";
import { bytes, cost, count, counted, elapsed } from "./amounts.ts";

Deno.test("times are told in at most two units, and never round up into a wrong one", () => {
  const cases: [number, string][] = [
    [-5, "0ms"],
    [0, "0ms"],
    [0.6, "1ms"],
    [999, "999ms"],
    [1000, "1.0s"],
    [2149, "2.1s"],
    [59_940, "59.9s"],
    [59_960, "1m00s"],
    [184_000, "3m04s"],
    [3_599_600, "1h00m"],
    [7_500_000, "2h05m"],
    [360_000_000, "100h00m"],
  ];
  for (const [ms, text] of cases) assert.equal(elapsed(ms), text, String(ms));
});

Deno.test("numbers are grouped, nouns counted", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(counted(0, "turn"), "0 turns");
  assert.equal(counted(1, "turn"), "1 turn");
  assert.equal(counted(2000, "token"), "2,000 tokens");
});

Deno.test("an unknown price is a dash, a small one keeps its digits", () => {
  assert.equal(cost(null), "-");
  assert.equal(cost(0), "$0.00");
  assert.equal(cost(0.0123), "$0.0123");
  assert.equal(cost(12.345), "$12.35");
});

Deno.test("sizes are told in the unit that fits", () => {
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(1023), "1023 B");
  assert.equal(bytes(1024), "1.0 KiB");
  assert.equal(bytes(5 * 1024 * 1024), "5.0 MiB");
});
