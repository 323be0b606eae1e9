/** `--unknown=[[RUN/]CALL:]DECISION` for one run. */
import { SysError } from "../base/errors.ts";
import { namesRun } from "../base/ids.ts";
import type { UnknownRule } from "../base/operations.ts";
import type { SettleRule } from "../kernel/settle_rules.ts";
import type { Runs } from "./runs.ts";

/** All rules, as they stand to a run of these ids (a fork goes by that of its source too): one that names another run is kept and marked, so that it can be refused. */
export async function rulesFor(
  runs: Runs,
  rules: readonly UnknownRule[],
  runIds: readonly string[],
): Promise<SettleRule[]> {
  return await Promise.all(rules.map(async (rule): Promise<SettleRule> => {
    const isHere = rule.run === undefined || await isMeant(runs, rule.run, runIds);
    return isHere ? rule : { ...rule, isElsewhere: true };
  }));
}

/** All digits are a pid, any that the run had; else a whole id or a part. */
async function isMeant(
  runs: Runs,
  reference: string,
  runIds: readonly string[],
): Promise<boolean> {
  if (!/^\d+$/.test(reference)) return runIds.some((runId) => namesRun(reference, runId));
  try {
    return runIds.includes(await runs.find(reference));
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return false;
    throw thrown;
  }
}
