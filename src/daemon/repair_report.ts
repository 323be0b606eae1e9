/** A repair of a run's journal, done or only planned, as its user is told of it. */
import { shortRunId } from "../base/ids.ts";
import type { Storage } from "../base/storage.ts";
import type { JournalRepair } from "../base/upkeep.ts";
import type { LeaseTaker, Survey } from "../journal/mod.ts";
import { needsRepair, planRepair, repairRun } from "../journal/mod.ts";
import { basename } from "../base/posix_path.ts";

/** Rejects as `repairRun` does. */
export async function repairOf(
  { storage, folder, taker }: { storage: Storage; folder: string; taker: LeaseTaker },
  confirmed: boolean,
): Promise<JournalRepair> {
  if (!confirmed) return report(folder, await planRepair(storage, folder), undefined);
  const { survey, original } = await repairRun(storage, folder, taker);
  return report(folder, survey, original);
}

function report(folder: string, survey: Survey, original: string | undefined): JournalRepair {
  const { cut, lostContents } = survey;
  const repaired = original === undefined ? "needed" : "repaired";
  return {
    run_id: basename(folder),
    state: needsRepair(survey) ? repaired : "unneeded",
    kept_records: survey.keptSeq,
    ...(cut === undefined
      ? {}
      : { cut: { record: cut.record, offset: cut.offset, problem: cut.problem } }),
    lost_records: survey.lostRecords,
    lost_bytes: survey.lostBytes,
    unreadable_records: survey.unreadableRecords,
    unknown_calls: survey.unknownCalls.map(({ call, tool, effect }) => ({ call, tool, effect })),
    lost_contents: lostContents.map(({ seq, call, problem }) => ({ record: seq, call, problem })),
    notices: noticesOf(folder, survey),
    ...(original === undefined ? {} : { original }),
  };
}

/** What a repair leaves as it is, and what comes of that. */
function noticesOf(folder: string, { lostSpec, tornTail, keptSeq }: Survey): string[] {
  const notices: string[] = [];
  if (tornTail === "set-aside") {
    notices.push(`What follows record ${keptSeq} is torn and left to resume, which sets it aside`);
  } else if (tornTail === "accept-cut") {
    const run = shortRunId(basename(folder));
    notices.push(
      `What follows record ${keptSeq} may have been durable and is left to resume: ` +
        `rnix resume ${run} --accept-cut sets it aside, and counts calls that may have left as unknown`,
    );
  }
  if (lostSpec) {
    notices.push(
      "The manifest that the run was started with is lost: the run can be read and exported, and not resumed",
    );
  }
  return notices;
}
