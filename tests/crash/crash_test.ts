/** A sample of the crash harness; `main.ts` runs all of it. */
import assert from "node:assert/strict";
import { TWO_CRASHES } from "./crashes.ts";
import { type Scenario, SCENARIOS } from "./scenarios.ts";
import { runSuite, SUITES } from "./suites.ts";
import type { Sampling, Suite } from "./tally.ts";

/** Of each suite's trials one in so many is made here; prime, so that all kinds of points get their turn. */
const EVERY: { [suite: string]: number } = {
  "one crash": 29,
  "two crashes in a row": 71,
  "a kill, and a crash once all is over": 97,
  "two resumes at once": 17,
  "a flipped bit in the last batch": 29,
  "a flipped bit before the last batch": 19,
  "a file cut short in its last two records": 71,
  "a disk that fails": 29,
  "a removal of old runs after a crash": 19,
  "a fork after a crash": 41,
  "checkpoints of every size": 31,
};
/** The one scenario whose journal is too long to copy often. */
const LONG_EVERY = 97;
/** Whose many runs have many points: of those so much less. */
const WORKFLOW_SHARE = 11;

function samplingOf({ name }: Suite, { dull, workflow }: Scenario): Sampling {
  const every = dull === undefined ? EVERY[name] ?? 1 : LONG_EVERY;
  if (workflow === undefined) return { every };
  return name === TWO_CRASHES.name
    ? { every, everyPlace: WORKFLOW_SHARE }
    : { every: WORKFLOW_SHARE * every };
}

const FAULTS: { [suite: string]: string } = {
  "one crash": "[A23] ",
  "two resumes at once": "[A15] [A17] [A19] ",
  "a fork after a crash": "[A03] ",
  "a file cut short in its last two records": "[A11] ",
  "a flipped bit before the last batch": "[A13] ",
  "a disk that fails": "[A21] ",
};

for (const suite of SUITES) {
  Deno.test(`${FAULTS[suite.name] ?? ""}no promise breaks by ${suite.name}`, async (t) => {
    let trials = 0;
    for (const scenario of SCENARIOS) {
      await t.step(scenario.name, async () => {
        const tally = await runSuite(suite, scenario, samplingOf(suite, scenario));
        if (tally === undefined) return;
        trials += tally.trials;
        const told = tally.violations.map(({ at, what }) => `${at}: ${what.join("; ")}`);
        assert.deepEqual(told, []);
      });
    }
    assert.ok(trials > 0, "nothing was tried");
  });
}
