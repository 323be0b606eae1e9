/** A fork right after a crash, stopped at each of its own operations: it is there whole or not at all, goes on as its source would have, and leaves the source as it was. */
import { forkRun } from "../../src/kernel/fork.ts";
import { SysError } from "../../src/base/errors.ts";
import { KEPT, LOST } from "../doubles/faulty_disk.ts";
import { crashed, pointsOf } from "./crashes.ts";
import { foldIfAny, membersOf } from "./families.ts";
import { type Point, pointText, RUNS_FOLDER, runUntilStop, type Stage } from "./harness.ts";
import { kernelOn } from "./incarnate.ts";
import {
  checkEntries,
  checkOnce,
  checkOutcome,
  checkResult,
  findStarted,
  goOn,
  recover,
  type Uncut,
} from "./recovery.ts";
import type { Scenario } from "./scenarios.ts";
import type { Suite, Tally } from "./tally.ts";

/** Of the points of a run so many apart are forked at, and of a fork's own so many apart are stops. */
const POINT_STEP = 5;
const STOP_STEP = 3;
/** Every incarnation that a fork takes over has the one pid of the fork. */
const SAME_PIDS = "pids don't rise";

export const FORKS: Suite = {
  name: "a fork after a crash",
  applies: ({ dull }) => dull === undefined,
  run: async (scenario, uncut, tally) => {
    const points = pointsOf(scenario, uncut).filter((_, index) => index % POINT_STEP === 2);
    for (const [index, point] of points.entries()) {
      await tally.try(
        pointText(point),
        "whole",
        async () => await forkAndGoOn(await crashed(scenario, point, KEPT), uncut),
      );
      if (index % STOP_STEP === 0) await stopEverywhere(scenario, uncut, { point, tally });
    }
  },
};

async function fork(stage: Stage, sourceRunId: string, confirmed = true): Promise<string> {
  const { disk, ids, clock } = stage;
  const kernel = kernelOn({ disk, ids, clock }, 1);
  return await forkRun(kernel, {
    sourceRunId,
    step: undefined,
    confirmed,
    hasIntent: false,
    repeatsFailed: stage.scenario.workflow !== undefined,
  });
}

/** The fork, and whether it had to be confirmed: children begin anew in it. */
async function forkAsUserDoes(
  stage: Stage,
  sourceRunId: string,
): Promise<{ runId: string; isAnew: boolean }> {
  try {
    return { runId: await fork(stage, sourceRunId, false), isAnew: false };
  } catch (thrown) {
    if (!(thrown instanceof SysError) || thrown.code !== "INVALID") throw thrown;
    return { runId: await fork(stage, sourceRunId), isAnew: true };
  }
}

/** The fork alone goes on: what its source had done counts as done. */
async function forkAndGoOn(stage: Stage, uncut: Uncut): Promise<string[]> {
  const { disk, world, clock } = stage;
  const source = await findStarted(disk);
  if (source === undefined || source.fold.state.ledger.state.end?.state === "exited") return [];
  const before = disk.peek(`${RUNS_FOLDER}/${source.runId}/journal.jsonl`);
  const finished = await finishedChildren(stage, source.runId);
  const { runId, isAnew } = await clock.run(forkAsUserDoes(stage, source.runId));
  tellOfSource(stage, source.runId, runId);
  await clock.run(goOn(stage, runId));
  const fold = await foldIfAny(disk, runId);
  if (fold === undefined) return ["the fork isn't there"];
  const after = disk.peek(`${RUNS_FOLDER}/${source.runId}/journal.jsonl`);
  const again = isAnew ? [] : await childrenMadeAgain(stage, runId, finished);
  return [
    ...stage.violations,
    ...world.violations,
    ...isAnew ? checkResult(fold, uncut) : checkOutcome(fold, uncut),
    ...checkEntries(fold).filter((text) => !text.startsWith(SAME_PIDS)),
    ...checkOnce(world),
    ...again,
    ...after.length === before.length ? [] : ["the source was changed"],
  ];
}

/** A person knows that what the source did under its key is done. */
function tellOfSource({ world }: Stage, source: string, fork: string): void {
  for (const effect of [...world.effects]) {
    if (!effect.key.startsWith(`${source}/`) || effect.effect === "idempotent") continue;
    world.known.set(effect.key.replace(source, fork), effect);
  }
}

/** Calls whose child had ended when the fork was made. */
async function finishedChildren({ disk }: Stage, runId: string): Promise<Set<string>> {
  const members = await membersOf(disk, runId);
  return new Set(
    members.slice(1).filter(({ path, fold }) =>
      path.lastIndexOf("/") === 0 && fold.state.ledger.state.end?.state === "exited"
    ).map(({ runId }) => runId),
  );
}

async function childrenMadeAgain(
  { disk }: Stage,
  runId: string,
  finished: ReadonlySet<string>,
): Promise<string[]> {
  const members = await membersOf(disk, runId);
  const used = new Set(members.map(({ runId }) => runId));
  return [...finished].filter((child) => !used.has(child))
    .map((child) => `a child that had ended was not taken over: ${child}`);
}

async function stopEverywhere(
  scenario: Scenario,
  uncut: Uncut,
  { point, tally }: { point: Point; tally: Tally },
): Promise<void> {
  const counting = await crashed(scenario, point, KEPT);
  const source = await findStarted(counting.disk);
  if (source === undefined || source.fold.state.ledger.state.end?.state === "exited") return;
  await counting.clock.run(fork(counting, source.runId));
  for (let at = 1; at <= counting.disk.operations.length; at += 1) {
    await tally.try(`${pointText(point)} fork ${at}`, at % 2 === 0 ? "kept" : "lost", async () => {
      const stage = await crashed(scenario, point, KEPT);
      stage.stopAt({ kind: "disk", at, when: at % 4 < 2 ? "before" : "after" });
      await runUntilStop(stage, fork(stage, source.runId));
      stage.crash(at % 2 === 0 ? KEPT : LOST);
      return await recover(stage, uncut);
    });
  }
}
