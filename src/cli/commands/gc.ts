/** `rnix gc`: removes runs that have ended, by age and number. */
import { DURATION_EXAMPLES, parseDuration } from "../../base/duration.ts";
import { EXIT_FAILED } from "../../base/exit.ts";
import { shortRunId } from "../../base/ids.ts";
import type { GarbageReport, GarbageRequest } from "../../base/upkeep.ts";
import { bytes, counted, elapsed } from "../amounts.ts";
import { usageError } from "../arguments.ts";
import type { Command, Invocation } from "../command.ts";
import { hasSwitch, valueOf, wholeNumber } from "../flag_values.ts";
import { oneLine } from "../plain_text.ts";

export const gc: Command = {
  name: "gc",
  summary: "Remove runs that ended long ago",
  positionals: [],
  flags: [
    { name: "older-than", value: "DURATION", summary: "Those that ended at least so long ago" },
    { name: "max-runs", value: "N", summary: "Beyond so many that have ended, the oldest" },
    { name: "dry-run", summary: "Say what would be removed, and remove nothing" },
  ],
  details:
    `Without a flag as config.yaml says under gc: retention (30d) and max_runs (1000). A flag goes before
its key; the other key still holds. Runs at work, suspended, interrupted or damaged are never removed.
What a run has started goes after it, and isn't counted before. The daemon does the same by itself.`,
  async run(invocation, { world, env }) {
    const request = requestOf(invocation);
    const upkeep = await world.upkeep(env);
    const report = await upkeep.collectGarbage(request);
    const now = world.clock.now();
    const failed = report.kept.some((run) => run.failed === true);
    return {
      exitCode: failed ? EXIT_FAILED : 0,
      data: report,
      text: reportText(report, now),
      ...(failed ? { error: keptError(report), errorTold: true as const } : {}),
    };
  },
};

function requestOf(invocation: Invocation): GarbageRequest {
  const olderThan = valueOf(invocation, "older-than");
  const maxRuns = valueOf(invocation, "max-runs");
  return {
    ...(olderThan === undefined ? {} : { olderThanMs: ageOf(olderThan) }),
    ...(maxRuns === undefined ? {} : { maxRuns: wholeNumber("--max-runs", maxRuns, 0) }),
    dryRun: hasSwitch(invocation, "dry-run"),
  };
}

function ageOf(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw usageError(
    `"--older-than" must be a duration, but is "${text}"`,
    `e.g. 30d, ${DURATION_EXAMPLES}`,
  );
}

function reportText(report: GarbageReport, nowMs: number): string {
  const { removed, kept, dry_run, left, bytes_freed } = report;
  const verb = dry_run ? "would remove" : "removed";
  const lines = removed.map((run) => {
    const who = run.pid === 0 ? "never started" : `pid ${run.pid}, ${oneLine(run.agent)}`;
    const age = elapsed(nowMs - run.ended_ms);
    return `${verb} ${shortRunId(run.run_id)} (${who}), ended ${age} ago, ${bytes(run.bytes)}`;
  });
  for (const { run_id, reason } of kept) {
    lines.push(`kept ${shortRunId(run_id)}: ${oneLine(reason)}`);
  }
  lines.push(
    `${verb} ${counted(removed.length, "run")}, ${bytes(bytes_freed)}; ${
      counted(left, "run")
    } left`,
  );
  return lines.join("\n");
}

function keptError({ kept }: GarbageReport) {
  return {
    code: "DRIVER",
    message: `${
      counted(kept.filter(({ failed }) => failed === true).length, "run")
    } could not be removed`,
  };
}
