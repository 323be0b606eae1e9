/** What is told who asks for a run at work that is none any more: the same by a daemon as without one. */
import { SysError } from "./errors.ts";
import { EXIT_USAGE } from "./exit.ts";
import { shortRunId } from "./ids.ts";

/** `state` is that of the run's journal, where that could be read. */
export function notAtWork(runId: string, state: string | undefined): SysError {
  const run = shortRunId(runId);
  const [told, hint] = state === "suspended"
    ? ["is suspended", `rnix resume ${run} takes it up again`]
    : state === "dead" || state === "zombie"
    ? ["has ended", `rnix logs ${run} shows what it did`]
    : ["is not at work", "rnix ps -a shows its state"];
  return new SysError("INVALID", `Run ${run} ${told}`, { exitCode: EXIT_USAGE, hint });
}
