/** What a judge has to say of an MCP server that it started and spoke to (`check mcp --connect`), and how it is asked. */
import type { ClientFacts, ErrorBody, TrustQuestion } from "./client_facts.ts";
import type { JsonObject } from "./json.ts";
import type { ServerReference } from "./server_operations.ts";

/** Servers to be judged, all at once. */
export interface JudgeRequest {
  servers: ServerReference[];
  client: ClientFacts;
  /** Trust what the project's `mcp.yaml` or agents start, and remember it. */
  trust: boolean;
}

/** What a client hands in to hear of verdicts. Must not throw. */
export interface JudgeObserver {
  /** `index`: the server's place in the request. Each comes once, as soon as it is there. */
  onVerdict(index: number, verdict: ServerVerdict): void;
  /** Asks a person whether a server of the project may be started. Only called when `interactive`. */
  confirmTrust?(question: TrustQuestion): Promise<boolean>;
  /** A sentence that a person should know: the daemon is silent, or back; files were trusted. */
  onWarning?(message: string): void;
}

/** How a server took the opening of one era. */
export interface EraTrial {
  spoken: boolean;
  /** Versions that it named. */
  versions: string[];
  /** `exited`: the server or the connection ended. */
  outcome: "answered" | "refused" | "silent" | "exited" | "not-tried";
  /** What it said or how it ended. */
  detail?: string;
}

/** How a server took a `ping`; `not-tried` where its era has none. */
export type PingOutcome =
  | "answered"
  | "unknown-method"
  | "refused"
  | "silent"
  | "exited"
  | "not-tried";

/** How a server gave its list of tools. */
export interface Paging {
  pages: number;
  tools: number;
  /** `repeated`: a cursor came again, or a page brought nothing new; `endless`: it was still going on at the cap; `failed`: a page didn't come. */
  end: "complete" | "repeated" | "endless" | "failed";
}

/** What one provider would make of a server's tools. */
export interface ProviderVerdict {
  provider: string;
  /** Tools that could not be offered, and why. */
  refused: { tool: string; reason: string }[];
  /** Tools whose schema or description could not be passed on as it is, and what becomes of it. */
  altered: { tool: string; reason: string }[];
  /** Tools in one request, where that is fewer than there are. */
  tools_max?: number;
}

/** One thing that was noticed. */
export interface Finding {
  /** A fault keeps a run from using the server, a warning costs it something, a note is only worth knowing. */
  severity: "fault" | "warning" | "note";
  message: string;
  /** What to do, a sentence. */
  hint?: string;
}

/** All that was found out about a server. Text of the server's own is redacted. */
export interface ServerVerdict {
  server: string;
  transport: string;
  result: "ok" | "warnings" | "faults";
  /** Why it could not be mounted; absent where it could. */
  error?: ErrorBody;
  /** What a mount speaks. */
  era?: "modern" | "legacy";
  protocol_version?: string;
  server_info?: JsonObject;
  /** From the start to the end of discovery, milliseconds. */
  connect_ms?: number;
  /** 2026-07-28 (`server/discover`) and before it (`initialize`), each tried on a start of its own. */
  eras: { modern: EraTrial; legacy: EraTrial };
  ping: PingOutcome;
  paging?: Paging;
  /** Output on stdout that is no message, during the mount. */
  stdout_noise: { lines: number; first?: string };
  /** During the mount. */
  stderr: { lines: number; bytes: number };
  tools: {
    /** Those that a run can use. */
    usable: string[];
    set_aside: { tool: string; reason: string }[];
    /** Tools that models know by another name than `mcp__{server}__{tool}`. */
    renamed: { tool: string; name: string }[];
  };
  providers: ProviderVerdict[];
  findings: Finding[];
}
