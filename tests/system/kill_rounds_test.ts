import assert from "node:assert/strict";
import { killRounds } from "./kill_rounds.ts";

Deno.test("[A01] [C05] kill -9 of daemon, guard and clients loses nothing, doubles nothing, leaves nothing", async () => {
  const report = await killRounds({ kills: 5, seed: 11, runs: 3 });
  assert.equal(report.completed % 3, 0);
  assert.ok(Object.values(report.kills).reduce((sum, kills) => sum + kills, 0) >= 3);
});
