/** Only what is over can be replayed. */
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import { shortRunId } from "../../base/ids.ts";
import type { Runs } from "../runs.ts";

/** The run that a user means. Rejects with NOT_FOUND, and with INVALID (exit 2) for one that hasn't ended. */
export async function endedRun(runs: Runs, run: string): Promise<string> {
  const runId = await runs.find(run);
  const { state } = await runs.view(runId);
  if (state === "dead") return runId;
  throw new SysError("INVALID", `Run ${shortRunId(runId)} has not ended (it is ${state})`, {
    syscall: "Replay",
    exitCode: EXIT_USAGE,
    hint: "Only what is over can be replayed; rnix ps -a shows what is",
  });
}
