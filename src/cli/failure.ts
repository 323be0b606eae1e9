/** Errors between their three forms: thrown, in JSON, and printed. */
import { ERROR_CODES, type ErrorCode, formatError, SysError, toSysError } from "../base/errors.ts";
import { namingRun as namingRunInHint, shortRunId } from "../base/ids.ts";
import type { ErrorBody } from "../base/operations.ts";
import { plainText } from "./plain_text.ts";

/** What a command that threw ends with. */
export function failureOf(thrown: unknown): { error: ErrorBody; exitCode: number; stack: string } {
  const error = toSysError(thrown);
  const cause = thrown instanceof SysError ? thrown.cause : undefined;
  return {
    error: RUN_ID.test(error.device ?? "")
      ? namingRun(errorBody(error), error.device ?? "")
      : errorBody(error),
    exitCode: error.exitCode ?? 1,
    stack: [stackOf(thrown), stackOf(cause)].filter((part) => part !== "").join("\ncaused by "),
  };
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.stack ?? "" : "";
}

const RUN_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The system says `rnix resume RUN` in its hints; a person gets the name that can be typed. */
export function namingRun(error: ErrorBody, runId: string): ErrorBody {
  if (error.hint === undefined) return error;
  return { ...error, hint: namingRunInHint(error.hint, runId) };
}

export function errorBody(error: SysError): ErrorBody {
  return {
    code: error.code,
    message: error.message,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.syscall === undefined ? {} : { syscall: error.syscall }),
    ...(error.device === undefined ? {} : { device: error.device }),
    ...(error.pid === undefined ? {} : { pid: error.pid }),
  };
}

/** An error of JSON as one that is thrown. */
export function errorOf({ code, message, ...facts }: ErrorBody): SysError {
  const known: ErrorCode = ERROR_CODES.find((each) => each === code) ?? "INTERNAL";
  return new SysError(known, message, facts);
}

/** `[CODE] PID n Syscall: device (cause)` and its hint, fit for a terminal. */
export function errorText(body: ErrorBody): string {
  const code: ErrorCode = ERROR_CODES.find((each) => each === body.code) ?? "INTERNAL";
  const device = RUN_ID.test(body.device ?? "") ? `run ${body.device}` : body.device;
  return shortIds(plainText(formatError(new SysError(code, body.message, { ...body, device }))));
}

const NAMED_RUN =
  /(\b[Rr]un "?|\brnix [a-z ]+ )([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![\w-])/g;

/** Text for people: runs by their short names. JSON keeps the whole ones. */
export function shortIds(text: string): string {
  return text.replace(NAMED_RUN, (_, before: string, runId: string) => before + shortRunId(runId));
}
