/** What a resume would do with the children of a run: what each of them would do itself, and what that comes to for the run. */
import { SysError } from "../base/errors.ts";
import { EXIT_COMPLETED, exitOfSuspend, SUSPEND_REASONS } from "../base/exit.ts";
import type { ErrorBody, PlannedChild, ResumePlan, ResumeRequest } from "../base/operations.ts";
import type { Ledger } from "../kernel/ledger.ts";
import { reachOf, viewIfAny } from "./below.ts";
import type { Runs } from "./runs.ts";
import { rulesFor } from "./unknown_rules.ts";

export interface BelowDeps {
  runs: Runs;
  /** The plan of one run, in which what it has below is told. */
  planOf(runId: string, request: ResumeRequest): Promise<ResumePlan>;
}

/** One for each child whose end the run has not read, in the order of their calls. Rejects as the plan of a child does. */
export async function planChildren(
  { runs, planOf }: BelowDeps,
  ledger: Ledger,
  request: ResumeRequest,
): Promise<PlannedChild[]> {
  return await Promise.all(
    ledger.openChildren().map(async (open): Promise<PlannedChild> => {
      const { call, tool, childRunId: run_id = "", childSpawned } = open;
      const child = { call, tool, run_id };
      const view = await viewIfAny(runs, run_id);
      if (view === undefined) {
        const does = childSpawned === true ? "tell that it is not there any more" : "start it";
        return { ...child, does };
      }
      const { end } = view.ledger.state;
      if (end?.state === "exited") return { ...child, does: `take what it came to: ${end.status}` };
      if (request.fork) return { ...child, does: "start another one" };
      if (view.state === "running") return { ...child, does: "wait for it: it is at work" };
      const { client, onUnknown } = request;
      const told = await rulesFor(runs, request.unknown, [run_id]);
      const reach = await reachOf(runs, view.ledger, told);
      const plan = await planOf(run_id, {
        run: run_id,
        client,
        unknown: request.unknown.filter((_, index) => reach[index]?.own || reach[index]?.below),
        ...onUnknown === undefined ? {} : { onUnknown },
        ...{ stored: true, trust: false, acceptCut: false, fork: false, yes: false },
      });
      return { ...child, does: "take it up", plan };
    }),
  );
}

/** What suspends a run that has nothing to do but wait for its children: the most important of their reasons. Undefined where one of them goes on. */
export function stopBelow(
  children: readonly PlannedChild[],
): { error: ErrorBody; exit_code: number; next: string } | undefined {
  if (children.length === 0) return undefined;
  const codes = children.map(({ plan }) => plan?.exit_code ?? EXIT_COMPLETED);
  if (codes.includes(EXIT_COMPLETED)) return undefined;
  const reason = SUSPEND_REASONS.find((reason) => codes.includes(exitOfSuspend(reason)));
  const exit_code = reason === undefined ? codes[0] ?? EXIT_COMPLETED : exitOfSuspend(reason);
  const first = children.find(({ plan }) => plan?.exit_code === exit_code)?.plan;
  const { code, message, hint } = first?.error ?? new SysError("INTERRUPTED", "It is suspended");
  return {
    error: { code, message, ...(hint === undefined ? {} : { hint }) },
    exit_code,
    next: `suspend (${reason ?? "interrupted"})`,
  };
}
