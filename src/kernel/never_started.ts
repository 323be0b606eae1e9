/** The error for a run of which there is a folder and not a single record. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";

/** NOT_FOUND (exit 2): its start never became durable, so nothing of it was done. */
export function neverStarted(runId: string, syscall = "Resume"): SysError {
  return new SysError("NOT_FOUND", "The run was stopped before it had started: nothing was done", {
    syscall,
    device: runId,
    exitCode: EXIT_USAGE,
    hint: "Run its agent again",
  });
}
