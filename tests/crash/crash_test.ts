/** A sample of the crash harness; `main.ts` runs all of it. */
import assert from "node:assert/strict";
import { SCENARIOS } from "./scenarios.ts";
import { runSuite, SUITES } from "./suites.ts";

/** Of each suite's trials one in so many is made here; prime, so that all kinds of points get their turn. */
const EVERY: { [suite: string]: number } = {
  "one crash": 7,
  "two crashes in a row": 13,
  "two resumes at once": 3,
  "a flipped bit in the last batch": 11,
  "a flipped bit before the last batch": 5,
  "a file cut short in its last two records": 23,
  "a disk that fails": 5,
  "a removal of old runs after a crash": 7,
};
/** The one scenario whose journal is too long to copy often. */
const LONG_EVERY = 41;

const FAULTS: { [suite: string]: string } = {
  "one crash": "[A23] ",
  "two resumes at once": "[A15] [A17] [A19] ",
  "a file cut short in its last two records": "[A11] ",
  "a flipped bit before the last batch": "[A13] ",
  "a disk that fails": "[A21] ",
};

for (const suite of SUITES) {
  Deno.test(`${FAULTS[suite.name] ?? ""}no promise breaks by ${suite.name}`, async (t) => {
    for (const scenario of SCENARIOS) {
      const every = scenario.dull === undefined ? EVERY[suite.name] ?? 1 : LONG_EVERY;
      await t.step(scenario.name, async () => {
        const tally = await runSuite(suite, scenario, { every });
        if (tally === undefined) return;
        assert.ok(tally.trials > 0 || scenario.dull !== undefined, "nothing was tried");
        const told = tally.violations.map(({ at, what }) => `${at}: ${what.join("; ")}`);
        assert.deepEqual(told, []);
      });
    }
  });
}
