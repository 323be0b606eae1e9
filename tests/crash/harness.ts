/**
 * The counting crash harness: a stage with a disk, a clock and a world that outlive the processes of rnix on it, and those processes.
 *
 * Points at which everything can be stopped: every operation of the disk (before it and after it), every mount, model request, reply, call sent, effect done, answer received.
 * What must hold: every effect that can't be repeated was done once, and left on a durable intent; what was shown was durable when it was shown; the end and the whole conversation are those of the uncut run.
 */
import type { AgentPrompt } from "../../src/agent/agent_program.ts";
import { canonicalJson, type Json, mapStrings, sha256Hex } from "../../src/base/json.ts";
import { folding, type ProgramState } from "../../src/daemon/program_of.ts";
import type { Entry } from "../../src/journal/entry.ts";
import { readRun } from "../../src/journal/mod.ts";
import type { KernelDeps } from "../../src/kernel/launch.ts";
import { RunState } from "../../src/kernel/run_state.ts";
import { type CrashChoice, FaultyDisk, type Plan } from "../doubles/faulty_disk.ts";
import { VirtualClock } from "../doubles/virtual_clock.ts";
import {
  type Held,
  Incarnate,
  kernelOn,
  type Machine,
  RUNS_FOLDER,
  type Shown,
  type StageOfRuns,
} from "./incarnate.ts";
import type { Scenario } from "./scenario.ts";
import { World } from "./world.ts";

export { RUNS_FOLDER };

/** What outlives the processes of one run. */
export class Stage implements StageOfRuns {
  readonly scenario: Scenario;
  readonly clock: VirtualClock;
  readonly ids: { count: number };
  readonly world: World;
  /** Least growth of a journal between two checkpoints, bytes. */
  checkpointGrowthBytes: number | undefined;
  /** What all processes so far have shown. */
  readonly shown: Shown[] = [];
  /** Broken promises that a process's own output gives away. */
  readonly violations: string[] = [];
  disk: FaultyDisk;
  /** The one that all processes of this stage have; left out: one for each. */
  kernel: KernelDeps | undefined;
  /** Runs at work on this machine. */
  live = new Map<string, Held>();

  constructor(scenario: Scenario, plan: Plan = {}, machine?: Machine) {
    this.scenario = scenario;
    this.clock = machine?.clock ?? new VirtualClock();
    this.disk = machine?.disk ?? new FaultyDisk(plan);
    this.ids = machine?.ids ?? { count: 0 };
    this.world = new World(this.clock, scenario);
  }

  /** Stops everything at this point, counted from now on the present disk. */
  stopAt(point: Point): void {
    const { disk } = this;
    if (point.kind === "disk") disk.plan = { stop: { at: point.at, when: point.when } };
    else this.world.stopAtPoint(point.at, () => disk.stop());
  }

  /** The machine comes up again, with what the disk has kept; or only the process was killed. */
  crash(choice: CrashChoice | "killed"): void {
    this.world.stopAtPoint(undefined, () => {});
    this.live = new Map();
    this.disk = choice === "killed" ? this.disk.kill() : this.disk.crash(choice);
  }

  process(osPid = 1): Incarnate {
    const { disk, ids, clock, checkpointGrowthBytes: growth } = this;
    return new Incarnate(this, this.kernel ?? kernelOn({ disk, ids, clock }, osPid, growth));
  }
}

/** What a journal says, folded. */
export interface Fold {
  entries: Entry[];
  state: RunState<ProgramState, AgentPrompt>;
}

export async function foldRun(disk: FaultyDisk, runId: string): Promise<Fold> {
  const folder = `${RUNS_FOLDER}/${runId}`;
  const state = new RunState(await folding(disk, folder));
  const entries: Entry[] = [];
  await readRun(disk, folder, (entry) => {
    entries.push(entry);
    state.fold(entry);
  });
  return { entries, state };
}

/**
 * What a model is told of a call that was skipped. It says why the outcome is unknown, which a cut changes: the call that the world would have dropped may have died with rnix. That it is unknown must be the same, and nothing else may differ.
 */
const SKIPPED =
  /^(\[UNKNOWN_OUTCOME\]) (?:The connection to|The call of|The record of|rnix itself|").*?(: it may or may not have taken effect\. Check before you repeat it\.)$/;

/** Of an agent that goes on by itself: its pid and run id. */
const STARTED = /(?<=was started as )PID \d+ \(run [0-9a-f]+\)/;

/** Of a tool that is called though it was withdrawn: only the process that had it knows so. */
const GONE = /Server "\w+" has withdrawn the tool|There is no tool named/;

/** What the model is told of where records were cut, and of a server that didn't come up. */
const NOTES = [
  "[rnix] The latest records of this run were lost",
  '[rnix] The server "world" is not available',
];

/** Whether a message tells of what befell one run, and not another with the same script. */
function isOfOneRun(text: string | undefined): boolean {
  return NOTES.some((note) => text?.startsWith(note));
}

/** Hash of the whole conversation but for such notes, or of what a workflow's nodes were told and came to; and the result: what two runs are compared by. */
export function outcomeOf({ entries, state }: Fold): string {
  const { program } = state.save() as { program: { messages?: { text?: string }[] } };
  const { end } = state.ledger.state;
  const told = program.messages?.filter(({ text }) => !isOfOneRun(text)) ??
    [nodesOf(program), ...orders(entries)];
  const conversation = mapStrings(
    told as Json,
    (text) => text.replace(SKIPPED, "$1 …$2").replace(STARTED, "…").replace(GONE, "…"),
  );
  return JSON.stringify([
    sha256Hex(canonicalJson(conversation)),
    end?.state === "exited" ? [end.status, end.result] : end?.state,
  ]);
}

/** A workflow's state but for what a fork doesn't take over: whose failed children its nodes may go on with. */
function nodesOf(program: unknown): unknown {
  return JSON.parse(
    JSON.stringify(program, (key, value) => key === "endedRound" ? undefined : value),
  );
}

/** Every try of every node's call, and the hash of what it was told. */
function orders(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) =>
    entry.type === "call.intent"
      ? [`${entry.call}#${entry.attempt} ${entry.tool} ${entry.input_sha256}`]
      : []
  ).sort();
}

export async function findRunId(disk: FaultyDisk): Promise<string | undefined> {
  try {
    // What a removal has renamed aside is no run any more.
    return (await disk.list(RUNS_FOLDER)).find((name) => !name.startsWith("."));
  } catch {
    return undefined;
  }
}

/** Where everything is stopped. */
export type Point =
  | { kind: "disk"; at: number; when: "before" | "after" }
  | { kind: "world"; at: number };

/** All points of something that took so many operations and steps. */
export function pointsUpTo(diskOperations: number, worldPoints: number): Point[] {
  const points: Point[] = [];
  for (let at = 1; at <= diskOperations; at += 1) {
    points.push({ kind: "disk", at, when: "before" }, { kind: "disk", at, when: "after" });
  }
  for (let at = 1; at <= worldPoints; at += 1) points.push({ kind: "world", at });
  return points;
}

export function pointText(point: Point): string {
  return point.kind === "disk" ? `disk ${point.at} ${point.when}` : `world ${point.at}`;
}

/** Runs until the disk stops, or to the end of `work`. */
export async function runUntilStop(stage: Stage, work: Promise<unknown>): Promise<void> {
  const { disk } = stage;
  const ended = work.catch((thrown) => {
    if (!disk.isStopped) throw thrown;
  });
  await stage.clock.run(Promise.race([ended, disk.whenStopped]));
}
