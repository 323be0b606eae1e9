/** Random schedules: `schedules.ts [--seed N] [--count N]`. Tells what broke, with the seed that repeats it. Fails if anything did. */
import { parseArgs } from "node:util";
import { runSchedule } from "./schedule.ts";

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: "1" },
      count: { type: "string", default: "1000" },
      verbose: { type: "boolean", default: false },
    },
  });
  const total = { schedules: 0, runs: 0, effects: 0, steps: 0, failed: 0 };
  const first = Number(values.seed);
  for (let seed = first; seed < first + Number(values.count); seed += 1) {
    const { steps, violations, runs, effects } = await runSchedule(seed).catch((thrown) => ({
      steps: [],
      violations: [`threw ${thrown instanceof Error ? thrown.stack : String(thrown)}`],
      runs: 0,
      effects: 0,
    }));
    total.schedules += 1;
    total.runs += runs;
    total.effects += effects;
    total.steps += steps.length;
    if (values.verbose) console.log(steps.join("\n"));
    if (violations.length === 0) continue;
    total.failed += 1;
    console.log(`--seed ${seed} --count 1: ${violations.slice(0, 4).join("; ").slice(0, 1_500)}`);
  }
  console.log(
    `${total.schedules} schedules, ${total.steps} steps, ${total.runs} runs, ${total.effects} effects, ${total.failed} with violations`,
  );
  if (total.failed > 0) Deno.exit(1);
}

if (import.meta.main) await main();
