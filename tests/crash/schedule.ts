/**
 * One random schedule: several runs in one daemon on a virtual clock, of which each is started, stopped, killed, resumed, forked and removed at moments that a seed chooses, while the disk fails or is slow, servers go, and the process dies.
 *
 * The same seed gives the same schedule. After it everything is mended, every run is taken to its end, and every promise is checked.
 */
import { dirname } from "../../src/base/posix_path.ts";
import type { SuspendReason } from "../../src/base/exit.ts";
import { SysError } from "../../src/base/errors.ts";
import { collectGarbage } from "../../src/daemon/garbage.ts";
import { Runs } from "../../src/daemon/runs.ts";
import { forkRun } from "../../src/kernel/fork.ts";
import { type Fault, FaultyDisk, KEPT, keptInPart, LOST, seeded } from "../doubles/faulty_disk.ts";
import { settle, VirtualClock } from "../doubles/virtual_clock.ts";
import { foldIfAny, rulesBelow } from "./families.ts";
import { RUNS_FOLDER, Stage } from "./harness.ts";
import { kernelOn } from "./incarnate.ts";
import { goOn } from "./recovery.ts";
import { rulesFor } from "./rules.ts";
import { type Scenario, SCENARIOS } from "./scenarios.ts";
import { checkEnd } from "./schedule_end.ts";

const STAGES_MAX = 4;
const STEPS_MIN = 12;
const STEPS_MAX = 40;
/** Longer than any call takes. */
const SERVERS_MS = 200;
const SUSPENDS: readonly SuspendReason[] = ["paused", "shutdown", "detached"];
const FAULTS: readonly Fault[] = ["broken", "full", "read-only"];

/** A run that was started, or forked from one. */
export interface Known {
  stage: Stage;
  runId: string;
  isGone: boolean;
}

export interface ScheduleReport {
  /** What was done, in words. */
  steps: string[];
  violations: string[];
  runs: number;
  effects: number;
}

/** A seeded source of numbers below a bound (mulberry32). */
export function numbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export async function runSchedule(seed: number): Promise<ScheduleReport> {
  const schedule = new Schedule(seed);
  await schedule.play();
  return await schedule.end();
}

type Step = [weight: number, name: string, step: () => Promise<string> | string];

class Schedule {
  readonly #next: (below: number) => number;
  readonly #machine = { clock: new VirtualClock(), disk: new FaultyDisk(), ids: { count: 0 } };
  readonly #stages: Stage[];
  readonly #known: Known[] = [];
  readonly #steps: string[] = [];
  readonly #violations: string[] = [];
  /** Runs that were removed, children too. */
  readonly #gone = new Set<string>();
  /** What is under way in the present process. */
  #underWay = new Set<Promise<void>>();
  #release = () => {};
  #collecting = 0;
  /** A process that dies leaves its timers on the clock. */
  #wasKilled = false;
  /** What a removal that was cut off has removed, nobody has told. */
  #wasCollectionCut = false;

  constructor(seed: number) {
    this.#next = numbers(seed);
    const usable = SCENARIOS.filter(({ dull, operatorAtMs }) =>
      dull === undefined && operatorAtMs === undefined
    );
    this.#stages = Array.from({ length: 2 + this.#next(STAGES_MAX - 1) }, () => {
      const scenario = usable[this.#next(usable.length)];
      if (scenario === undefined) throw new Error("There is no scenario");
      // A schedule has its own stops.
      const { stopAt: _, ...rest } = scenario;
      return new Stage(rest satisfies Scenario, {}, this.#machine);
    });
    this.#boot();
  }

