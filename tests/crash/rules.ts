/** What a person who looks into the world would decide on calls of unknown outcome. */
import type { OpenCall } from "../../src/kernel/ledger.ts";
import type { SettleRule } from "../../src/kernel/settler.ts";
import { isRepeatable } from "../../src/policy/settle.ts";
import type { World } from "./world.ts";

/** One decision for each call that policy wouldn't repeat. */
export function rulesFor(
  open: readonly OpenCall[],
  world: World,
  runId: string,
): (SettleRule & { call: string })[] {
  return open.filter(({ effect }) => !isRepeatable(effect)).map(({ call, tool }) => {
    const done = world.doneUnder(`${runId}/${call}`);
    if (done === undefined) return { call, decision: { how: "retry" } };
    if (/_dropped$|_slowly$|_too_late$/.test(tool)) return { call, decision: { how: "skip" } };
    return { call, decision: { how: "done", result: done.answer } };
  });
}
