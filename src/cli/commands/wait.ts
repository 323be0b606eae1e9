/** `rnix wait`: nothing but the end of a run, whoever started it. */
import { sleep } from "../../base/clock.ts";
import { SysError } from "../../base/errors.ts";
import type { RunObserver, RunReport, System } from "../../base/operations.ts";
import type { Command, Context } from "../command.ts";
import { follow, type Followed, leftOutcome } from "../follow.ts";
import { NOTHING_SEEN, reportOutcome } from "../report_outcome.ts";

/** Between its last event and its end on disk, and before its first, a run can be neither joined nor read. */
const BETWEEN_MS_MAX = 5_000;
const STEP_MS = 20;

const SILENT: RunObserver = { onEvent: () => {} };

export const wait: Command = {
  name: "wait",
  summary: "Wait for the end of a run",
  positionals: [{ name: "run", kind: "run" }],
  flags: [],
  details:
    `Prints the run's final text and exits as the run did. A run that is over or suspended ends it at
once. Ctrl-C ends the waiting (exit 130) and not the run.`,
  async run(invocation, context) {
    const [run = ""] = invocation.words;
    const system = await context.system();
    const followed = await endOf(system, run, context);
    if ("left" in followed) return leftOutcome(run, followed.left);
    return reportOutcome(context, followed.report, NOTHING_SEEN);
  },
};

async function endOf(system: System, run: string, { world }: Context): Promise<Followed> {
  const endMs = world.clock.monotonic() + BETWEEN_MS_MAX;
  for (;;) {
    const report: RunReport | undefined = await system.report(run);
    if (report !== undefined) return { report };
    try {
      return await follow(world, (observer) => system.attach(run, "now", observer), SILENT);
    } catch (thrown) {
      const isOver = thrown instanceof SysError && thrown.code === "INVALID";
      if (!isOver || world.clock.monotonic() >= endMs) throw thrown;
      await sleep(world.clock, STEP_MS);
    }
  }
}
