/**
 * Medians of a call through a mount against the bare SDK, as a script (`deno run -A tests/bench/mount_figures.ts`): the subjects take turns in short blocks, so that a machine that does other things slows all of them alike. `deno bench` shows no medians.
 */
import { callSubjects, TRANSPORTS } from "./call_subjects.ts";

const ROUNDS = 30;
/** Of the first rounds nothing counts, of a block neither what follows on the change. */
const WARM_ROUNDS = 3;
const WARM_CALLS = 4;
const CALLS = 300;
const AT_ONCE = 64;

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

/** Median times of `count` calls at once, in milliseconds. */
async function medians(
  subjects: [name: string, call: () => Promise<unknown>][],
  count: number,
): Promise<[name: string, ms: number][]> {
  const times = new Map<string, number[]>(subjects.map(([name]) => [name, []]));
  const block = WARM_CALLS + Math.ceil(CALLS / count);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, call] of subjects) {
      for (let turn = 0; turn < block; turn += 1) {
        const beganMs = performance.now();
        await Promise.all(Array.from({ length: count }, call));
        const tookMs = performance.now() - beganMs;
        if (round >= WARM_ROUNDS && turn >= WARM_CALLS) times.get(name)?.push(tookMs);
      }
    }
  }
  return subjects.map(([name]) => [name, median(times.get(name) ?? [])]);
}

for (const transport of TRANSPORTS) {
  const { bare, write, idempotent } = await callSubjects(transport);
  for (const count of [1, AT_ONCE]) {
    const found = await medians(
      [["bare SDK", bare], ["write", write], ["idempotent", idempotent]],
      count,
    );
    const [, baseMs] = found[0] ?? ["", NaN];
    for (const [name, ms] of found) {
      const rate = Math.round(count / ms * 1000).toLocaleString("en");
      const cost = `${(ms * 1000).toFixed(0)} µs, ${rate} calls/s, ${(ms / baseMs).toFixed(2)}×`;
      console.log(`${transport}, ${count} at once: ${name.padEnd(10)} ${cost}`);
    }
  }
}
Deno.exit(0);
