/** Checkpoints after every so many bytes, from each entry on to a few in a run: a crash at any point finds one that fits, an older one, or none, and goes on the same. */
import { KEPT, LOST, seeded } from "../doubles/faulty_disk.ts";
import { pointsUpTo, pointText, runUntilStop, Stage } from "./harness.ts";
import { playThrough, recover, runUncut } from "./recovery.ts";
import type { Scenario } from "./scenarios.ts";
import type { Suite } from "./tally.ts";

const SIZES_BYTES = [1, 300, 700, 1_500, 4_000];
/** Of the points so many apart are tried with each size. */
const STEP = 7;

export const CHECKPOINT_SIZES: Suite = {
  name: "checkpoints of every size",
  applies: ({ dull }) => dull === undefined,
  run: async (scenario, _uncut, tally) => {
    for (const [index, bytes] of SIZES_BYTES.entries()) {
      const uncut = await runUncut(stageOf(scenario, bytes));
      const points = pointsUpTo(uncut.diskOperations, uncut.worldPoints);
      for (let at = index; at < points.length; at += STEP) {
        const point = points[at];
        if (point === undefined) continue;
        const choice = [KEPT, LOST, seeded(at)][at % 3] ?? KEPT;
        await tally.try(`${bytes} bytes, ${pointText(point)}`, `${at % 3}`, async () => {
          const stage = stageOf(scenario, bytes);
          stage.stopAt(point);
          await runUntilStop(stage, playThrough(stage));
          stage.crash(choice);
          return await recover(stage, uncut);
        });
      }
    }
  },
};

function stageOf(scenario: Scenario, checkpointGrowthBytes: number): Stage {
  const stage = new Stage(scenario);
  stage.checkpointGrowthBytes = checkpointGrowthBytes;
  return stage;
}
