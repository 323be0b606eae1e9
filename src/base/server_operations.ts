/**
 * Operations on one MCP server outside of a run, as a command sees them: `mcp connect`, `mcp test`.
 *
 * A session belongs to its client: when that goes, the daemon ends the session and the server with it.
 */
import type { ClientFacts, ErrorBody, TrustQuestion } from "./client_facts.ts";
import type { Json, JsonObject } from "./json.ts";

/** How a server is named on the command line. */
export type ServerReference =
  /** In `mcp.yaml`. */
  | { kind: "configured"; name: string }
  /** In an agent's manifest: a file, a folder or an agent's name. */
  | { kind: "agent"; manifest: string; server: string }
  /** Without a transport: Streamable HTTP, then legacy HTTP+SSE. */
  | { kind: "url"; url: string; headers: { [name: string]: string }; transport?: "http" | "sse" }
  | { kind: "command"; command: string; args: string[] };

/** What becomes of a server's question for a person: declined, accepted with the defaults of its form, or answered with this content. */
export type ElicitPolicy =
  | { kind: "decline" }
  | { kind: "defaults" }
  | { kind: "content"; content: JsonObject };

export interface ServerRequest {
  server: ServerReference;
  client: ClientFacts;
  elicit: ElicitPolicy;
  /** Trust what the project's `mcp.yaml` or agents start, and remember it. */
  trust: boolean;
}

/** What is known of a server once it is connected. */
export interface ServerFacts {
  server: string;
  transport: string;
  era: "modern" | "legacy";
  protocol_version: string;
  server_info: JsonObject | null;
  capabilities: JsonObject;
  /** Text for who uses the server. */
  instructions?: string;
  tools: number;
  /** From the start to the end of discovery. */
  connect_ms: number;
}

/** What a server tells by itself, and what rnix has to tell of it. */
export type ServerNews =
  | { kind: "notification"; method: string; params?: Json }
  /** A request of the server's own, and what it was answered with. */
  | { kind: "asked"; method: string; params?: Json; answer: JsonObject }
  | { kind: "warning"; message: string };

/** What a client hands in to watch a server. Must not throw. */
export interface ServerObserver {
  onNews(news: ServerNews): void;
  /** This side was too slow for so many. */
  onMissed?(events: number): void;
  /** Asks a person whether a server of the project may be started. Only called when `interactive`. */
  confirmTrust?(question: TrustQuestion): Promise<boolean>;
}

/** One request to a server. A listing without a cursor gives all pages as one. */
export interface ServerAsk {
  method: string;
  params: JsonObject;
  /** In place of the server's own limits: the time in all, milliseconds. */
  timeout_ms?: number;
}

/** `unknown`: a call that may have had its effect, though no answer came. */
export type ServerAnswer =
  | { outcome: "ok"; result: Json }
  | { outcome: "error"; error: ErrorBody; rpc?: { code: number; data?: Json } }
  | { outcome: "unknown"; error: ErrorBody };

/** Why a session is over that nobody closed, and what a command exits with then: 8 where it was the daemon. */
export interface ServerEnd {
  error: ErrorBody;
  exit_code: number;
}

export interface ServerSession {
  readonly facts: ServerFacts;
  /** Resolves when the server or the daemon has gone; never after `close`. Never rejects. */
  readonly ended: Promise<ServerEnd>;
  /** One answer; of a call that the daemon was lost with, that its outcome is unknown. Aborting cancels this request alone. Rejects when the session is over, and for other requests when the daemon is lost (exit 8). */
  ask(ask: ServerAsk, signal?: AbortSignal): Promise<ServerAnswer>;
  /** Ends the session and the server. Bounded, idempotent, never rejects. */
  close(): Promise<void>;
}
