/** `deno task crash [every]`: the whole harness, a table of what it covered, and every violation. */
import { runScenario } from "./run_all.ts";
import { SCENARIOS } from "./scenarios.ts";

const every = Number(Deno.args[0] ?? 1);
const only = Deno.args[1];
let failed = 0;
for (const scenario of SCENARIOS) {
  if (only !== undefined && !scenario.name.includes(only)) continue;
  const startMs = performance.now();
  const report = await runScenario(scenario, { every });
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(
    `${scenario.name}: ${report.points} points, ${report.crashes} crashes, ${report.violations.length} violations, ${seconds} s`,
  );
  for (const { point, disk, what } of report.violations.slice(0, 5)) {
    console.log(`  ${point}, ${disk}: ${what.join("; ").slice(0, 1500)}`);
  }
  failed += report.violations.length;
}
if (failed > 0) Deno.exit(1);
