/** `--unknown=[[RUN/]CALL:]DECISION` for one run. */
import { namesRun } from "../base/ids.ts";
import type { UnknownRule } from "../base/operations.ts";
import type { SettleRule } from "../kernel/settler.ts";

/** Rules that hold for a run, which may be named by any of `runIds` or `pids`. */
export function rulesFor(
  rules: readonly UnknownRule[],
  runIds: readonly string[],
  pids: readonly number[] = [],
): SettleRule[] {
  return rules
    .filter(({ run }) =>
      run === undefined || pids.includes(Number(run)) || runIds.some((id) => namesRun(run, id))
    )
    .map(({ call, decision }) => ({ ...(call === undefined ? {} : { call }), decision }));
}
