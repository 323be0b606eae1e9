/**
 * Removes runs that have ended: by age, and the oldest where there are too many.
 *
 * Contract
 * 1. A run goes only under its lease, and only if its journal is whole and ends with its exit: runs at work, suspended, interrupted or damaged stay whatever their age. A run that never began goes by age alone, an hour old at least.
 * 2. A run is there whole or not at all: its folder is renamed aside, that is made durable, then it is deleted. What a crash left on the way is deleted by the next collection.
 * 3. Blobs that a fork shares are second names of the same files: deleting one name leaves the other.
 * 4. A child goes after its parent and every fork of that, durably: whoever has still to read its end, or takes it up again, would make it anew. Nor does a run go while one below it goes on. So no tree is left by halves, and only runs that belong to no other count.
 * 5. The list of pids is never touched: a removed run's pid still names it and is never given again.
 */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import type { GarbageReport, KeptRun, RemovedRun } from "../base/upkeep.ts";
import type { LeaseTaker } from "../journal/mod.ts";
import { probeLease, readEnds, readRun, signOfLife, takeLease } from "../journal/mod.ts";
import type { Runs } from "./runs.ts";
import { RunTrees } from "./run_trees.ts";

const REMOVED_PREFIX = ".removed-";
/** Younger ones may be about to begin. */
const NEVER_BEGAN_MS_MIN = 3_600_000;

export interface GarbageDeps {
  storage: Storage;
  runs: Runs;
  taker: LeaseTaker;
}

export interface GarbageLimits {
  /** Ended runs of this age go, milliseconds. */
  olderThanMs: number;
  /** Ended runs that may stay, those that belong to another not counted. */
  maxRuns: number;
  dryRun?: boolean;
  /** Stops between two runs. */
  signal?: AbortSignal;
}

interface EndedRun {
  runId: string;
  pid: number;
  agent: string;
  endedMs: number;
  neverBegan?: true;
}

/** Rejects where the folder of the runs can't be read; a run that can't be removed is told and stays. */
export async function collectGarbage(
  deps: GarbageDeps,
  limits: GarbageLimits,
): Promise<GarbageReport> {
  const { dryRun = false, signal } = limits;
  if (!dryRun) await finishRemovals(deps);
  const [runIds, pids] = await Promise.all([deps.runs.ids(), deps.runs.newestPids()]);
  const report: GarbageReport = {
    dry_run: dryRun,
    removed: [],
    kept: [],
    left: runIds.length,
    bytes_freed: 0,
  };
  const ended: EndedRun[] = [];
  const unfinished: string[] = [];
  const trees = new RunTrees(runIds);
  for (const runId of runIds) {
    if (signal?.aborted) return report;
    const run = await endedRun(deps, runId, trees);
    if (run === undefined) unfinished.push(runId);
    else ended.push({ ...run, pid: pids.get(runId) ?? run.pid });
  }
  for (const runId of unfinished) trees.hold(runId);
  for (const run of dueRuns(ended, { limits, trees, nowMs: deps.taker.clock.now() })) {
    if (signal?.aborted) break;
    if (trees.isOwned(run.runId) || trees.isHeld(run.runId)) continue;
    const outcome = await removeRun(deps, run, dryRun);
    if ("reason" in outcome) report.kept.push(outcome);
    else {
      trees.remove(run.runId);
      report.removed.push(outcome);
      report.bytes_freed += outcome.bytes;
      report.left -= 1;
    }
  }
  return report;
}

/** Parents before their children, and oldest first. */
function dueRuns(
  ended: readonly EndedRun[],
  { limits, trees, nowMs }: { limits: GarbageLimits; trees: RunTrees; nowMs: number },
): EndedRun[] {
  const oldestFirst = ended.toSorted((a, b) => a.endedMs - b.endedMs);
  const counted = oldestFirst.filter((run) => !run.neverBegan && !trees.isOwned(run.runId));
  const tooMany = new Set(counted.slice(0, Math.max(counted.length - limits.maxRuns, 0)));
  const newestMs = [...tooMany].at(-1)?.endedMs ?? -Infinity;
  return oldestFirst.filter((run) => {
    const ageMs = nowMs - run.endedMs;
    if (run.neverBegan) return ageMs >= Math.max(limits.olderThanMs, NEVER_BEGAN_MS_MIN);
    if (ageMs >= limits.olderThanMs || tooMany.has(run)) return true;
    // It goes with its parent, unless it went on alone for longer.
    return trees.isOwned(run.runId) && run.endedMs <= newestMs;
  }).sort((a, b) => trees.depthOf(a.runId) - trees.depthOf(b.runId));
}

