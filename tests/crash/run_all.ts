/** Runs scenarios over all their points and counts. */
import { KEPT, keptInPart, LOST, seeded } from "../doubles/faulty_disk.ts";
import {
  type CrashChoice,
  FaultyDisk,
  Incarnate,
  planFor,
  type Point,
  pointsOf,
  runUncut,
  runUntilStop,
  type Uncut,
  VirtualClock,
  World,
} from "./harness.ts";
import { recover } from "./recovery.ts";
import type { Scenario } from "./scenarios.ts";

/** What the disk has kept of what wasn't synced. */
export const CHOICES: readonly { name: string; choice: (seed: number) => CrashChoice }[] = [
  { name: "lost", choice: () => LOST },
  { name: "kept", choice: () => KEPT },
  { name: "in part", choice: (seed) => keptInPart(1 + (seed * 37) % 900) },
  { name: "at random", choice: (seed) => seeded(seed) },
];

export interface Violation {
  scenario: string;
  point: string;
  disk: string;
  what: string[];
}

export interface ScenarioReport {
  scenario: string;
  points: number;
  /** Points times choices of the disk. */
  crashes: number;
  violations: Violation[];
}

export interface RunOptions {
  /** Of the points times choices, every n-th; 1: all. */
  every?: number;
  offset?: number;
}

export async function runScenario(
  scenario: Scenario,
  { every = 1, offset = 0 }: RunOptions = {},
): Promise<ScenarioReport> {
  const uncut = await runUncut(scenario);
  const points = pointsOf(uncut);
  const report: ScenarioReport = {
    scenario: scenario.name,
    points: points.length,
    crashes: 0,
    violations: [],
  };
  let number = offset;
  for (const point of points) {
    for (const { name, choice } of CHOICES) {
      if (number++ % every !== 0) continue;
      report.crashes += 1;
      const what = await crashAt(scenario, uncut, point, choice(number)).catch(thrownText);
      if (what.length > 0) {
        report.violations.push({
          scenario: scenario.name,
          point: pointText(point),
          disk: name,
          what,
        });
      }
    }
  }
  return report;
}

/** Stops a fresh run at `point`, recovers, and gives what broke a promise. */
async function crashAt(
  scenario: Scenario,
  uncut: Uncut,
  point: Point,
  choice: CrashChoice,
): Promise<string[]> {
  const clock = new VirtualClock();
  const world = new World(clock, scenario.turns);
  const disk = new FaultyDisk(planFor(point));
  world.stopAtPoint(point.kind === "world" ? point.at : undefined, () => disk.stop());
  const process = new Incarnate(clock, disk, world, scenario);
  await runUntilStop(process, process.spawn());
  world.stopAtPoint(undefined, () => {});
  const after = disk.crash(choice);
  return await recover(after, { scenario, clock, world, uncut, shown: process.shown });
}

export function pointText(point: Point): string {
  return point.kind === "disk" ? `disk ${point.at} ${point.when}` : `world ${point.at}`;
}

function thrownText(thrown: unknown): string[] {
  return [`threw ${thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown)}`];
}
