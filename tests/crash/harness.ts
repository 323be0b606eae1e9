/**
 * The counting crash harness: runs a scenario once uncut, then once for every point at which it can be stopped, resumes it, and compares.
 *
 * Points: every operation of the disk (before it and after it), every mount, model request, reply, call sent, effect done, answer received. At a stop the process is gone; the disk keeps what was synced and, of the rest, what the crash chose.
 * What must hold: every effect that can't be repeated was done once, and had a durable intent before; what was shown is durable; the end and the whole conversation are those of the uncut run.
 */
import { agentProgram } from "../../src/agent/agent_program.ts";
import type { AgentState } from "../../src/agent/agent_state.ts";
import { SysError } from "../../src/base/errors.ts";
import type { RunEvent } from "../../src/base/operations.ts";
import { createIntake } from "../../src/kernel/intake.ts";
import { type KernelDeps, type LiveRun, type RunParts, spawnRun } from "../../src/kernel/launch.ts";
import { Pids } from "../../src/kernel/pids.ts";
import { KERNEL_LIMITS, type Observer, type WithoutHead } from "../../src/kernel/ports.ts";
import { resumeRun } from "../../src/kernel/resume.ts";
import type { SettleRule } from "../../src/kernel/settler.ts";
import { RunState } from "../../src/kernel/run_state.ts";
import { readRun } from "../../src/journal/mod.ts";
import type { Entry } from "../../src/journal/entry.ts";
import { Redactor } from "../../src/base/redaction.ts";
import type { AgentPrompt } from "../../src/agent/agent_program.ts";
import { type CrashChoice, FaultyDisk, type Plan } from "../doubles/faulty_disk.ts";
import { VirtualClock } from "../doubles/virtual_clock.ts";
import type { Scenario } from "./scenarios.ts";
import { World } from "./world.ts";

export const RUNS_FOLDER = "/state/runs";

/** Where a run is stopped. */
export type Point =
  | { kind: "disk"; at: number; when: "before" | "after" }
  | { kind: "world"; at: number };

/** What was shown to the user, and what the disk knew then. */
export interface Shown {
  event: WithoutHead<RunEvent>;
}

/** One OS process of rnix on one disk. */
export class Incarnate {
  readonly shown: Shown[] = [];
  readonly clock: VirtualClock;
  readonly disk: FaultyDisk;
  readonly #world: World;
  readonly #scenario: Scenario;
  readonly kernel: KernelDeps;

  constructor(clock: VirtualClock, disk: FaultyDisk, world: World, scenario: Scenario) {
    this.clock = clock;
    this.disk = disk;
    this.#world = world;
    this.#scenario = scenario;
    this.kernel = {
      storage: disk,
      clock,
      random: (bytes) => bytes.fill(7),
      pids: new Pids(disk, clock, "/state"),
      runsFolder: RUNS_FOLDER,
      osPid: 1,
      instance: "test-instance",
      limits: { ...KERNEL_LIMITS, cancelGraceMs: 20 },
      version: "0.0.0",
    };
  }

  readonly observer: Observer = {
    emit: (event) => {
      if (!this.disk.isStopped) this.shown.push({ event });
    },
  };

  async #parts(): Promise<RunParts<AgentState, AgentPrompt>> {
    await Promise.resolve();
    return {
      program: agentProgram("system"),
      specs: [this.#world.spec],
      unavailable: [],
      driver: this.#world.driver,
      model: this.#world.model,
      intake: createIntake(new Redactor([])),
      trace: { record: () => {} },
      onUnknown: this.#scenario.onUnknown,
      close: () => {},
    };
  }

  async spawn(): Promise<LiveRun> {
    await this.disk.makeFolder(RUNS_FOLDER, 0o700);
    await this.disk.syncFolder("/state");
    await this.disk.syncFolder("/");
    return await spawnRun(this.kernel, {
      program: agentProgram("system"),
      spec: { v: 1 },
      agent: "tester",
      intent: "Do it",
      cwd: "/",
      model: "fixed",
      budget: {},
      prepare: () => this.#parts(),
    }, this.observer);
  }

