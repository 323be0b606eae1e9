/** A run that played another one, held against that one. */
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import { shortRunId } from "../../base/ids.ts";
import type { ReplayReport } from "../../base/operations.ts";
import type { Storage } from "../../base/storage.ts";
import type { Runs } from "../runs.ts";
import { compareRuns } from "./compare.ts";
import { readRecording } from "./recording.ts";

/** Rejects with INVALID (exit 2) for a run that played no other, NOT_FOUND where either is gone. */
export async function comparedReplay(
  { storage, runs }: { storage: Storage; runs: Runs },
  run: string,
): Promise<ReplayReport> {
  const runId = await runs.find(run);
  const again = await readRecording(storage, runs.folderOf(runId), runId);
  const { replay_of: source } = again.start;
  if (source === undefined) {
    throw new SysError("INVALID", `Run ${shortRunId(runId)} played no other one`, {
      syscall: "Replay",
      exitCode: EXIT_USAGE,
    });
  }
  const before = await readRecording(storage, runs.folderOf(source.run_id), source.run_id);
  const differences = compareRuns(before, again, source.live);
  return {
    run_id: source.run_id,
    same: differences.length === 0,
    requests: again.replies.size,
    calls: again.calls.length,
    differences,
  };
}
