/** `rnix journal repair`: says what a damaged journal would lose, and with `--yes` makes it one that resume takes. */
import { SysError } from "../../base/errors.ts";
import { EXIT_FAILED, EXIT_USAGE } from "../../base/exit.ts";
import { shortRunId } from "../../base/ids.ts";
import type { JournalRepair } from "../../base/upkeep.ts";
import { bytes, counted } from "../amounts.ts";
import type { Command, Outcome } from "../command.ts";
import { hasSwitch } from "../flag_values.ts";
import { oneLine } from "../plain_text.ts";

/** Calls and contents that are told one by one; --json has all. */
const TOLD_MAX = 20;

export const journalRepair: Command = {
  name: "journal repair",
  summary: "Make a damaged journal one that resume takes",
  positionals: [{ name: "run", kind: "run" }],
  flags: [{ name: "yes", summary: "Do it; without this only what would be lost is said" }],
  details:
    `The journal is cut before its first bad record; calls beyond it count as unknown, so that nothing is
done twice. Where only the content of a result is lost, its outcome is kept and the model is told. The
original stays in the run's folder. Exits 0 when nothing had to be done or it was done, 1 when --yes is
needed, 7 when nothing can be kept. What an agent starts is refused --yes (exit 2).`,
  async run(invocation, { world, env }) {
    const confirmed = hasSwitch(invocation, "yes");
    if (confirmed && await world.insideRun(env)) throw decidesForItself();
    const upkeep = await world.upkeep(env);
    const repair = await upkeep.repairJournal(invocation.words[0] ?? "", { confirmed });
    return outcomeOf(repair);
  },
};

function outcomeOf(repair: JournalRepair): Outcome {
  const text = repairText(repair);
  if (repair.state !== "needed") return { exitCode: 0, data: repair, text };
  const run = shortRunId(repair.run_id);
  return {
    exitCode: EXIT_FAILED,
    data: repair,
    text,
    error: {
      code: "JOURNAL_DAMAGED",
      message: `Journal of run ${run} needs a repair, which loses what is listed`,
      hint: `Nothing was changed; do it with: rnix journal repair ${run} --yes`,
    },
  };
}

/** A repair, done or planned, as lines. */
function repairText(repair: JournalRepair): string {
  const run = shortRunId(repair.run_id);
  if (repair.state === "unneeded") {
    const kept = `run ${run}: nothing to repair, ${counted(repair.kept_records, "record")}`;
    return [kept, ...repair.notices].map(oneLine).join("\n");
  }
  const isDone = repair.state === "repaired";
  const lines = [
    `run ${run}: ${isDone ? "kept" : "would keep"} ${counted(repair.kept_records, "record")}`,
    ...cutLines(repair),
    ...listed(
      repair.lost_contents,
      ({ record, call, problem }) =>
        `result of call ${call} (record ${record}): its outcome is kept, its content is lost: ${problem}`,
    ),
    ...repair.notices,
  ];
  if (repair.original !== undefined) {
    lines.push(`the journal as it was: ${repair.original}`, `go on with: rnix resume ${run}`);
  }
  return lines.map(oneLine).join("\n");
}

function cutLines(repair: JournalRepair): string[] {
  const { cut, lost_records, lost_bytes, unreadable_records } = repair;
  if (cut === undefined) return [];
  const done = repair.state === "repaired" ? "cut off" : "would cut off";
  const unreadable = unreadable_records === 0
    ? []
    : [`${counted(unreadable_records, "record")} can't be read: calls in them are not known`];
  return [
    `${done} ${counted(lost_records, "record")}, ${
      bytes(lost_bytes)
    }, from record ${cut.record} at byte ${cut.offset} on: ${cut.problem}`,
    ...unreadable,
    ...listed(
      repair.unknown_calls,
      ({ call, tool, effect }) =>
        `call ${call} of ${tool} (${effect}): its outcome is unknown then`,
    ),
    "calls of the last reply that is kept count as unknown too, if they may have left",
  ];
}

function listed<T>(items: readonly T[], line: (item: T) => string): string[] {
  const lines = items.slice(0, TOLD_MAX).map(line);
  if (items.length > TOLD_MAX) lines.push(`… and ${items.length - TOLD_MAX} more (--json has all)`);
  return lines;
}

function decidesForItself(): SysError {
  return new SysError("PERMISSION", "An agent can't decide what a journal may lose", {
    syscall: "Repair",
    exitCode: EXIT_USAGE,
    hint:
      "This command was started from within a run; a person repairs it in a terminal of their own",
  });
}
