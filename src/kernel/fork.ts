/**
 * A new run from the past of another: its entries up to the end of a step, copied under a new run id. The copy is then resumed like any run.
 *
 * Effects done after that step stay done in the world; a fork that leaves such effects behind has to be confirmed. So has one in which children begin anew that were at work: what they did is done once more.
 */
import { SysError, toSysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { newRunId } from "../base/ids.ts";
import { dirname } from "../base/posix_path.ts";
import type { Storage } from "../base/storage.ts";
import type { Entry, EntryBody, EntryOf } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { cutAhead, readEnds, readRun } from "../journal/mod.ts";
import { readDurably } from "./durable_read.ts";
import { createRunJournal, type KernelDeps } from "./launch.ts";
import { Ledger } from "./ledger.ts";

/** What is to be done again, in the words of its program. */
export interface Again {
  leavesOut(entry: Entry): boolean;
}

export interface ForkRequest {
  sourceRunId: string;
  /** Last step that is taken over; undefined: all of it. */
  step: number | undefined;
  /** Goes on though effects were done after the step. */
  confirmed: boolean;
  /** What of the past is left out, so that it is done again; the whole of the rest is taken over, but the end of a run that had completed. */
  again?: Again | undefined;
  /** Whether its program begins children anew that ended without success. */
  repeatsFailed?: boolean;
  /** Whether the fork is given a new intent, without which a completed run has nothing more to do. */
  hasIntent: boolean;
}

/** Makes the copy and returns its run id. Rejects with INVALID when the step doesn't exist or effects after it aren't confirmed. */
export async function forkRun(kernel: KernelDeps, request: ForkRequest): Promise<string> {
  const source = `${kernel.runsFolder}/${request.sourceRunId}`;
  const past = await readForkedPast(kernel.storage, source, request);
  const refusal = forkRefusal(past, request);
  if (refusal !== undefined) throw refusal;
  const { kept } = past;
  const runId = newRunId(kernel.clock.now(), kernel.random);
  const folder = `${kernel.runsFolder}/${runId}`;
  const journal = await createRunJournal(kernel, folder);
  try {
    await linkBlobs(kernel, source, folder);
    const pid = await kernel.pids.allocate(runId);
    const anew = await triesAnew(kernel, kept, request.repeatsFailed ?? false);
    for (const entry of kept) await copyEntry(journal, entry, { runId, pid, request, anew });
    await journal.barrier();
    await journal.close();
    return runId;
  } catch (thrown) {
    await journal.close();
    await kernel.storage.remove(folder, { recursive: true }).catch(() => {});
    throw toSysError(thrown);
  }
}

/** What a fork takes over, and what it leaves behind. */
export interface ForkedPast {
  kept: Entry[];
  /** Calls after the step that may have had effects. */
  after: EntryOf<"call.intent">[];
  /** Calls whose children were at work and begin anew in the fork; with those that have failed, where its program repeats them. */
  anew: EntryOf<"call.intent">[];
  /** Steps of the source. */
  lastTurn: number;
  /** Whether records of the source were cut that may have been durable, and no resume has taken account of it. */
  hasOpenCut: boolean;
}

/** Reads the part of a run's past that a fork takes over, without its lease. */
export async function readForkedPast(
  storage: Storage,
  source: string,
  { step, again, repeatsFailed = false }: Pick<ForkRequest, "step" | "again" | "repeatsFailed">,
): Promise<ForkedPast> {
  const kept: Entry[] = [];
  const after = new Map<string, EntryOf<"call.intent">>();
  let lastTurn = 0;
  let past = false;
  let cutSeq = 0;
  await readRun(storage, source, (entry) => {
    // What a person did on the source's devices isn't the past of another run.
    if (entry.type === "access.intent" || entry.type === "access.result") return;
    if (entry.type === "journal.cut") cutSeq = entry.seq;
    if (entry.type === "model.reply") lastTurn = entry.turn;
    if (entry.type === "model.request" && step !== undefined && entry.turn > step) past = true;
    if (!past && again?.leavesOut(entry) !== true) kept.push(entry);
    else if (entry.type === "call.intent" && entry.effect !== "read") after.set(entry.call, entry);
  });
  const last = kept.at(-1);
  const hasCompleted = last?.type === "run.exited" && last.status === "completed";
  if (again !== undefined && hasCompleted) kept.pop();
  const cut = await cutAhead(storage, source);
  const begun = hasCompleted ? [] : childrenAtWork(kept, repeatsFailed);
  const anew = await begunAnew(storage, dirname(source), { begun, repeatsFailed });
  const hasOpenCut = cut !== undefined && cut.lastSeq >= cutSeq;
  return { kept, after: [...after.values()], anew, lastTurn, hasOpenCut };
}

/** Of the calls whose children had begun to work, those whose children the fork makes anew: the others have ended, though their parent has not read it. */
async function begunAnew(
  storage: Storage,
  runsFolder: string,
  { begun, repeatsFailed }: { begun: EntryOf<"call.intent">[]; repeatsFailed: boolean },
): Promise<EntryOf<"call.intent">[]> {
  const isAnew = await Promise.all(begun.map(async ({ child_run_id: child }) => {
    const last = await lastEntry(storage, `${runsFolder}/${child}`);
    return !(last?.type === "run.exited" && staysEnded(last.status, repeatsFailed));
  }));
  return begun.filter((_, index) => isAnew[index]);
}

/** Undefined where there is no run, or that can't be told. */
async function lastEntry(storage: Storage, folder: string): Promise<Entry | undefined> {
  try {
    return (await readEnds(storage, folder)).last;
  } catch (thrown) {
    if (thrown instanceof SysError) return undefined;
    throw thrown;
  }
}

/** Whether the source doesn't go on from such an end of a child. */
function staysEnded(status: string, repeatsFailed: boolean): boolean {
  return status === "completed" || !repeatsFailed;
}

/** Calls whose children had begun to work, and of which no end that stays is known to the run. */
function childrenAtWork(kept: readonly Entry[], repeatsFailed: boolean): EntryOf<"call.intent">[] {
  const asked = new Map<string, EntryOf<"call.intent">>();
  const begun = new Map<string, EntryOf<"call.intent">>();
  for (const entry of kept) {
    if (entry.type === "call.intent" && entry.child_run_id !== undefined) {
      asked.set(entry.call, entry);
    } else if (entry.type === "child.spawned" && entry.detached !== true) {
      const intent = asked.get(entry.call);
      if (intent !== undefined) begun.set(entry.call, intent);
    } else if (entry.type === "child.exited") {
      if (staysEnded(entry.status, repeatsFailed)) begun.delete(entry.call);
    }
  }
  return [...begun.values()];
}

/** Why there can be no such fork: INVALID (exit 2). */
export function forkRefusal(past: ForkedPast, request: ForkRequest): SysError | undefined {
  const { step, hasIntent, confirmed, again, repeatsFailed } = request;
  if (past.hasOpenCut) {
    return refused(
      request,
      "Records that may have been durable were cut off: calls that left may not be known",
      "Resume the run itself first (rnix resume RUN --accept-cut); then it can be forked",
    );
  }
  if (step !== undefined && step > past.lastTurn) {
    return refused(request, `The run has ${past.lastTurn} steps, there is no step ${step}`);
  }
  const last = past.kept.at(-1);
  const completed = last?.type === "run.exited" && last.status === "completed";
  if (completed && !hasIntent) {
    return refused(
      request,
      "The run has completed, there is nothing to go on with",
      repeatsFailed === true
        ? "Fork it with nodes that run again (--node X, or --from X), or give it a new intent"
        : "Fork it from an earlier step (--from-step N), or give it a new intent",
    );
  }
  if (!completed && hasIntent) {
    return refused(
      request,
      "Only a completed run takes a new intent, and at that step the run had not completed",
      "Fork it without one; the fork goes on with the intent that it has",
    );
  }
  if (confirmed) return undefined;
  if (past.anew.length > 0) {
    const calls = past.anew.map(({ call, tool }) => `${call} ${tool}`).join(", ");
    return refused(
      request,
      `These begin anew in the copy, and what they did is done once more: ${calls}`,
      "Resume the run itself, which goes on with them, or say --yes to fork all the same",
    );
  }
  if (past.after.length === 0) return undefined;
  const list = past.after.map(({ call, tool, effect }) => `${call} ${tool} (${effect})`).join(", ");
  return refused(
    request,
    again === undefined
      ? `Effects were done after step ${step}, and stay done: ${list}`
      : `What is to run again was done before, and its effects stay done: ${list}`,
    "Say --yes to fork all the same",
  );
}

function refused({ sourceRunId }: ForkRequest, message: string, hint?: string): SysError {
  const facts = { syscall: "Fork", device: sourceRunId, exitCode: EXIT_USAGE, hint };
  return new SysError("INVALID", message, facts);
}

/** Takes a fork away again whose first resume was refused: nobody asked for a run that can't be taken up. Never rejects. */
export async function removeFork(kernel: KernelDeps, runId: string): Promise<void> {
  const folder = `${kernel.runsFolder}/${runId}`;
  await kernel.storage.remove(folder, { recursive: true }).catch(() => {});
}

async function linkBlobs(kernel: KernelDeps, source: string, folder: string): Promise<void> {
  const names = await kernel.storage.list(`${source}/blobs`);
  for (const name of names) {
    await kernel.storage.hardLink(`${source}/blobs/${name}`, `${folder}/blobs/${name}`);
  }
  await kernel.storage.syncFolder(`${folder}/blobs`);
}

interface Copying {
  runId: string;
  pid: number;
  request: ForkRequest;
  /** By call: whose children haven't ended, which stay the source's. */
  anew: ReadonlyMap<string, Anew>;
}

/** The last try of a call in the fork. */
interface Anew {
  /** Record of the source with which that try began. */
  fromSeq: number;
  /** The run that the fork makes in the place of the source's child. */
  childRunId: string;
}

/** A child that has ended is taken over with what it came to, though its parent had not read that yet; made anew it would do everything once more. An end that the source itself may go on from is not for two: it could be another one by the time that the fork reads it. */
async function triesAnew(
  kernel: KernelDeps,
  kept: readonly Entry[],
  repeatsFailed: boolean,
): Promise<Map<string, Anew>> {
  const open = new Map<string, { fromSeq: number; runId: string }>();
  for (const entry of kept) {
    if (entry.type === "call.intent" && entry.child_run_id !== undefined) {
      open.set(entry.call, { fromSeq: entry.seq, runId: entry.child_run_id });
    }
    if (entry.type === "call.result") open.delete(entry.call);
  }
  const anew = new Map<string, Anew>();
  for (const [call, { fromSeq, runId }] of open) {
    if (await isOver(kernel, runId, repeatsFailed)) continue;
    anew.set(call, { fromSeq, childRunId: newRunId(kernel.clock.now(), kernel.random) });
  }
  return anew;
}

/** Whether a run has come to an end that stays. That must be durable, too: a fork that lives while its child is unfinished again would share it with the source. */
async function isOver(
  kernel: KernelDeps,
  runId: string,
  repeatsFailed: boolean,
): Promise<boolean> {
  const { storage, runsFolder } = kernel;
  const folder = `${runsFolder}/${runId}`;
  const hasEnded = ({ state: { end } }: Ledger) =>
    end?.state === "exited" && staysEnded(end.status, repeatsFailed);
  const ledger = new Ledger();
  try {
    await readRun(storage, folder, (entry) => ledger.fold(entry));
    return hasEnded(ledger) && hasEnded(await readDurably(storage, folder, kernel));
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return false;
    throw thrown;
  }
}

async function copyEntry(
  journal: Journal,
  entry: Entry,
  facts: Copying,
): Promise<void> {
  const { v: _v, seq, ts: _ts, synced: _synced, ...rest } = entry;
  const body = rewritten(rest as EntryBody, seq, facts);
  if (body === undefined) return;
  const prepared = journal.prepare(body);
  journal.append(prepared instanceof Promise ? await prepared : prepared);
}

/** Undefined for what befell only the source's child. */
function rewritten(
  body: EntryBody,
  seq: number,
  { runId, pid, request, anew }: Copying,
): EntryBody | undefined {
  if (body.type === "run.resumed") return { ...body, pid };
  const own = "call" in body ? anew.get(body.call) : undefined;
  const isAnew = own !== undefined && seq >= own.fromSeq;
  if (body.type === "call.intent" && isAnew) {
    const { continues: _, ...rest } = body;
    return { ...rest, child_run_id: own.childRunId };
  }
  if (body.type === "child.spawned" && isAnew) return undefined;
  if (body.type === "child.exited") {
    if (isAnew) return undefined;
    // Only its source may take it up again.
    const { pid: _, ...rest } = body;
    return rest;
  }
  if (body.type !== "run.started") return body;
  return { ...body, run_id: runId, pid, forked_from: { run_id: request.sourceRunId, seq } };
}
