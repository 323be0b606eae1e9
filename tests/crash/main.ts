/** The whole harness: `main.ts [every] [[-]scenario] [suite]` prints a table of what it tried, and every broken promise. Fails if there is one. */
import { SCENARIOS } from "./scenarios.ts";
import { runSuite, SUITES } from "./suites.ts";

const SHOWN_MAX = 4;
const WHAT_CHARS_MAX = 1_500;

const [every = "1", scenarioPart = "", suitePart = ""] = Deno.args;
const isWanted = ({ name }: { name: string }) =>
  scenarioPart.startsWith("-")
    ? !name.includes(scenarioPart.slice(1))
    : name.includes(scenarioPart);
const total = { places: 0, trials: 0, broken: 0, violations: 0 };

for (const suite of SUITES.filter(({ name }) => name.includes(suitePart))) {
  for (const scenario of SCENARIOS.filter(isWanted)) {
    const startMs = performance.now();
    const tally = await runSuite(suite, scenario, { every: Number(every) });
    if (tally === undefined) continue;
    const { places, trials, violations, placesBroken } = tally;
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    console.log(
      `${suite.name} | ${scenario.name}: ${places.size} points, ${trials} trials, ${violations.length} violations, ${seconds} s`,
    );
    for (const { at, what } of violations.slice(0, SHOWN_MAX)) {
      console.log(`  ${at}: ${what.join("; ").slice(0, WHAT_CHARS_MAX)}`);
    }
    total.places += places.size;
    total.trials += trials;
    total.broken += placesBroken;
    total.violations += violations.length;
  }
}
console.log(
  `total: ${total.places} points, ${total.trials} trials, ${total.broken} points with violations, ${total.violations} violations`,
);
if (total.violations > 0) Deno.exit(1);
