/**
 * Messages, requests and the one interface of a model provider.
 *
 * Messages are rnix's own form and go to the journal as they are; each provider folder translates. `meta` is a provider's metadata (thinking signatures, reasoning items), kept and sent back verbatim.
 */
import type { Usage } from "../base/budget.ts";
import type { SysError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";

export type AssistantPart =
  | { type: "text"; text: string; meta?: JsonObject }
  | { type: "reasoning"; text: string; meta?: JsonObject }
  | {
    type: "tool-call";
    /** The provider's own id, empty if it gave none. rnix names calls itself. */
    provider_id: string;
    /** Model-facing tool name, as the model wrote it. */
    tool: string;
    /** Parsed arguments; `{}` for empty or null argument text. */
    input: Json;
    /** Set when the argument text isn't JSON, or is nested too deep to be handled: that text, with `input` null. */
    malformed?: string;
    meta?: JsonObject;
  };

export interface AssistantMessage {
  role: "assistant";
  parts: AssistantPart[];
}

/** Result of one call of the assistant message before, in the order of its calls. `content` holds MCP content blocks. */
export interface ToolResult {
  /** The id that goes back to the provider: its own if it was non-empty and unique in the run, else rnix's. */
  id: string;
  tool: string;
  isError: boolean;
  content: Json[];
  structured?: Json;
}

export type Message =
  | {
    role: "user";
    text: string;
    /** Replies that stood here before a summary took their place; no provider is told. */
    repliesBefore?: number;
  }
  | AssistantMessage & {
    /** Ids of its calls in order, as they go back to the provider. */ callIds: string[];
  }
  | { role: "tool"; results: ToolResult[] };

/** A tool as the model sees it. */
export interface ModelTool {
  name: string;
  description: string;
  inputSchema: JsonObject;
}

export interface ModelRequest {
  model: string;
  system: string;
  /** Never changed once made, and added to until they are compacted: providers may cache work by message identity. */
  messages: readonly Message[];
  /** Sorted by name; the same array while nothing changed. */
  tools: readonly ModelTool[];
  /** Set on a request for a summary of a conversation, which offers no tools. */
  purpose?: "summary";
}

export interface ModelReply {
  message: AssistantMessage;
  usage: Usage;
  /** `stop`, `tool-calls`, `length`, `content-filter`, `error`, `other`. */
  finishReason: string;
}

/** A failed request: `retryable` when the same request may work later (after `retryAfterMs` where the provider said so). */
export interface ModelFailure {
  error: SysError;
  retryable: boolean;
  retryAfterMs?: number;
  /** The conversation is too long for this model; one with a larger window may take it. */
  contextWindow?: true;
}

export type ModelOutcome = { ok: true; reply: ModelReply } | ({ ok: false } & ModelFailure);

export type ModelDelta = { type: "text" | "reasoning"; text: string };

/**
 * **Contract.** `request` never throws for a remote failure and never retries: it makes one request and ends in exactly one outcome. On abort it ends at once with a TIMEOUT or the signal's own SysError, not retryable. A stream that ends before its end mark is a retryable failure. `onDelta` is called synchronously, in order, and never after the outcome.
 */
export interface Model {
  readonly provider: string;
  /** Why this provider can't be offered a tool with this input schema; undefined when it can. */
  refuses(inputSchema: JsonObject): string | undefined;
  /** Tools that one request may have; undefined where the provider has no such limit. */
  readonly toolsMax?: number | undefined;
  request(
    request: ModelRequest,
    options: { signal: AbortSignal; onDelta: (delta: ModelDelta) => void },
  ): Promise<ModelOutcome>;
  close(): void;
}
