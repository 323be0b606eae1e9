import assert from "node:assert/strict";
import { formatDuration, parseDuration } from "./duration.ts";

Deno.test("durations are read in all units, alone and together", () => {
  const table: [string, number][] = [
    ["500ms", 500],
    ["30s", 30_000],
    ["10m", 600_000],
    ["1h30m", 5_400_000],
    ["2h", 7_200_000],
    ["30d", 2_592_000_000],
    ["1d12h", 129_600_000],
    ["1m30s", 90_000],
    ["1h2m3s4ms", 3_723_004],
    ["1.5s", 1500],
    ["0s", 0],
    ["1m500ms", 60_500],
  ];
  for (const [text, ms] of table) assert.equal(parseDuration(text), ms, text);
});

Deno.test("what isn't a duration is not guessed at", () => {
  const wrong = ["", "30", "s", "30 s", "30S", "1w", "-5s", "5s3m", "5s5s", "1e3s", "1.5m", "5mss"];
  wrong.push("99999999999999999999h", "30s ", "thirty");
  for (const text of wrong) assert.equal(parseDuration(text), undefined, text);
});

Deno.test("a formatted duration reads as the same number", () => {
  const values = [0, 1, 999, 1000, 1500, 59_999, 60_000, 90_000, 3_600_000, 5_400_000, 86_400_123];
  for (const ms of values) assert.equal(parseDuration(formatDuration(ms)), ms);
  assert.equal(formatDuration(90_000), "1m30s");
  assert.equal(formatDuration(0), "0s");
  assert.equal(formatDuration(-5), "0s");
  assert.equal(formatDuration(1500.7), "1s500ms");
});
