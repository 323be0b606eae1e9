/**
 * The counting crash harness: a stage with a disk, a clock and a world that outlive the processes of rnix on it, and those processes.
 *
 * Points at which everything can be stopped: every operation of the disk (before it and after it), every mount, model request, reply, call sent, effect done, answer received.
 * What must hold: every effect that can't be repeated was done once, and left on a durable intent; what was shown was durable when it was shown; the end and the whole conversation are those of the uncut run.
 */
import { NO_CHILDREN } from "../../src/kernel/children.ts";
import { agentProgram, type AgentPrompt } from "../../src/agent/agent_program.ts";
import type { AgentState } from "../../src/agent/agent_state.ts";
import type { Budget } from "../../src/base/budget.ts";
import { canonicalJson, type Json, mapStrings, sha256Hex } from "../../src/base/json.ts";
import type { RunEvent } from "../../src/base/operations.ts";
import { Redactor } from "../../src/base/redaction.ts";
import type { Entry } from "../../src/journal/entry.ts";
import { readRun } from "../../src/journal/mod.ts";
import { createIntake } from "../../src/kernel/intake.ts";
import { type KernelDeps, type LiveRun, type RunParts, spawnRun } from "../../src/kernel/launch.ts";
import { Pids } from "../../src/kernel/pids.ts";
import { KERNEL_LIMITS, type Observer, type WithoutHead } from "../../src/kernel/ports.ts";
import { resumeRun } from "../../src/kernel/resume.ts";
import { RunState } from "../../src/kernel/run_state.ts";
import type { SettleRule } from "../../src/kernel/settler.ts";
import { type CrashChoice, FaultyDisk, type Plan } from "../doubles/faulty_disk.ts";
import { VirtualClock } from "../doubles/virtual_clock.ts";
import { DurableView, shownKey } from "./durable_view.ts";
import type { Scenario } from "./scenarios.ts";
import { SERVER, World } from "./world.ts";

export const RUNS_FOLDER = "/state/runs";
/** Grace of a cancelled call, milliseconds. */
export const GRACE_MS = 20;
/** What a result may wait to be shown beyond the kernel's own delay, milliseconds. */
const SHOW_SLACK_MS = 1;

/** What was shown to the user, and when. */
export interface Shown {
  event: WithoutHead<RunEvent>;
  /** Milliseconds of the virtual clock. */
  atMs: number;
}

export interface ResumeOptions {
  acceptCut?: boolean;
  budgetChange?: Budget;
}

/** What outlives the processes of one run. */
export class Stage {
  readonly scenario: Scenario;
  readonly clock = new VirtualClock();
  readonly world: World;
  /** What all processes so far have shown. */
  readonly shown: Shown[] = [];
  /** Broken promises that a process's own output gives away. */
  readonly violations: string[] = [];
  disk: FaultyDisk;

  constructor(scenario: Scenario, plan: Plan = {}) {
    this.scenario = scenario;
    this.world = new World(this.clock, scenario);
    this.disk = new FaultyDisk(plan);
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
    this.disk = choice === "killed" ? this.disk.kill() : this.disk.crash(choice);
  }

  process(osPid = 1): Incarnate {
    return new Incarnate(this, osPid);
  }
}

/** One OS process of rnix on a stage. */
export class Incarnate {
  readonly kernel: KernelDeps;
  readonly #stage: Stage;
  readonly #disk: FaultyDisk;
  #durable: DurableView | undefined;
  #shownSeq = 0;

  constructor(stage: Stage, osPid: number) {
    this.#stage = stage;
    this.#disk = stage.disk;
    this.kernel = {
      storage: stage.disk,
      clock: stage.clock,
      random: (bytes) => bytes.fill(7),
      pids: new Pids(stage.disk, stage.clock, "/state"),
      runsFolder: RUNS_FOLDER,
      osPid,
      instance: `instance-${osPid}`,
      limits: { ...KERNEL_LIMITS, cancelGraceMs: GRACE_MS },
      version: "0.0.0",
    };
  }

  readonly #observer: Observer = {
    emit: (event) => {
      if (this.#disk.isStopped) return;
      const { clock, shown } = this.#stage;
      shown.push({ event, atMs: clock.monotonic() });
      if ("run_id" in event) this.#watch(event.run_id);
      const key = shownKey(event);
      if (key !== undefined) this.#checkShown(key);
    },
  };

  #watch(runId: string): DurableView {
    const durable = this.#durable ??
      new DurableView(this.#disk, `${RUNS_FOLDER}/${runId}/journal.jsonl`);
    this.#durable = durable;
    this.#stage.world.hasDurableIntent = (key) => durable.hasIntent(key);
    return durable;
  }

