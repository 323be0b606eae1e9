/** What must hold after a schedule, of everything that is on the disk and was done in the world. */
import type { FaultyDisk } from "../doubles/faulty_disk.ts";
import { foldIfAny, membersOf } from "./families.ts";
import { type Fold, RUNS_FOLDER, type Stage } from "./harness.ts";
import { checkEntries, checkOnce } from "./recovery.ts";
import { checkWorkflows } from "./workflows.ts";

const RUN_ID = /^[0-9a-f]{8}-/;
/** What waits for a slow sync is shown late, and is right to be. */
const LATE = /ms after its entry/;

/** What there is after a schedule. */
export interface Left {
  disk: FaultyDisk;
  stages: readonly Stage[];
  /** Runs that were started or forked, not those below them. */
  roots: readonly { stage: Stage; runId: string }[];
  /** Runs that were removed; undefined where nobody knows which. */
  gone: ReadonlySet<string> | undefined;
}

/** Broken promises, in words. */
export async function checkEnd({ disk, stages, roots, gone }: Left): Promise<string[]> {
  const folds = new Map<string, Fold>();
  const violations: string[] = [];
  for (const runId of (await disk.list(RUNS_FOLDER).catch(() => [])).filter(isRunId)) {
    try {
      const fold = await foldIfAny(disk, runId);
      if (fold !== undefined) folds.set(runId, fold);
    } catch (thrown) {
      violations.push(`journal ${runId} can't be read: ${thrown}`);
    }
  }
  for (const [runId, fold] of folds) {
    // Every incarnation that a fork takes over has the fork's one pid.
    const isFork = fold.state.ledger.identity.forkedFrom !== undefined;
    const wrong = checkEntries(fold).filter((text) => !isFork || !/pids/.test(text));
    violations.push(...wrong.map((text) => `${runId}: ${text}`));
  }
  for (const { stage, runId } of roots) {
    violations.push(...await checkWorkflows(await membersOf(disk, runId), stage));
  }
  return [
    ...violations,
    ...checkPids(folds),
    ...stages.flatMap((stage) => [
      ...stage.violations.filter((text) => !LATE.test(text)),
      ...stage.world.violations,
      ...checkOnce(stage.world),
      ...checkRecorded(stage, folds, gone),
    ]),
  ];
}

function isRunId(name: string): boolean {
  return RUN_ID.test(name);
}

/** No pid was given to two runs. */
function checkPids(folds: ReadonlyMap<string, Fold>): string[] {
  const owners = new Map<number, string>();
  return [...folds].flatMap(([runId, fold]) =>
    [...new Set(fold.state.ledger.state.pids)].flatMap((pid) => {
      const owner = owners.get(pid);
      owners.set(pid, runId);
      return owner === undefined ? [] : [`pid ${pid} was given to ${owner} and ${runId}`];
    })
  );
}

/** What was done has an intent, and a result or a word that nobody knows it; what was killed may leave it open, which says the same. */
function checkRecorded(
  { world }: Stage,
  folds: ReadonlyMap<string, Fold>,
  gone: ReadonlySet<string> | undefined,
): string[] {
  return world.effects.flatMap(({ key, tool }) => {
    const [runId = "", call = ""] = key.split("/");
    const fold = folds.get(runId);
    if (fold === undefined) {
      return gone === undefined || gone.has(runId) ? [] : [`effect of no run: ${tool} ${key}`];
    }
    const { entries, state } = fold;
    const has = entries.some((entry) => entry.type === "call.intent" && entry.call === call);
    const open = state.ledger.state.open[call];
    const { end } = state.ledger.state;
    const isKilled = end?.state === "exited" && end.status !== "completed";
    if (!has) return [`effect without an intent: ${tool} ${key}`];
    return open !== undefined && !isKilled ? [`effect without an end: ${tool} ${key}`] : [];
  });
}