  async play(): Promise<void> {
    const all: Step[] = [
      [6, "start", () => this.#start()],
      [14, "wait", () => this.#wait()],
      [4, "stop", () => this.#stop()],
      [3, "kill the process", () => this.#kill()],
      [3, "disk", () => this.#failDisk()],
      [3, "mend", () => this.#mend()],
      [2, "slow", () => this.#slowDown()],
      [3, "lose", () => this.#lose()],
      [8, "resume", () => this.#resume()],
      [2, "fork", () => this.#fork()],
      [2, "gc", () => this.#collect()],
    ];
    const sum = all.reduce((sum, [weight]) => sum + weight, 0);
    this.#steps.push(`start ${this.#start()}`);
    const count = STEPS_MIN + this.#next(STEPS_MAX - STEPS_MIN);
    for (let made = 0; made < count; made += 1) {
      let at = this.#next(sum);
      const [, name = "", step] = all.find(([weight]) => (at -= weight) < 0) ?? [];
      this.#steps.push(`${name} ${await step?.()}`);
      await settle();
    }
  }

  /** Mends everything, takes every run to its end, and looks at what is there. */
  async end(): Promise<ScheduleReport> {
    const { clock } = this.#machine;
    this.#mend();
    if (this.#next(2) === 0) this.#kill();
    await clock.run(this.#quiet());
    for (const { stage, runId, isGone } of [...this.#known]) {
      if (isGone || await foldIfAny(stage.disk, runId) === undefined) continue;
      const end = await clock.run(goOn(stage, runId));
      if (end?.state !== "exited") {
        this.#violations.push(`run ${runId} never ended: ${JSON.stringify(end)}`);
      }
    }
    await this.#endOthers();
    // What servers still do for nobody is no wait of rnix.
    await clock.advance(SERVERS_MS);
    if (clock.pending > 0 && !this.#wasKilled) {
      this.#violations.push(`${clock.pending} timers were left`);
    }
    this.#violations.push(
      ...await checkEnd({
        disk: this.#machine.disk,
        stages: this.#stages,
        roots: this.#known,
        gone: this.#wasCollectionCut ? undefined : this.#gone,
      }),
    );
    return {
      steps: this.#steps,
      violations: this.#violations,
      runs: this.#known.length,
      effects: this.#stages.reduce((sum, { world }) => sum + world.effects.length, 0),
    };
  }

  /** Runs whose root is gone: what it started to go on without it. */
  async #endOthers(): Promise<void> {
    const { disk, clock } = this.#machine;
    for (const runId of await disk.list(RUNS_FOLDER).catch(() => [])) {
      if (runId.startsWith(".")) continue;
      const fold = await foldIfAny(disk, runId);
      const agent = fold?.state.ledger.identity.agent ?? "";
      if (fold === undefined || fold.state.ledger.state.end?.state === "exited") continue;
      const stage = this.#stages.find(({ world, scenario }) =>
        scenario.agents?.[agent] !== undefined &&
        world.sent.some(({ key }) => key.startsWith(`${runId}/`))
      );
      if (stage !== undefined) await clock.run(goOn(stage, runId));
    }
  }

  /** Until nothing is under way or at work. */
  async #quiet(): Promise<void> {
    for (;;) {
      const live = this.#stages.flatMap((stage) => [...stage.live.values()]);
      if (this.#underWay.size === 0 && live.length === 0) return;
      await Promise.all([...this.#underWay, ...live.map(({ live }) => live.done)]);
    }
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[this.#next(Math.max(from.length, 1))];
  }

  /** Every stage has the kernel of the one process. */
  #boot(): void {
    const kernel = kernelOn(this.#machine, 1 + this.#next(1_000));
    for (const stage of this.#stages) {
      stage.disk = this.#machine.disk;
      stage.live = new Map();
      stage.kernel = kernel;
      stage.process();
    }
  }

  /** Goes on beside the schedule; refused in words of the system, or never heard of again when the process dies. */
  #let(work: Promise<unknown>): void {
    const { disk } = this.#machine;
    const watched = work.then(() => {}, (thrown) => {
      if (thrown instanceof SysError || disk.isStopped) return;
      this.#violations.push(`threw ${thrown instanceof Error ? thrown.stack : String(thrown)}`);
    }).finally(() => this.#underWay.delete(watched));
    this.#underWay.add(watched);
  }

  #start(): string {
    const stage = this.#pick(this.#stages);
    if (stage === undefined) return "";
    this.#let(
      stage.process().spawn().then(({ runId }) => {
        this.#known.push({ stage, runId, isGone: false });
      }),
    );
    return stage.scenario.name;
  }

  async #wait(): Promise<string> {
    const ms = this.#next(16);
    await this.#machine.clock.advance(ms);
    return `${ms} ms`;
  }

  #stop(): string {
    const live = this.#stages.flatMap((stage) => [...stage.live.values()]);
    const chosen = this.#pick(live)?.live;
    if (chosen === undefined) return "nothing";
    const reason = this.#pick(SUSPENDS) ?? "paused";
    const kills = this.#next(6) === 0;
    chosen.stop(kills ? { kind: "kill", signal: "TERM" } : { kind: "suspend", reason });
    return `${chosen.runId} ${kills ? "TERM" : reason}`;
  }

  #kill(): string {
    const { disk } = this.#machine;
    disk.stop();
    this.#wasKilled = true;
    this.#wasCollectionCut ||= this.#collecting > 0;
    this.#collecting = 0;
    this.#release();
    this.#underWay = new Set();
    const seed = this.#next(1e6);
    const how = this.#next(6);
    const choices = [LOST, KEPT, keptInPart(1 + (seed % 900)), seeded(seed)];
    const choice = choices[how];
    this.#machine.disk = choice === undefined ? disk.kill() : disk.crash(choice);
    this.#boot();
    return choice === undefined ? "alone" : `with the machine (${how})`;
  }

  #failDisk(): string {
    const { disk } = this.#machine;
    const fault = this.#pick(FAULTS) ?? "broken";
    const forGood = this.#next(2) === 0;
    const at = disk.operations.length + 1 + this.#next(12);
    disk.plan = { fail: { at, fault, forGood } };
    return `${fault} at ${at}${forGood ? " for good" : ""}`;
  }

  #mend(): string {
    this.#release();
    this.#release = () => {};
    this.#machine.disk.plan = {};
    return "";
  }

  #slowDown(): string {
    this.#release();
    this.#release = this.#machine.disk.holdSyncs();
    return "";
  }

  #lose(): string {
    const stage = this.#pick(this.#stages);
    stage?.world.lose();
    return stage?.scenario.name ?? "";
  }

  #resume(): string {
    const known = this.#pick(this.#known.filter(({ isGone }) => !isGone));
    if (known === undefined) return "nothing";
    const { runId } = known;
    const decides = this.#next(2) === 0;
    this.#let(this.#resumeOnce(known, decides));
    return `${runId}${decides ? " with decisions" : ""}`;
  }

  async #resumeOnce({ stage, runId }: Known, decides: boolean): Promise<void> {
    const fold = await foldIfAny(stage.disk, runId);
    if (fold === undefined || stage.live.has(runId)) return;
    const open = fold.state.ledger.openCalls();
    const rules = decides ? rulesFor(open, stage.world, runId) : [];
    const below = decides ? await rulesBelow(stage, runId) : [];
    await stage.process().resume(runId, rules, { below });
  }

  #fork(): string {
    const known = this.#pick(this.#known.filter(({ isGone }) => !isGone));
    if (known === undefined) return "nothing";
    const { stage, runId } = known;
    const step = this.#next(2) === 0 ? undefined : 1;
    this.#let(this.#forkOnce(stage, runId, step));
    return `${runId} from ${step ?? "its end"}`;
  }

  async #forkOnce(stage: Stage, sourceRunId: string, step: number | undefined): Promise<void> {
    const { kernel, world } = stage;
    if (kernel === undefined) return;
    const runId = await forkRun(kernel, {
      sourceRunId,
      step,
      confirmed: true,
      hasIntent: false,
      repeatsFailed: stage.scenario.workflow !== undefined,
    });
    for (const effect of [...world.effects]) {
      if (!effect.key.startsWith(`${sourceRunId}/`)) continue;
      world.known.set(effect.key.replace(sourceRunId, runId), effect);
    }
    this.#known.push({ stage, runId, isGone: false });
  }

  #collect(): string {
    const { disk, clock } = this.#machine;
    const kernel = this.#stages[0]?.kernel;
    if (kernel === undefined) return "";
    const runs = new Runs(disk, kernel.pids, dirname(RUNS_FOLDER));
    const deps = { storage: disk, runs, taker: kernel };
    this.#collecting += 1;
    const collect = async () => {
      const { removed, kept } = await collectGarbage(deps, { olderThanMs: 0, maxRuns: 0 });
      // What failed in the middle is done by the next removal.
      this.#wasCollectionCut ||= kept.length > 0;
      const gone = new Set(removed.map(({ run_id }) => run_id));
      for (const runId of gone) this.#gone.add(runId);
      for (const known of this.#known) known.isGone ||= gone.has(known.runId);
      const atWork = this.#stages.flatMap(({ live }) => [...live.keys()]);
      for (const runId of atWork) if (gone.has(runId)) this.#violations.push(`removed: ${runId}`);
      this.#collecting -= 1;
    };
    this.#let(collect());
    return `at ${clock.monotonic()} ms`;
  }
}
