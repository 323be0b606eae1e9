/**
 * The one error type of rnix and the sentence it is printed as.
 *
 * A `SysError` says which call on which device failed, why, and what to do about it. Messages are in sentence case without a full stop, quote values, and name the current and the wanted state.
 */

/** Error codes shown to users and found in `error.code` of JSON output (design, section 7). */
export const ERROR_CODES = [
  "TIMEOUT",
  "NOT_FOUND",
  "PERMISSION",
  "INVALID",
  "DRIVER",
  "INTERNAL",
  "ALREADY_MOUNTED",
  "DEVICE_DISCONNECTED",
  "SESSION_EXPIRED",
  "RESOURCE_EXHAUSTED",
  "UNKNOWN_OUTCOME",
  "BUDGET_EXCEEDED",
  "JOURNAL_DAMAGED",
  "UNAUTHENTICATED",
  "UNTRUSTED",
  "INTERRUPTED",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** What an error knows besides its message. */
export interface ErrorFacts {
  /** What to do about it, one sentence. */
  hint?: string | undefined;
  /** The call that failed, in the words of strace: `Open`, `Mount`, `Write` … */
  syscall?: string | undefined;
  /** The device or file it failed on. */
  device?: string | undefined;
  pid?: number | undefined;
  /** Exit code of the command that ends with this error; 1 when absent (see `exit.ts`). */
  exitCode?: number | undefined;
  /** How long the other side asked to be left alone, milliseconds. */
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Any failure that a user may meet. */
export class SysError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly syscall: string | undefined;
  readonly device: string | undefined;
  readonly pid: number | undefined;
  readonly exitCode: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = "SysError";
    this.code = code;
    this.hint = facts.hint;
    this.syscall = facts.syscall;
    this.device = facts.device;
    this.pid = facts.pid;
    this.exitCode = facts.exitCode;
    this.retryAfterMs = facts.retryAfterMs;
  }

  /** The same error with more facts; those given win. */
  with(facts: ErrorFacts): SysError {
    return new SysError(this.code, this.message, {
      hint: facts.hint ?? this.hint,
      syscall: facts.syscall ?? this.syscall,
      device: facts.device ?? this.device,
      pid: facts.pid ?? this.pid,
      exitCode: facts.exitCode ?? this.exitCode,
      retryAfterMs: facts.retryAfterMs ?? this.retryAfterMs,
      cause: facts.cause ?? this.cause,
    });
  }
}

/** Turns anything thrown into a `SysError`; what isn't one yet becomes INTERNAL. */
export function toSysError(thrown: unknown, facts: ErrorFacts = {}): SysError {
  if (thrown instanceof SysError) return thrown.with(facts);
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new SysError("INTERNAL", message, { ...facts, cause: thrown });
}

/** A hint as it stands behind `hint: `: all begin alike, whichever part gave them. Names such as `HTTP_PROXY` keep their letters. */
export function hintText(hint: string): string {
  return hint.replace(/^[A-Z](?=[a-z]*(?:[ ,:]|$))/, (letter) => letter.toLowerCase());
}

/** The printed form: `[CODE] PID n Syscall: device (cause)`, then `hint: …` on a line of its own. */
export function formatError(error: SysError): string {
  const where = [
    error.pid === undefined ? "" : `PID ${error.pid}`,
    error.syscall ?? "",
  ].filter((part) => part !== "").join(" ");
  const head = error.device === undefined
    ? `${where === "" ? "" : `${where}: `}${error.message}`
    : `${where === "" ? "" : `${where}: `}${error.device} (${error.message})`;
  const hint = error.hint === undefined ? "" : `\nhint: ${hintText(error.hint)}`;
  return `[${error.code}] ${head}${hint}`;
}
