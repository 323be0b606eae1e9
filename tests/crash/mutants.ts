/** `mutants.ts [every] [mutant]`: takes promises out of rnix one at a time and says at how many points the harness notices. Fails if it misses one. */
import { fileURLToPath } from "node:url";
import { MUTANTS } from "./mutant_list.ts";
import { copyTree, runMutant } from "./mutate.ts";

const FEW_EVERY = 4;

/** Number of mutants that the harness has not noticed. */
async function missedMutants(every: number, part: string): Promise<number> {
  const tree = await copyTree(fileURLToPath(new URL("../..", import.meta.url)));
  let missed = 0;
  try {
    for (const mutant of MUTANTS.filter(({ name }) => name.includes(part))) {
      // What only a few scenarios show has few points.
      const share = mutant.scenario === undefined ? every : Math.min(every, FEW_EVERY);
      const args = { every: share, scenario: "-checkpoint", suite: "" };
      const { broken, places, suites, exitCode, output } = await runMutant(tree, mutant, args);
      const where = Object.entries(suites).map(([suite, count]) => `${suite} ${count}`).join(", ");
      const noticed = exitCode !== 0 && broken !== undefined && broken > 0;
      if (!noticed) missed += 1;
      const verdict = noticed ? `${broken} of ${places} points` : `MISSED (exit code ${exitCode})`;
      console.log(`${mutant.core ? "* " : ""}${mutant.name}: ${verdict} (violations: ${where})`);
      if (!noticed) console.log(output.slice(-2_000));
    }
  } finally {
    await Deno.remove(tree, { recursive: true });
  }
  return missed;
}

if (import.meta.main) {
  const [every = "1", part = ""] = Deno.args;
  if (await missedMutants(Number(every), part) > 0) Deno.exit(1);
}