  async resume(
    runId: string,
    rules: readonly SettleRule[],
    options: { acceptCut?: boolean } = {},
  ): Promise<LiveRun> {
    return await resumeRun(this.kernel, {
      runId,
      program: agentProgram(""),
      rules,
      acceptCut: options.acceptCut ?? false,
      plan: async (ledger) => {
        await Promise.resolve();
        return {
          model: "fixed",
          budget: ledger.state.budget,
          onUnknown: this.#scenario.onUnknown,
          program: agentProgram("system"),
          prepare: () => this.#parts(),
        };
      },
    }, this.observer);
  }
}

/** What a journal says, folded. */
export interface Fold {
  entries: Entry[];
  state: RunState<AgentState, AgentPrompt>;
}

export async function foldRun(disk: FaultyDisk, runId: string): Promise<Fold> {
  const state = new RunState(agentProgram("system"));
  const entries: Entry[] = [];
  await readRun(disk, `${RUNS_FOLDER}/${runId}`, (entry) => {
    entries.push(entry);
    state.fold(entry);
  });
  return { entries, state };
}

/** Hash of the whole conversation, and the result: what two runs are compared by. */
export async function outcomeOf(disk: FaultyDisk, runId: string): Promise<string> {
  const { state } = await foldRun(disk, runId);
  const saved = state.save() as { program: { historySha256: string } };
  const { end } = state.ledger.state;
  return JSON.stringify([
    saved.program.historySha256,
    end?.state === "exited" ? [end.status, end.result] : end?.state,
  ]);
}

export async function findRunId(disk: FaultyDisk): Promise<string | undefined> {
  try {
    return (await disk.list(RUNS_FOLDER))[0];
  } catch {
    return undefined;
  }
}

/** The uncut run: how many points it has and how it ends. */
export interface Uncut {
  runId: string;
  diskOperations: number;
  worldPoints: number;
  outcome: string;
  effects: string[];
}

export async function runUncut(scenario: Scenario): Promise<Uncut> {
  const clock = new VirtualClock();
  const world = new World(clock, scenario.turns);
  const disk = new FaultyDisk();
  const process = new Incarnate(clock, disk, world, scenario);
  const live = await clock.run(process.spawn());
  const { end } = await clock.run(live.done);
  if (end.state !== "exited" || end.status !== "completed") {
    throw new Error(`The uncut run "${scenario.name}" ended ${JSON.stringify(end)}`);
  }
  return {
    runId: live.runId,
    diskOperations: disk.operations.length,
    worldPoints: world.points,
    outcome: await outcomeOf(disk, live.runId),
    effects: effectsOf(world),
  };
}

/** Keys of what was done and must not be done twice; idempotent effects once each. */
export function effectsOf(world: World): string[] {
  const keys = world.effects.map(({ key, effect }) => ({ key, effect }));
  const once = keys.filter(({ effect }) => effect !== "idempotent").map(({ key }) => key);
  const idempotent = new Set(
    keys.filter(({ effect }) => effect === "idempotent").map((e) => e.key),
  );
  return [...once, ...idempotent].sort();
}

export function pointsOf(uncut: Uncut): Point[] {
  const points: Point[] = [];
  for (let at = 1; at <= uncut.diskOperations; at += 1) {
    points.push({ kind: "disk", at, when: "before" }, { kind: "disk", at, when: "after" });
  }
  for (let at = 1; at <= uncut.worldPoints; at += 1) points.push({ kind: "world", at });
  return points;
}

export function planFor(point: Point): Plan {
  return point.kind === "disk" ? { stop: { at: point.at, when: point.when } } : {};
}

/** Runs until the world stops, or to the end. */
export async function runUntilStop(process: Incarnate, work: Promise<LiveRun>): Promise<void> {
  const ended = work.then((live) => live.done).catch((thrown) => {
    if (!process.disk.isStopped) throw thrown;
  });
  await process.clock.run(Promise.race([ended, process.disk.whenStopped]));
}

export { FaultyDisk, SysError, VirtualClock, World };
export type { CrashChoice, RunEvent };
