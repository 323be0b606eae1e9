/** A failure as it goes to a client. */
import { toSysError } from "../base/errors.ts";
import { EXIT_FAILED } from "../base/exit.ts";
import type { ErrorAnswer } from "../base/wire.ts";

export function failureAnswer(thrown: unknown): ErrorAnswer {
  const { code, message, hint, syscall, device, pid, exitCode } = toSysError(thrown);
  return {
    error: {
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
      ...(syscall === undefined ? {} : { syscall }),
      ...(device === undefined ? {} : { device }),
      ...(pid === undefined ? {} : { pid }),
    },
    exit_code: exitCode ?? EXIT_FAILED,
  };
}
