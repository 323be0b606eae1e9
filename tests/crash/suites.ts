/** All that the harness tries, and one run of a suite on a scenario. */
import { GC_AFTER_CRASH } from "./collections.ts";
import { KILL_THEN_CRASH, ONE_CRASH, TWO_CRASHES, TWO_RESUMES } from "./crashes.ts";
import { CHECKPOINT_SIZES } from "./checkpoint_sizes.ts";
import { CUT_SHORT, FLIP_BEFORE, FLIP_LAST_BATCH } from "./damage.ts";
import { FAILING_IO } from "./failing_io.ts";
import { FORKS } from "./forks.ts";
import { Stage } from "./harness.ts";
import { runUncut } from "./recovery.ts";
import type { Scenario } from "./scenarios.ts";
import { type Sampling, type Suite, Tally } from "./tally.ts";

export const SUITES: readonly Suite[] = [
  ONE_CRASH,
  TWO_CRASHES,
  KILL_THEN_CRASH,
  TWO_RESUMES,
  FLIP_LAST_BATCH,
  FLIP_BEFORE,
  CUT_SHORT,
  FAILING_IO,
  GC_AFTER_CRASH,
  FORKS,
  CHECKPOINT_SIZES,
];

/** Undefined where the suite says nothing about the scenario. */
export async function runSuite(
  suite: Suite,
  scenario: Scenario,
  sampling: Sampling,
): Promise<Tally | undefined> {
  if (suite.applies?.(scenario) === false) return undefined;
  const tally = new Tally(sampling);
  const uncut = await runUncut(new Stage(scenario)).catch(thrownText);
  if (typeof uncut === "string") {
    tally.violations.push({ at: "uncut", what: [uncut] });
    return tally;
  }
  if (uncut.broken.length > 0) tally.violations.push({ at: "uncut", what: uncut.broken });
  await suite.run(scenario, uncut, tally);
  return tally;
}

function thrownText(thrown: unknown): string {
  return `threw ${thrown instanceof Error ? thrown.message : String(thrown)}`;
}
