/** A removal of old runs right after a crash, with limits that spare nothing: what hasn't ended is none of its business, and goes on as if there had been none. */
import { collectGarbage } from "../../src/daemon/garbage.ts";
import { Runs } from "../../src/daemon/runs.ts";
import { Pids } from "../../src/kernel/pids.ts";
import { dirname } from "../../src/base/posix_path.ts";
import { type CrashChoice, KEPT, LOST } from "../doubles/faulty_disk.ts";
import { crashed, pointsOf } from "./crashes.ts";
import { membersOf } from "./families.ts";
import { pointText, RUNS_FOLDER, type Stage } from "./harness.ts";
import { findStarted, recover, type Uncut } from "./recovery.ts";
import type { Suite } from "./tally.ts";

/** Of the points of a run so many apart are tried. */
const STEP = 2;

export const GC_AFTER_CRASH: Suite = {
  name: "a removal of old runs after a crash",
  run: async (scenario, uncut, tally) => {
    const points = pointsOf(scenario, uncut).filter((_, index) => index % STEP === 0);
    for (const [index, point] of points.entries()) {
      const choice = index % 2 === 0 ? KEPT : LOST;
      await tally.try(
        pointText(point),
        index % 2 === 0 ? "kept" : "lost",
        async () => await collectAndGoOn(await crashed(scenario, point, choice), uncut),
      );
      await tally.try(pointText(point), "killed, and lost after it", async () => {
        return await collectAndGoOn(await crashed(scenario, point, "killed"), uncut, LOST);
      });
    }
  },
};

/** `then`: what the disk keeps where the machine stops right after the removal. */
async function collectAndGoOn(
  stage: Stage,
  uncut: Uncut,
  then?: CrashChoice,
): Promise<string[]> {
  const before = await findStarted(stage.disk);
  const members = before === undefined ? [] : await membersOf(stage.disk, before.runId);
  const open = members.filter(({ fold }) => fold.state.ledger.state.end?.state !== "exited");
  const { removed } = await stage.clock.run(collectAll(stage));
  if (then !== undefined) stage.crash(then);
  const gone = new Set(removed.map(({ run_id }) => run_id));
  if (open.some(({ runId }) => gone.has(runId))) return ["a run that had not ended was removed"];
  if (before !== undefined && gone.has(before.runId)) {
    return gone.size + open.length === members.length ? [] : ["a run that had ended stayed"];
  }
  // What is left of a family that goes on must be enough to go on the same.
  return await recover(stage, uncut, members.filter(({ runId }) => gone.has(runId)));
}

async function collectAll({ disk, clock }: Stage) {
  const state = dirname(RUNS_FOLDER);
  const runs = new Runs(disk, new Pids(disk, clock, state), state);
  const taker = { clock, osPid: 77, instance: "gc" };
  const limits = { olderThanMs: 0, maxRuns: 0 };
  return await collectGarbage({ storage: disk, runs, taker }, limits);
}