  /** What is shown is durable by then, follows its entry soon, and results come in the order of their entries. */
  #checkShown(key: string): void {
    const { violations, clock } = this.#stage;
    const made = this.#durable?.find(key);
    if (made === undefined) {
      violations.push(`shown before it was durable: ${key}`);
      return;
    }
    if (!/^(result|reply)/.test(key)) return;
    const lagMs = clock.now() - made.ts;
    if (lagMs > KERNEL_LIMITS.showDelayMs + SHOW_SLACK_MS) {
      violations.push(`shown ${lagMs} ms after its entry: ${key}`);
    }
    if (made.seq < this.#shownSeq) violations.push(`shown out of order: ${key}`);
    this.#shownSeq = made.seq;
  }

  async #parts(): Promise<RunParts<AgentState, AgentPrompt>> {
    await Promise.resolve();
    const { world, scenario } = this.#stage;
    return {
      program: programOf(scenario),
      specs: [world.spec],
      unavailable: [],
      own: [],
      children: NO_CHILDREN,
      agents: [],
      driver: world.driver,
      model: world.model,
      intake: createIntake(new Redactor([])),
      redactor: new Redactor([]),
      trace: { record: () => {} },
      onUnknown: scenario.onUnknown,
      close: () => {},
    };
  }

  async spawn(): Promise<LiveRun> {
    const { scenario, clock } = this.#stage;
    await this.#disk.makeFolder(RUNS_FOLDER, 0o700);
    await this.#disk.syncFolder("/state");
    await this.#disk.syncFolder("/");
    const live = await spawnRun(this.kernel, {
      program: programOf(scenario),
      spec: { v: 1 },
      agent: "tester",
      intent: "Do it",
      cwd: "/",
      model: "fixed",
      budget: scenario.budget ?? {},
      prepare: () => this.#parts(),
    }, this.#observer);
    if (scenario.pauseAtMs !== undefined) {
      const stop = () => live.stop({ kind: "suspend", reason: "paused" });
      const cancel = clock.after(scenario.pauseAtMs, stop);
      live.done.then(cancel);
    }
    if (scenario.operatorAtMs !== undefined) {
      const cancel = clock.after(scenario.operatorAtMs, () => this.#write(live));
      live.done.then(cancel);
    }
    return live;
  }

  /** A person's write; what it gave is durable when it is given. */
  #write(live: LiveRun): void {
    const path = `/mnt/mcp/${SERVER}/tools/pay`;
    const { signal } = new AbortController();
    live.access({ operation: "write", path, input: { to: "person", ms: 4 } }, signal)
      .then((answer) => {
        if (answer.kind === "result" && !this.#disk.isStopped) {
          this.#checkShown(`access ${answer.call}`);
        }
      }, () => {});
  }

  async resume(
    runId: string,
    rules: readonly SettleRule[],
    { acceptCut = false, budgetChange }: ResumeOptions = {},
  ): Promise<LiveRun> {
    const { scenario } = this.#stage;
    this.#watch(runId);
    return await resumeRun(this.kernel, {
      runId,
      program: agentProgram(""),
      rules,
      acceptCut,
      plan: async (ledger) => {
        await Promise.resolve();
        return {
          model: "fixed",
          budget: ledger.state.budget,
          ...(budgetChange === undefined ? {} : { budgetChange }),
          onUnknown: scenario.onUnknown,
          program: programOf(scenario),
          prepare: () => this.#parts(),
        };
      },
    }, this.#observer);
  }
}

function programOf({ contextWindow }: Scenario) {
  return agentProgram("system", { contextWindow });
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

/**
 * What a model is told of a call that was skipped. It says why the outcome is unknown, which a cut changes: the call that the world would have dropped may have died with rnix. That it is unknown must be the same, and nothing else may differ.
 */
const SKIPPED =
  /^(\[UNKNOWN_OUTCOME\]) (?:The connection to|The call of|The record of|rnix itself|").*?(: it may or may not have taken effect\. Check before you repeat it\.)$/;

/** Begin of what the model is told where records were cut. */
const CUT_NOTE = "[rnix] The latest records of this run were lost";

/** Hash of the whole conversation but for notes of cuts, and the result: what two runs are compared by. */
export function outcomeOf({ state }: Fold): string {
  const saved = state.save() as { program: { messages: { text?: string }[] } };
  const { end } = state.ledger.state;
  const conversation = mapStrings(
    saved.program.messages.filter(({ text }) => text?.startsWith(CUT_NOTE) !== true) as Json,
    (text) => text.replace(SKIPPED, "$1 …$2"),
  );
  return JSON.stringify([
    sha256Hex(canonicalJson(conversation)),
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
