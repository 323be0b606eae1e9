import assert from "node:assert/strict";
import { KernelStage } from "../../tests/kernel/kernel_stage.ts";
import type { UnknownRule } from "../base/operations.ts";
import { shortRunId } from "../base/ids.ts";
import { Pids } from "../kernel/pids.ts";
import { Runs } from "./runs.ts";
import { rulesFor } from "./unknown_rules.ts";

Deno.test("the run of a rule may be any pid that it had, its whole id or a part; all else is elsewhere", async () => {
  const stage = new KernelStage({ replies: ["Done.", "Done.", "Done."] });
  const { runId } = await stage.run();
  await stage.run();
  await stage.resumeToEnd(runId, { intent: "Again" });
  const runs = new Runs(stage.disk, new Pids(stage.disk, stage.clock, "/state"), "/state");
  const isHere = async (run: string | undefined, call = "t1.1") => {
    const rule: UnknownRule = { call, decision: { how: "skip" } };
    if (run !== undefined) rule.run = run;
    const [found] = await rulesFor(runs, [rule], [runId]);
    assert.equal(found?.call, call);
    assert.equal(found?.run, run, "it is told as it was written");
    return found?.isElsewhere !== true;
  };
  for (const run of [undefined, "1", "3", runId, shortRunId(runId), runId.toUpperCase()]) {
    assert.equal(await isHere(run), true, run);
  }
  for (const run of ["2", "4", "99", "ffffffff", "ff", " 1", ""]) {
    assert.equal(await isHere(run), false, run);
  }
});
