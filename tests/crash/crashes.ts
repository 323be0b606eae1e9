/** Crashes: one at every point of a run, two in a row, and after one of them two resumes at once. */
import { SysError } from "../../src/base/errors.ts";
import { type CrashChoice, KEPT, keptInPart, LOST, seeded } from "../doubles/faulty_disk.ts";
import { type Point, pointsUpTo, pointText, runUntilStop, Stage } from "./harness.ts";
import { findStarted, goOn, playThrough, recover, type Uncut } from "./recovery.ts";
import { rulesFor } from "./rules.ts";
import { DULL_EVERY, type Scenario } from "./scenarios.ts";
import type { Suite, Tally } from "./tally.ts";

/** What the disk has kept of what wasn't synced. */
const CHOICES: readonly { name: string; choice: (seed: number) => CrashChoice | "killed" }[] = [
  // Only the process died: all is there, and no more durable than before.
  { name: "killed", choice: () => "killed" },
  { name: "lost", choice: () => LOST },
  { name: "kept", choice: () => KEPT },
  { name: "in part", choice: (seed) => keptInPart(1 + (seed * 37) % 900) },
  { name: "at random", choice: (seed) => seeded(seed) },
];
/** Of the points of a run (and of those of the resume after it) so many apart are tried for two crashes. */
const FIRST_STEP = 3;
const SECOND_STEP = 4;
const CONTENDERS_STEP = 3;

/** Points of the uncut run that are worth a trial. */
export function pointsOf(scenario: Scenario, uncut: Uncut): Point[] {
  const { dull = 0 } = scenario;
  const isDull = ({ kind, at }: Point) =>
    at < dull * (kind === "disk" ? uncut.diskOperations : uncut.worldPoints);
  return pointsUpTo(uncut.diskOperations, uncut.worldPoints)
    .filter((point) => !isDull(point) || point.at % DULL_EVERY === 0);
}

/** A run that was stopped at `point`; its stage after the crash. */
export async function crashed(
  scenario: Scenario,
  point: Point,
  choice: CrashChoice | "killed",
): Promise<Stage> {
  const stage = new Stage(scenario);
  stage.stopAt(point);
  await runUntilStop(stage, playThrough(stage));
  stage.crash(choice);
  return stage;
}

export const ONE_CRASH: Suite = {
  name: "one crash",
  run: async (scenario, uncut, tally) => {
    let seed = 0;
    for (const point of pointsOf(scenario, uncut)) {
      for (const { name, choice } of CHOICES) {
        seed += 1;
        const chosen = choice(seed);
        await tally.try(
          pointText(point),
          name,
          async () => await recover(await crashed(scenario, point, chosen), uncut),
        );
      }
    }
  },
};

/** What only the page cache had when the process was killed, and what came of it, must be on the disk once the run is over: then the machine loses all that isn't. */
export const KILL_THEN_CRASH: Suite = {
  name: "a kill, and a crash once all is over",
  run: async (scenario, uncut, tally) => {
    for (const point of pointsOf(scenario, uncut)) {
      await tally.try(pointText(point), "lost", async () => {
        const stage = await crashed(scenario, point, "killed");
        const started = await findStarted(stage.disk);
        if (started !== undefined) await stage.clock.run(goOn(stage, started.runId));
        stage.crash(LOST);
        return await recover(stage, uncut);
      });
    }
  },
};

/** The second crash comes in what follows the first: resumes, settling, mounting and the rest of the run. */
export const TWO_CRASHES: Suite = {
  name: "two crashes in a row",
  run: async (scenario, uncut, tally) => {
    const points = pointsOf(scenario, uncut);
    const step = scenario.dull === undefined ? FIRST_STEP : FIRST_STEP * DULL_EVERY;
    for (let index = 1; index < points.length; index += step) {
      const first = points[index];
      if (first === undefined || !tally.takesPlace()) continue;
      await crashAgain(scenario, uncut, tally, { first, seed: index });
    }
  },
};

async function crashAgain(
  scenario: Scenario,
  uncut: Uncut,
  tally: Tally,
  { first, seed }: { first: Point; seed: number },
): Promise<void> {
  const firstChoice = CHOICES[seed % CHOICES.length]?.choice(seed) ?? LOST;
  const counting = await crashed(scenario, first, firstChoice);
  const runId = (await findStarted(counting.disk))?.runId;
  if (runId === undefined) return;
  counting.world.points = 0;
  await counting.clock.run(goOn(counting, runId));
  const points = pointsUpTo(counting.disk.operations.length, counting.world.points);
  for (let index = seed % SECOND_STEP; index < points.length; index += SECOND_STEP) {
    const second = points[index];
    if (second === undefined) continue;
    const { name, choice } = CHOICES[(seed + index) % CHOICES.length] ??
      { name: "", choice: seeded };
    await tally.try(`${pointText(first)} then ${pointText(second)}`, name, async () => {
      const stage = await crashed(scenario, first, firstChoice);
      stage.stopAt(second);
      await runUntilStop(stage, goOn(stage, runId));
      stage.crash(choice(seed + index));
      return await recover(stage, uncut);
    });
  }
}

/** Two processes resume the same run: one goes on, the other is refused with the owner's name. */
export const TWO_RESUMES: Suite = {
  name: "two resumes at once",
  run: async (scenario, uncut, tally) => {
    const points = pointsOf(scenario, uncut);
    for (let index = 0; index < points.length; index += CONTENDERS_STEP) {
      const point = points[index];
      if (point === undefined) continue;
      await tally.try(pointText(point), "kept", async () => {
        const stage = await crashed(scenario, point, index % 2 === 0 ? KEPT : LOST);
        return [...await contend(stage), ...await recover(stage, uncut)];
      });
    }
  },
};

async function contend(stage: Stage): Promise<string[]> {
  const { disk, world, clock } = stage;
  const started = await findStarted(disk);
  if (started === undefined) return [];
  const { runId, fold } = started;
  if (fold.state.ledger.state.end?.state === "exited") return [];
  const rules = rulesFor(fold.state.ledger.openCalls(), world, runId);
  // Longer than anyone waits for a lease, so that the first is still at work then.
  world.mountMs = 1_500;
  const resume = async (osPid: number) => {
    const live = await stage.process(osPid).resume(runId, rules);
    await live.done;
    return clock.monotonic();
  };
  const togetherMs = clock.monotonic() + world.mountMs;
  const ends = await clock.run(Promise.allSettled([resume(11), resume(12)]));
  // A run that a limit or a failure lets do nothing starts no server, so the first was over before the second came.
  const wereTogether = ends.every((end) => end.status === "rejected" || end.value >= togetherMs);
  world.mountMs = 0;
  const refusals = ends.filter((end) => end.status === "rejected").map(({ reason }) => reason);
  if (!wereTogether && refusals.every(cameAfter)) return [];
  if (refusals.length !== 1) return [`${refusals.length} of two resumes were refused`];
  return refusals.filter((reason) => !isRefusal(reason)).map((reason) => `refused by ${reason}`);
}

/** The first had settled what the second came to decide on. */
function cameAfter(reason: unknown): boolean {
  return reason instanceof SysError && reason.code === "INVALID" &&
    / fits no call whose outcome is unknown$/.test(reason.message);
}

/** The owner is named; or the run had come to its end meanwhile, and nothing was left to do. */
function isRefusal(reason: unknown): boolean {
  if (!(reason instanceof SysError) || reason.code !== "INVALID") return false;
  return / is held by process 1[12]$/.test(reason.message) ||
    reason.message === "The run has completed";
}