/** What its two ends say of a run; undefined where it hasn't ended, or that can't be told. */
async function endedRun(
  { storage, runs }: GarbageDeps,
  runId: string,
  trees: RunTrees,
): Promise<EndedRun | undefined> {
  const folder = runs.folderOf(runId);
  try {
    const { first, last } = await readEnds(storage, folder);
    if (first === undefined && last === undefined) return await neverBegun(storage, folder, runId);
    if (first?.type !== "run.started") return undefined;
    trees.add(runId, first);
    if (last?.type !== "run.exited") return undefined;
    return { runId, pid: first.pid, agent: first.agent, endedMs: last.ts };
  } catch (thrown) {
    if (isGone(thrown)) return await neverBegun(storage, folder, runId);
    if (thrown instanceof SysError && thrown.code === "JOURNAL_DAMAGED") return undefined;
    throw thrown;
  }
}

async function neverBegun(
  storage: Storage,
  folder: string,
  runId: string,
): Promise<EndedRun | undefined> {
  const facts = await storage.stat(folder);
  if (facts?.kind !== "folder" || await signOfLife(storage, folder) !== undefined) return undefined;
  return { runId, pid: 0, agent: "", endedMs: facts.modifiedMs, neverBegan: true };
}

async function removeRun(
  deps: GarbageDeps,
  run: EndedRun,
  dryRun: boolean,
): Promise<RemovedRun | KeptRun> {
  const { storage, runs, taker } = deps;
  const folder = runs.folderOf(run.runId);
  const { runId: run_id, pid, agent, endedMs: ended_ms } = run;
  try {
    if (await probeLease(storage, folder) !== undefined) return { run_id, reason: "it is at work" };
    if (dryRun) {
      const stays = await reasonToStay(storage, folder, run);
      if (stays !== undefined) return { run_id, ...stays };
      return { run_id, pid, agent, ended_ms, bytes: await ownBytes(storage, folder) };
    }
    const lease = await takeLease(storage, folder, taker);
    try {
      const stays = await reasonToStay(storage, folder, run);
      if (stays !== undefined) return { run_id, ...stays };
      const bytes = await ownBytes(storage, folder);
      const aside = `${runs.folder}/${REMOVED_PREFIX}${run_id}`;
      await storage.rename(folder, aside);
      await storage.syncFolder(runs.folder);
      await storage.remove(aside, { recursive: true });
      return { run_id, pid, agent, ended_ms, bytes };
    } finally {
      lease.release();
    }
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    return { run_id, reason: thrown.message, failed: true };
  }
}

/** Reads all of the journal: what was an end by its last record alone may not be one. */
async function reasonToStay(
  storage: Storage,
  folder: string,
  run: EndedRun,
): Promise<Omit<KeptRun, "run_id"> | undefined> {
  let last = "";
  try {
    const { lastSeq, notices, mayLackDurable } = await readRun(
      storage,
      folder,
      (entry) => void (last = entry.type),
    );
    if (notices.length > 0 || mayLackDurable) {
      return { reason: "its journal is damaged", failed: true };
    }
    if (run.neverBegan) return lastSeq === 0 ? undefined : { reason: "it has begun" };
  } catch (thrown) {
    if (run.neverBegan && isGone(thrown)) return undefined;
    if (!(thrown instanceof SysError)) throw thrown;
    return { reason: `its journal is damaged: ${thrown.message}`, failed: true };
  }
  return last === "run.exited" ? undefined : { reason: "it has gone on" };
}

/** Bytes of what only this folder has. */
async function ownBytes(storage: Storage, path: string): Promise<number> {
  const facts = await storage.stat(path);
  if (facts === undefined) return 0;
  if (facts.kind !== "folder") return (facts.links ?? 1) > 1 ? 0 : facts.sizeBytes;
  let bytes = 0;
  for (const name of await storage.list(path)) bytes += await ownBytes(storage, `${path}/${name}`);
  return bytes;
}

/** Deletes what an earlier collection had renamed aside. */
async function finishRemovals({ storage, runs }: GarbageDeps): Promise<void> {
  let names: string[];
  try {
    names = await storage.list(runs.folder);
  } catch (thrown) {
    if (isGone(thrown)) return;
    throw thrown;
  }
  for (const name of names) {
    if (!name.startsWith(REMOVED_PREFIX)) continue;
    await storage.remove(`${runs.folder}/${name}`, { recursive: true }).catch(() => {});
  }
}

function isGone(thrown: unknown): boolean {
  return thrown instanceof SysError && thrown.code === "NOT_FOUND";
}
