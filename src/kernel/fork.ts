/**
 * A new run from the past of another: its entries up to the end of a step, copied under a new run id. The copy is then resumed like any run.
 *
 * Effects done after that step stay done in the world; a fork that leaves such effects behind has to be confirmed.
 */
import { SysError, toSysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { newRunId } from "../base/ids.ts";
import type { Storage } from "../base/storage.ts";
import type { Entry, EntryBody, EntryOf } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { cutAhead, readRun } from "../journal/mod.ts";
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
    const children = await newChildren(kernel, kept);
    for (const entry of kept) await copyEntry(journal, entry, { runId, pid, request, children });
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
  /** Steps of the source. */
  lastTurn: number;
  /** Whether records of the source were cut that may have been durable, and no resume has taken account of it. */
  hasOpenCut: boolean;
}

/** Reads the part of a run's past that a fork takes over, without its lease. */
export async function readForkedPast(
  storage: Storage,
  source: string,
  { step, again }: Pick<ForkRequest, "step" | "again">,
): Promise<ForkedPast> {
  const kept: Entry[] = [];
  const after: EntryOf<"call.intent">[] = [];
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
    else if (entry.type === "call.intent" && entry.effect !== "read") after.push(entry);
  });
  const last = kept.at(-1);
  const hasCompleted = last?.type === "run.exited" && last.status === "completed";
  if (again !== undefined && hasCompleted) kept.pop();
  const cut = await cutAhead(storage, source);
  return { kept, after, lastTurn, hasOpenCut: cut !== undefined && cut.lastSeq >= cutSeq };
}

/** Why there can be no such fork: INVALID (exit 2). */
export function forkRefusal(past: ForkedPast, request: ForkRequest): SysError | undefined {
  const { step, hasIntent, confirmed, again } = request;
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
      "Fork it from an earlier step (--from-step N), or give it a new intent",
    );
  }
  if (!completed && hasIntent) {
    return refused(
      request,
      "Only a completed run takes a new intent, and at that step the run had not completed",
      "Fork it without one; the fork goes on with the intent that it has",
    );
  }
  if (past.after.length === 0 || confirmed) return undefined;
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
  /** New run ids of children that haven't ended: these stay the source's. */
  children: ReadonlyMap<string, string>;
}

/** A child that has ended is taken over with what it came to, though its parent had not read that yet; made anew it would do everything once more. */
async function newChildren(
  kernel: KernelDeps,
  kept: readonly Entry[],
): Promise<Map<string, string>> {
  const open = new Map<string, string>();
  for (const entry of kept) {
    if (entry.type === "call.intent" && entry.child_run_id !== undefined) {
      open.set(entry.call, entry.child_run_id);
    }
    if (entry.type === "call.result") open.delete(entry.call);
  }
  const children = new Map<string, string>();
  for (const runId of open.values()) {
    if (await hasEnded(kernel, runId)) continue;
    children.set(runId, newRunId(kernel.clock.now(), kernel.random));
  }
  return children;
}

/** Whether that is durable, too: a fork that lives while its child is unfinished again would share it with the source. */
async function hasEnded(kernel: KernelDeps, runId: string): Promise<boolean> {
  const { storage, runsFolder } = kernel;
  const folder = `${runsFolder}/${runId}`;
  const ledger = new Ledger();
  try {
    await readRun(storage, folder, (entry) => ledger.fold(entry));
    if (ledger.state.end?.state !== "exited") return false;
    return (await readDurably(storage, folder, kernel)).state.end?.state === "exited";
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
  // The fork's own child was never there.
  if (entry.type === "child.spawned" && facts.children.has(entry.run_id)) return;
  const { v: _v, seq, ts: _ts, synced: _synced, ...rest } = entry;
  const body = rewritten(rest as EntryBody, seq, facts);
  const prepared = journal.prepare(body);
  journal.append(prepared instanceof Promise ? await prepared : prepared);
}

function rewritten(
  body: EntryBody,
  seq: number,
  { runId, pid, request, children }: Copying,
): EntryBody {
  if (body.type === "run.resumed") return { ...body, pid };
  if (body.type === "call.intent" && body.child_run_id !== undefined) {
    return { ...body, child_run_id: children.get(body.child_run_id) ?? body.child_run_id };
  }
  if (body.type !== "run.started") return body;
  return { ...body, run_id: runId, pid, forked_from: { run_id: request.sourceRunId, seq } };
}
