/**
 * A new run from the past of another: its entries up to the end of a step, copied under a new run id. The copy is then resumed like any run.
 *
 * Effects done after that step stay done in the world; a fork that leaves such effects behind has to be confirmed.
 */
import { SysError, toSysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { newRunId } from "../base/ids.ts";
import type { Entry, EntryBody, EntryOf } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { readRun } from "../journal/mod.ts";
import { createRunJournal, type KernelDeps } from "./launch.ts";

export interface ForkRequest {
  sourceRunId: string;
  /** Last step that is taken over; undefined: all of it. */
  step: number | undefined;
  /** Goes on though effects were done after the step. */
  confirmed: boolean;
  /** Whether the fork is given a new intent, without which a completed run has nothing more to do. */
  hasIntent: boolean;
}

/** Makes the copy and returns its run id. Rejects with INVALID when the step doesn't exist or effects after it aren't confirmed. */
export async function forkRun(kernel: KernelDeps, request: ForkRequest): Promise<string> {
  const source = `${kernel.runsFolder}/${request.sourceRunId}`;
  const { kept, after, lastTurn } = await readPrefix(kernel, source, request.step);
  if (request.step !== undefined && request.step > lastTurn) {
    throw new SysError(
      "INVALID",
      `The run has ${lastTurn} steps, there is no step ${request.step}`,
      {
        syscall: "Fork",
        device: request.sourceRunId,
        exitCode: EXIT_USAGE,
      },
    );
  }
  const last = kept.at(-1);
  if (last?.type === "run.exited" && last.status === "completed" && !request.hasIntent) {
    throw new SysError("INVALID", "The run has completed, there is nothing to go on with", {
      syscall: "Fork",
      device: request.sourceRunId,
      exitCode: EXIT_USAGE,
      hint: "Fork it from an earlier step (--from-step N), or give it a new intent",
    });
  }
  if (after.length > 0 && !request.confirmed) throw leavesEffects(request, after);
  const runId = newRunId(kernel.clock.now(), kernel.random);
  const folder = `${kernel.runsFolder}/${runId}`;
  const journal = await createRunJournal(kernel, folder);
  try {
    await linkBlobs(kernel, source, folder);
    const pid = await kernel.pids.allocate(runId);
    for (const entry of kept) await copyEntry(journal, entry, { runId, pid, request });
    await journal.barrier();
    await journal.close();
    return runId;
  } catch (thrown) {
    await journal.close();
    await kernel.storage.remove(folder, { recursive: true }).catch(() => {});
    throw toSysError(thrown);
  }
}

async function readPrefix(kernel: KernelDeps, source: string, step: number | undefined) {
  const kept: Entry[] = [];
  const after: EntryOf<"call.intent">[] = [];
  let lastTurn = 0;
  let past = false;
  await readRun(kernel.storage, source, (entry) => {
    if (entry.type === "model.reply") lastTurn = entry.turn;
    if (entry.type === "model.request" && step !== undefined && entry.turn > step) past = true;
    if (!past) kept.push(entry);
    else if (entry.type === "call.intent" && entry.effect !== "read") after.push(entry);
  });
  return { kept, after, lastTurn };
}

function leavesEffects(request: ForkRequest, after: readonly EntryOf<"call.intent">[]): SysError {
  const list = after.map(({ call, tool, effect }) => `${call} ${tool} (${effect})`).join(", ");
  return new SysError(
    "INVALID",
    `Effects were done after step ${request.step}, and stay done: ${list}`,
    {
      syscall: "Fork",
      device: request.sourceRunId,
      exitCode: EXIT_USAGE,
      hint: "Say --yes to fork all the same",
    },
  );
}

async function linkBlobs(kernel: KernelDeps, source: string, folder: string): Promise<void> {
  const names = await kernel.storage.list(`${source}/blobs`);
  for (const name of names) {
    await kernel.storage.hardLink(`${source}/blobs/${name}`, `${folder}/blobs/${name}`);
  }
  await kernel.storage.syncFolder(`${folder}/blobs`);
}

async function copyEntry(
  journal: Journal,
  entry: Entry,
  facts: { runId: string; pid: number; request: ForkRequest },
): Promise<void> {
  const { v: _v, seq, ts: _ts, synced: _synced, ...rest } = entry;
  const body = rewritten(rest as EntryBody, seq, facts);
  const prepared = journal.prepare(body);
  journal.append(prepared instanceof Promise ? await prepared : prepared);
}

function rewritten(
  body: EntryBody,
  seq: number,
  { runId, pid, request }: { runId: string; pid: number; request: ForkRequest },
): EntryBody {
  if (body.type === "run.resumed") return { ...body, pid };
  if (body.type !== "run.started") return body;
  return { ...body, run_id: runId, pid, forked_from: { run_id: request.sourceRunId, seq } };
}
