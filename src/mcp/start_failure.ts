/** Why a server couldn't be started, as one error out of all that can go wrong: what it did, the last lines that it wrote, and what to do. */
import { formatDuration } from "../base/duration.ts";
import { SysError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { SendError, type ServerConnection } from "./connection.ts";
import type { Deadline } from "./deadline.ts";
import { HandshakeFailure } from "./handshake.ts";
import { plainMessage } from "./invalid_result.ts";

/** A failed start. */
export interface FailedStart {
  server: string;
  startupTimeoutMs: number;
  deadline: Deadline;
  /** Undefined where there was none. */
  connection: ServerConnection | undefined;
  /** How far it came. */
  step: "handshake" | "listing";
}

const STDERR_LINES = 8;
const STDIO_HINT =
  "Run its command in a shell: an MCP server on stdio waits for JSON-RPC on its stdin and writes nothing else to its stdout";

/** Waits for the last words of a server that has ended. TIMEOUT, NOT_FOUND, PERMISSION, RESOURCE_EXHAUSTED, else DRIVER. */
export async function startFailure(thrown: unknown, start: FailedStart): Promise<SysError> {
  const { server, connection, deadline, step } = start;
  const cause = thrown instanceof HandshakeFailure ? thrown.cause : thrown;
  if (cause instanceof SysError && connection === undefined) return cause;
  if (connection?.ended !== undefined) await connection.drained();
  const told = connection === undefined ? "" : noiseOf(connection) + stderrOf(connection);
  if (deadline.expired) return tooSlow(start, told, cause);
  if (deadline.signal.aborted) {
    return new SysError("DRIVER", `The start of server "${server}" was given up`, { cause });
  }
  if (cause instanceof SysError && cause.code !== "DEVICE_DISCONNECTED") {
    const hint = cause.hint ?? connection?.hint;
    return new SysError(cause.code, `${cause.message}${told}`, { cause, hint });
  }
  const exit = step === "handshake" ? exitOf(connection) : undefined;
  if (exit === undefined) return broken(start, told, cause);
  return new SysError("DRIVER", `Server "${server}" ${exit} before it answered${told}`, {
    cause,
    hint: connection?.firstNoise === undefined
      ? "Run its command in a shell to see why"
      : STDIO_HINT,
  });
}

function nameOf({ step }: FailedStart): string {
  return step === "handshake" ? "the MCP handshake" : "listing its tools";
}

function tooSlow(start: FailedStart, told: string, cause: unknown): SysError {
  const { server, startupTimeoutMs, connection, step } = start;
  const isBare = step === "handshake" && isBareJson(connection?.firstNoise ?? "");
  const what = isBare ? "answer initialize" : `finish ${nameOf(start)}`;
  const limit = `${formatDuration(startupTimeoutMs)} (startup_timeout)`;
  const raise = `If it is only slow, raise startup_timeout of server "${server}"`;
  const over = connection?.hint === undefined ? "on stdio" : "over HTTP";
  const hint = isBare
    ? 'Each answer must be {"jsonrpc": "2.0", "id": <that of the request>, "result": …} on a line, beginning with the one to "initialize"'
    : step === "handshake"
    ? `${raise}; if it never answers, it may not be an MCP server ${over}`
    : raise;
  const message = `Server "${server}" did not ${what} within ${limit}${told}`;
  return new SysError("TIMEOUT", message, { cause, hint });
}

/** Of a connection that was lost, or on which the wrong thing was said. */
function broken(start: FailedStart, told: string, cause: unknown): SysError {
  const { server, connection } = start;
  const why = connection?.ended ??
    asClause(server, plainMessage(cause instanceof Error ? cause.message : String(cause)));
  const refused = cause instanceof SendError && cause.cause instanceof SysError
    ? cause.cause
    : undefined;
  const code = connection?.endedCode ??
    (refused === undefined || refused.code === "DEVICE_DISCONNECTED" ? "DRIVER" : refused.code);
  // A server that speaks, and says the wrong thing, is one on stdio.
  const speaks = connection?.ended === undefined && connection?.firstNoise === undefined;
  const what = /^it can't be reached/.test(why)
    ? why.slice("it ".length)
    : `failed during ${nameOf(start)}: ${why}`;
  return new SysError(code, `Server "${server}" ${what}${told}`, {
    cause,
    hint: refused?.hint ?? connection?.hint ?? (speaks ? undefined : STDIO_HINT),
  });
}

/** A sentence about the server as a part of another one about it. */
function asClause(server: string, message: string): string {
  const subject = `Server "${server}" `;
  return message.startsWith(subject) ? `it ${message.slice(subject.length)}` : message;
}

/** `exited with code 1`, where that was the end of the connection. */
function exitOf(connection: ServerConnection | undefined): string | undefined {
  return /^it (exited with .*|was ended by .*)$/.exec(connection?.ended ?? "")?.[1];
}

function noiseOf({ firstNoise }: ServerConnection): string {
  if (firstNoise === undefined) return "";
  const what = isBareJson(firstNoise)
    ? 'JSON without the "jsonrpc" and "id" that make it an answer'
    : "no MCP message";
  return `; it wrote ${JSON.stringify(firstNoise)} to stdout, which is ${what}`;
}

/** Whether a line (its beginning, where it is long) is JSON that only lacks the envelope. */
function isBareJson(line: string): boolean {
  try {
    const value: Json = JSON.parse(line);
    return value === null || typeof value === "object";
  } catch {
    return /^\s*\{\s*"/.test(line);
  }
}

function stderrOf(connection: ServerConnection): string {
  const last = connection.lastLines().filter((line) => line.trim() !== "").slice(-STDERR_LINES);
  return last.length === 0 ? "" : `; last lines of its stderr:\n  ${last.join("\n  ")}`;
}
