/** An error as it may be shown: without secret values, and without the cause that holds them. */
import { SysError, toSysError } from "./errors.ts";
import type { Redactor } from "./redaction.ts";

/** The same error with its texts redacted. Anything thrown that isn't a SysError becomes INTERNAL first. */
export function redactError(thrown: unknown, redactor: Redactor): SysError {
  const error = toSysError(thrown);
  if (redactor.isEmpty) return error;
  const redact = (text: string | undefined) =>
    text === undefined ? undefined : redactor.redact(text);
  const { code, pid, exitCode } = error;
  return new SysError(code, redactor.redact(error.message), {
    hint: redact(error.hint),
    syscall: error.syscall,
    device: redact(error.device),
    pid,
    exitCode,
  });
}
