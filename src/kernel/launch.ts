/**
 * Starting runs: what the kernel needs of its surroundings, what a caller hands in for one run, and the fresh start.
 *
 * A run exists once its `run.started` is durable: only then its pid is given out. Whatever fails before leaves nothing behind.
 */
import type { Budget } from "../base/budget.ts";
import type { Clock } from "../base/clock.ts";
import type { OnUnknown } from "../base/effect.ts";
import { toSysError } from "../base/errors.ts";
import { newRunId, type RandomSource } from "../base/ids.ts";
import type { Json } from "../base/json.ts";
import type { Redactor } from "../base/redaction.ts";
import type { VfsAnswer } from "../base/vfs_operations.ts";
import type { Storage } from "../base/storage.ts";
import type { ReplayOf } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { createJournal } from "../journal/mod.ts";
import type { ChildPort } from "./children.ts";
import { durableLedger } from "./durable_past.ts";
import { treeTotals } from "./gate.ts";
import { Incarnation, type LiveFacts } from "./incarnation.ts";
import type { Ledger, RunEnd } from "./ledger.ts";
import type { MountDriver, MountFailure, MountSpec } from "./mount.ts";
import type { Access } from "./operator_gate.ts";
import type { OwnMount } from "./own_tools.ts";
import type { Pids } from "./pids.ts";
import type { Intake, KernelLimits, ModelPort, Observer, Telemetry, Trace } from "./ports.ts";
import type { Program, PromptHead } from "./program.ts";
import { RunLog } from "./run_log.ts";
import { RunState } from "./run_state.ts";
import type { Stop } from "./endings.ts";
import { Settler } from "./settler.ts";
import { STARTED, unwritten, written } from "./unwritten.ts";
import type { ToolBinding } from "./tool_table.ts";

/** What all runs of a system share. */
export interface KernelDeps {
  storage: Storage;
  clock: Clock;
  random: RandomSource;
  pids: Pids;
  /** Folder that holds a folder per run. */
  runsFolder: string;
  osPid: number;
  /** Id of this rnix process, the mark of its children. */
  instance: string;
  limits: KernelLimits;
  version: string;
  /** Least growth of a journal between two checkpoints, bytes; left out: the journal's own. */
  checkpointGrowthBytes?: number;
}

/** What one incarnation of a run works with. */
export interface RunParts<S, P extends PromptHead> {
  program: Program<S, P>;
  specs: readonly MountSpec[];
  /** Servers that are known not to be mountable, such as one that isn't required and lacks a variable. */
  unavailable: readonly MountFailure[];
  driver: MountDriver;
  /** Tools of rnix itself. */
  own: readonly OwnMount[];
  children: ChildPort;
  /** Agents that the process may start, as tools. */
  agents: readonly ToolBinding[];
  model: ModelPort<P>;
  /** Asked where `model` can't serve. */
  fallback?: ModelPort<P>;
  intake: Intake;
  /** Takes the run's secrets out of errors and previews. */
  redactor: Redactor;
  trace: Trace;
  /** Where the run's client asks for it. */
  telemetry?: Telemetry;
  onUnknown: OnUnknown;
  /** Called once the incarnation is over. */
  close(): void;
}

export interface RunOutcome {
  end: RunEnd;
  ledger: Ledger;
}

/** A run at work. */
export interface LiveRun {
  readonly runId: string;
  /** Undefined where a resume stopped before it needed one. */
  readonly pid: number | undefined;
  stop(stop: Stop): void;
  /** Does what a person asks of its devices. Rejects as `Incarnation.access` does. */
  access(access: Access, signal: AbortSignal): Promise<VfsAnswer>;
  look(): LiveFacts;
  /** Never rejects; everything of the run is released then. */
  readonly done: Promise<RunOutcome>;
}

export interface SpawnRequest<S, P extends PromptHead> {
  /** Given before where it stands in a journal already. */
  runId?: string;
  program: Program<S, P>;
  /** Resolved manifest and its texts, secrets as references. */
  spec: Json;
  agent: string;
  intent: string;
  cwd: string;
  model: string;
  budget: Budget;
  parentRunId?: string;
  replayOf?: ReplayOf;
  /** Makes the parts for this incarnation; its failure leaves nothing behind. */
  prepare(facts: { runId: string; folder: string; pid: number }): Promise<RunParts<S, P>>;
}

