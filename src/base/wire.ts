/**
 * The one table of operations between client and daemon (what only reads, such as `ps`, reads the state folder itself and needs no daemon), and the lines that go over the socket: HTTP on a unix socket, JSON bodies, answers of one JSON value or of one line each (NDJSON).
 *
 * Plain data and types: the daemon decodes what clients send, a client trusts its daemon.
 */
import type { ErrorBody, RunEvent, RunReport, TrustQuestion, UnknownCall } from "./operations.ts";
import type { ServerFacts, ServerNews } from "./server_operations.ts";
import type { ServerVerdict } from "./server_verdict.ts";
import type { VfsAnswer } from "./vfs_operations.ts";

/** Raised whenever an older client or daemon could misread the other. */
export const PROTOCOL = 4;

export interface Operation {
  method: "GET" | "POST";
  path: string;
  /** `value`: one JSON object; `lines`: NDJSON until the operation is over. */
  answer: "value" | "lines";
}

/** Every operation; paths are fixed, arguments are in the JSON body. */
export const OPERATIONS = {
  status: { method: "GET", path: "/v1/status", answer: "value" },
  stop: { method: "POST", path: "/v1/stop", answer: "value" },
  run: { method: "POST", path: "/v1/run", answer: "lines" },
  resume: { method: "POST", path: "/v1/resume", answer: "lines" },
  attach: { method: "POST", path: "/v1/attach", answer: "lines" },
  control: { method: "POST", path: "/v1/control", answer: "value" },
  answer: { method: "POST", path: "/v1/answer", answer: "value" },
  openServer: { method: "POST", path: "/v1/server/open", answer: "lines" },
  askServer: { method: "POST", path: "/v1/server/ask", answer: "value" },
  cancelAsk: { method: "POST", path: "/v1/server/cancel", answer: "value" },
  closeServer: { method: "POST", path: "/v1/server/close", answer: "value" },
  mountHealth: { method: "GET", path: "/v1/mounts/health", answer: "value" },
  vfs: { method: "POST", path: "/v1/vfs", answer: "lines" },
  judgeServers: { method: "POST", path: "/v1/server/judge", answer: "lines" },
} as const satisfies { [name: string]: Operation };

export type OperationName = keyof typeof OPERATIONS;

/** A question to the person at the client, answered by the operation `answer`. */
export type Question =
  | { kind: "unknown"; call: UnknownCall }
  | { kind: "trust"; question: TrustQuestion };

/** Lines of `run`, `resume` and `attach`: `accepted` or `error` first, `report` or `error` last. */
export type RunLine =
  | { line: "accepted"; pid: number; run_id: string }
  | { line: "event"; event: RunEvent }
  | { line: "question"; id: string; question: Question }
  /** The question is no longer open. */
  | { line: "withdrawn"; id: string }
  /** Said every `ALIVE_MS` while there is nothing else to say. */
  | { line: "alive" }
  /** The reader was too slow for so many events. */
  | { line: "missed"; events: number }
  | { line: "report"; report: RunReport }
  | { line: "error"; error: ErrorBody; exit_code: number };

/** Lines of `openServer`: `accepted` or `error` first, `ended` or `error` last. */
export type ServerLine =
  | { line: "accepted"; session: string; facts: ServerFacts }
  | { line: "news"; news: ServerNews }
  | { line: "question"; id: string; question: Question }
  | { line: "withdrawn"; id: string }
  | { line: "alive" }
  | { line: "missed"; events: number }
  /** The server has gone. */
  | { line: "ended"; error: ErrorBody }
  | { line: "error"; error: ErrorBody; exit_code: number };

/** Lines of `judgeServers`: a `verdict` for each server, `judged` or `error` last. */
export type JudgeLine =
  | { line: "verdict"; index: number; verdict: ServerVerdict }
  /** A sentence that a person should know. */
  | { line: "notice"; message: string }
  | { line: "question"; id: string; question: Question }
  | { line: "withdrawn"; id: string }
  | { line: "alive" }
  | { line: "judged" }
  | { line: "error"; error: ErrorBody; exit_code: number };

/** Lines of `vfs`: `answer` or `error` last. */
export type VfsLine =
  | { line: "alive" }
  | { line: "answer"; answer: VfsAnswer }
  | { line: "error"; error: ErrorBody; exit_code: number };

/** What a failed operation of kind `value` answers, with HTTP status 400. */
export interface ErrorAnswer {
  error: ErrorBody;
  exit_code: number;
}

/** `daemon status`, and what a client checks before it speaks. */
export interface DaemonStatus {
  version: string;
  protocol: number;
  instance: string;
  os_pid: number;
  runs: number;
  clients: number;
  uptime_ms: number;
  socket: string;
}

/** `daemon.json` in the state folder. */
export interface DaemonRecord {
  socket: string;
  os_pid: number;
  instance: string;
  version: string;
  protocol: number;
  /** It takes nothing any more; kept until its last child is gone, for the sweep of the next. */
  stopping?: true;
}

/** How often a daemon says to who follows a run that it is alive, milliseconds. */
export const ALIVE_MS = 2_000;

/** Longest body of a request, bytes. */
export const BODY_BYTES_MAX = 16 * 1024 * 1024;
