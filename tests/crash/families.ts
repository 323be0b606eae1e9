/** A run and all that run below it, as their journals have them. */
import { SysError } from "../../src/base/errors.ts";
import type { FaultyDisk } from "../doubles/faulty_disk.ts";
import { type Fold, foldRun, type Stage } from "./harness.ts";
import type { RunRule } from "./incarnate.ts";
import { rulesFor } from "./rules.ts";

/** One run of a family. */
export interface Member {
  runId: string;
  /** The calls that lead to it from the root, with the try where it isn't the first: the same in every run of a scenario. */
  path: string;
  fold: Fold;
}

/** The fold of a run that has begun; undefined where there is none. */
export async function foldIfAny(disk: FaultyDisk, runId: string): Promise<Fold | undefined> {
  try {
    const fold = await foldRun(disk, runId);
    return fold.entries.length === 0 ? undefined : fold;
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
  }
}

/** The root first. A child that a journal names and that has not begun is left out. */
export async function membersOf(disk: FaultyDisk, rootId: string): Promise<Member[]> {
  const members: Member[] = [];
  const left = [{ runId: rootId, path: "" }];
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const fold = await foldIfAny(disk, next.runId);
    if (fold === undefined) continue;
    members.push({ ...next, fold });
    for (const entry of fold.entries) {
      if (entry.type !== "call.intent" || entry.child_run_id === undefined) continue;
      // One that is taken up again is there under the try that made it.
      if (entry.continues !== undefined) continue;
      const attempt = entry.attempt === 1 ? "" : `#${entry.attempt}`;
      left.push({ runId: entry.child_run_id, path: `${next.path}/${entry.call}${attempt}` });
    }
  }
  return members;
}

/** An idempotency key as it would be in every run of the scenario. */
export function pathOfKey(key: string, members: readonly Member[]): string {
  const slash = key.indexOf("/");
  const member = members.find(({ runId }) => runId === key.slice(0, slash));
  return member === undefined ? key : `${member.path}${key.slice(slash)}`;
}

/** What a person would decide on calls of runs that a run waits for. One that goes on by itself is asked for by itself. */
export async function rulesBelow(
  { disk, world, scenario }: Pick<Stage, "disk" | "world" | "scenario">,
  runId: string,
): Promise<RunRule[]> {
  const fold = await foldIfAny(disk, runId);
  const rules: RunRule[] = [];
  for (const { childRunId = "" } of fold?.state.ledger.openChildren() ?? []) {
    const child = await foldIfAny(disk, childRunId);
    const { ledger } = child?.state ?? {};
    if (ledger === undefined || ledger.state.end?.state === "exited") continue;
    if (scenario.agents?.[ledger.identity.agent]?.detach === true) continue;
    const own = rulesFor(ledger.openCalls(), world, childRunId);
    rules.push(...own.map((rule) => ({ ...rule, run: childRunId })));
    rules.push(...await rulesBelow({ disk, world, scenario }, childRunId));
  }
  return rules;
}

/** What is wrong with a family at its end: a run that was made twice, taken up after its end unasked, or that hasn't ended. */
export function checkFamily(members: readonly Member[]): string[] {
  const all = members.flatMap(({ fold }) => fold.entries);
  return members.flatMap(({ runId, path, fold }) => {
    const { entries, state } = fold;
    const wrong: string[] = [];
    const begun = entries.filter(({ type }) => type === "run.started").length;
    if (begun !== 1) wrong.push(`run ${path} has ${begun} starts`);
    const asked = all.filter((entry) =>
      entry.type === "call.intent" && entry.child_run_id === runId && entry.continues !== undefined
    ).length;
    const ends = entries.slice(0, -1).filter(({ type }) =>
      type === "run.exited"
    ).length;
    if (ends > asked && path !== "") wrong.push(`run ${path} went on after its end`);
    if (state.ledger.state.end?.state !== "exited") {
      wrong.push(`run ${path} (${runId}) never ended`);
    }
    return wrong;
  });
}
