/** A sample of the random schedules; `schedules.ts` runs as many as wanted. */
import assert from "node:assert/strict";
import { runSchedule } from "./schedule.ts";

const COUNT = 150;

Deno.test(`[A15] [A21] [A23] no promise breaks in ${COUNT} random schedules`, async () => {
  const told: string[] = [];
  for (let seed = 1; seed <= COUNT; seed += 1) {
    const { violations } = await runSchedule(seed);
    told.push(...violations.map((text) => `seed ${seed}: ${text}`));
  }
  assert.deepEqual(told, []);
});

Deno.test("a seed repeats its schedule, step by step", async () => {
  assert.deepEqual(await runSchedule(7), await runSchedule(7));
});
