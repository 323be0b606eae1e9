/** What runs below a run came to, from their journals: a parent's report names the calls of its children that nobody knows the outcome of. */
import { SysError } from "../base/errors.ts";
import { namesRun } from "../base/ids.ts";
import type { RunReport, UnknownCall } from "../base/operations.ts";
import { signOfLife } from "../journal/mod.ts";
import { readDurably } from "../kernel/durable_read.ts";
import type { KernelDeps, RunOutcome } from "../kernel/launch.ts";
import type { Ledger } from "../kernel/ledger.ts";
import { ruleFits, type SettleRule } from "../kernel/settle_rules.ts";
import { unknownCalls } from "./report.ts";
import type { Runs, RunView } from "./runs.ts";
import { totalsBelow, withTree } from "./tree_use.ts";

/** Calls of unknown outcome in children that haven't ended, and in theirs. A journal that can't be read has none to tell of. */
export async function unknownBelow(runs: Runs, ledger: Ledger): Promise<UnknownCall[]> {
  const found = await Promise.all(
    ledger.openChildren().map(async ({ childRunId }) => {
      const view = childRunId === undefined ? undefined : await viewIfAny(runs, childRunId);
      if (view === undefined || view.state !== "suspended") return [];
      return [...unknownCalls(view.ledger), ...await unknownBelow(runs, view.ledger)];
    }),
  );
  return found.flat();
}

/** Runs below a run that haven't ended, as far as their journals can be read. */
export async function runsBelow(runs: Runs, runId: string): Promise<string[]> {
  const view = await viewIfAny(runs, runId).catch(() => undefined);
  const children = view?.ledger.openChildren().flatMap(({ childRunId }) => childRunId ?? []) ?? [];
  const below = await Promise.all(children.map((child) => runsBelow(runs, child)));
  return [...children, ...below.flat()];
}

/** The report of a run that isn't at work with what is below it: what the whole tree used and, where the run is suspended, the calls of its children whose outcome nobody knows. */
export async function withBelow(
  runs: Runs,
  report: RunReport,
  ledger: Ledger,
): Promise<RunReport> {
  const ledgerOf = async (runId: string) =>
    (await viewIfAny(runs, runId).catch(() => undefined))?.ledger;
  const counted = withTree(report, await totalsBelow(ledger, ledgerOf));
  return await withUnknownBelow(runs, counted, ledger);
}

async function withUnknownBelow(
  runs: Runs,
  report: RunReport,
  ledger: Ledger,
): Promise<RunReport> {
  if (report.state !== "suspended" || ledger.openChildren().length === 0) return report;
  const below = await unknownBelow(runs, ledger).catch(() => []);
  if (below.length === 0) return report;
  return { ...report, unknown_calls: [...report.unknown_calls ?? [], ...below] };
}

/** What is on disk of a child: undefined where there is none or it never began, in which case nothing of it is left. An end is durable when it is given. */
export async function pastOf(
  kernel: KernelDeps,
  runs: Runs,
  runId: string,
): Promise<RunOutcome | undefined> {
  const { storage } = kernel;
  const folder = runs.folderOf(runId);
  if (await storage.stat(folder) === undefined) return undefined;
  const view = await viewIfAny(runs, runId);
  if (view === undefined) {
    // Its start was never durable, so it did nothing: it is made anew under the same id.
    if (await signOfLife(storage, folder) === undefined) {
      await storage.remove(folder, { recursive: true });
    }
    return undefined;
  }
  const { reason = "interrupted" } = view;
  const ledger = view.state === "dead" ? await readDurably(storage, folder, kernel) : view.ledger;
  return { ledger, end: ledger.state.end ?? { state: "suspended", reason, reasons: [reason] } };
}

/** Decisions that are about this run; those that fit only calls of runs below it are left to these. */
export async function ownRules(
  runs: Runs,
  ledger: Ledger,
  rules: readonly SettleRule[],
): Promise<SettleRule[]> {
  const reach = await reachOf(runs, ledger, rules);
  return rules.filter((_, index) => reach[index]?.own || !reach[index]?.below);
}

/** Which decisions are about a call of this run, which about one of a run below it. */
export async function reachOf(
  runs: Runs,
  ledger: Ledger,
  rules: readonly SettleRule[],
): Promise<{ own: boolean; below: boolean }[]> {
  if (rules.length === 0) return [];
  const below = await unknownBelow(runs, ledger);
  const own = ledger.openCalls();
  return rules.map((rule) => ({
    own: own.some((call) => ruleFits(rule, call)),
    below: below.some(({ run_id, call }) =>
      (rule.run === undefined || rule.isElsewhere !== true || namesRun(rule.run, run_id)) &&
      (rule.call === undefined || rule.call === call)
    ),
  }));
}

/** Undefined for a run that isn't there, or never began. Rejects for one that can't be read. */
export async function viewIfAny(runs: Runs, runId: string): Promise<RunView | undefined> {
  try {
    return await runs.view(runId);
  } catch (thrown) {
    const code = thrown instanceof SysError ? thrown.code : undefined;
    if (code === "NOT_FOUND" || code === "INVALID") return undefined;
    throw thrown;
  }
}