/** Starts a new run. Rejects, leaving nothing, when its start could not be made durable: with exit code 7 where the disk is why. */
export async function spawnRun<S, P extends PromptHead>(
  kernel: KernelDeps,
  request: SpawnRequest<S, P>,
  observer: Observer,
): Promise<LiveRun> {
  const runId = request.runId ?? newRunId(kernel.clock.now(), kernel.random);
  const folder = `${kernel.runsFolder}/${runId}`;
  const journal = await createRunJournal(kernel, folder);
  let parts: RunParts<S, P> | undefined;
  try {
    const state = new RunState(request.program);
    const log = runLog(kernel, journal, state);
    const work = [
      kernel.pids.allocate(runId, (message) => observer.emit({ type: "notice", message })),
      journal.putBlob(new TextEncoder().encode(JSON.stringify(request.spec))),
    ] as const;
    // When one of them fails, the other doesn't go on behind it.
    await Promise.allSettled(work);
    const [pid, spec] = await written(Promise.all(work), STARTED);
    parts = await request.prepare({ runId, folder, pid });
    const { agent, intent, cwd, model, budget, parentRunId, replayOf } = request;
    const entry = await written(
      log.appendLarge({
        type: "run.started",
        run_id: runId,
        pid,
        ...(parentRunId === undefined ? {} : { parent_run_id: parentRunId }),
        program: request.program.name,
        agent,
        spec,
        intent,
        cwd,
        model,
        budget,
        rnix_version: kernel.version,
        ...(replayOf === undefined ? {} : { replay_of: replayOf }),
      }),
      STARTED,
    );
    await written(log.barrier(entry.seq), STARTED);
    observer.emit({ type: "run.started", run_id: runId, agent, intent, model });
    return launch(kernel, { runId, pid, log, state, parts, observer, keeps: false });
  } catch (thrown) {
    parts?.close();
    await journal.close();
    await kernel.storage.remove(folder, { recursive: true }).catch(() => {});
    throw toSysError(thrown);
  }
}

/** The journal of a run that is being made; where that fails, nothing of it is left. */
export async function createRunJournal(kernel: KernelDeps, folder: string): Promise<Journal> {
  try {
    return await createJournal(kernel.storage, folder, kernel);
  } catch (thrown) {
    const error = unwritten(thrown, STARTED);
    // INVALID: it is another run's folder.
    if (error.code !== "INVALID") {
      await kernel.storage.remove(folder, { recursive: true }).catch(() => {});
    }
    throw error;
  }
}

export interface LaunchFacts<S, P extends PromptHead> {
  runId: string;
  pid: number;
  log: RunLog;
  state: RunState<S, P>;
  parts: RunParts<S, P>;
  observer: Observer;
  keeps: boolean;
}

/** Sets an incarnation going and releases everything at its end. */
export function launch<S, P extends PromptHead>(
  kernel: KernelDeps,
  facts: LaunchFacts<S, P>,
): LiveRun {
  const { runId, pid, log, state, parts, keeps } = facts;
  const { clock, limits } = kernel;
  const observer = log.ordered(facts.observer);
  log.redactor = parts.redactor;
  const incarnation = new Incarnation<S, P>({
    ...parts,
    clock,
    limits,
    log,
    state,
    settler: new Settler({ log, ledger: state.ledger, observer, onUnknown: parts.onUnknown }),
    pid,
    observer,
    keeps,
  });
  parts.children.bind({
    runId,
    pid,
    budget: () => state.ledger.state.budget,
    totals: () => treeTotals(state.ledger, clock.now(), parts.children.liveTotals()),
  });
  const work = async (): Promise<RunOutcome> => {
    const end = await incarnation.run();
    parts.telemetry?.end(end);
    parts.close();
    await log.journal.close();
    const { journal } = log;
    // A result that didn't become durable leaves its call unknown, as it is for whoever resumes.
    const ledger = journal.failure === undefined
      ? state.ledger
      : await durableLedger(kernel.storage, `${kernel.runsFolder}/${runId}`, journal, state.ledger);
    return { end, ledger };
  };
  return {
    runId,
    pid,
    stop: (stop) => incarnation.stop(stop),
    access: (access, signal) => incarnation.access(access, signal),
    look: () => incarnation.look(),
    done: work(),
  };
}

/** The log of a run, which folds into `state`. */
export function runLog<S, P extends PromptHead>(
  kernel: KernelDeps,
  journal: Journal,
  state: RunState<S, P>,
): RunLog {
  return new RunLog(journal, {
    clock: kernel.clock,
    fold: (entry) => state.fold(entry),
    showDelayMs: kernel.limits.showDelayMs,
  });
}
