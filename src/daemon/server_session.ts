/**
 * One server that a client looks into outside of a run: its session, the requests in flight, and what goes to the client.
 *
 * Results go out as they came: repaired, secrets of the configuration taken out, as at a run's intake. A call of a tool has the same honest outcomes as in a run; it is sent once.
 */
import { SysError } from "../base/errors.ts";
import {
  isJsonObject,
  type Json,
  JSON_DEPTH_MAX,
  type JsonObject,
  nestsDeeper,
  wellFormed,
} from "../base/json.ts";
import type { ErrorBody } from "../base/operations.ts";
import { redactError } from "../base/redacted_error.ts";
import type { Redaction } from "../base/redaction.ts";
import type {
  ServerAnswer,
  ServerAsk,
  ServerFacts,
  ServerNews,
} from "../base/server_operations.ts";
import type { RawAnswer } from "../mcp/channel.ts";
import type { ToolCallOutcome } from "../mcp/exchange.ts";
import type { McpServerLaunch } from "../mcp/launch.ts";
import type { McpSession } from "../mcp/session.ts";
import { failureAnswer } from "./failure_answer.ts";

/** How long an answer is still awaited once a call was cancelled. */
const CANCEL_GRACE_MS = 2_000;

export interface ServedServerOptions {
  id: string;
  launch: McpServerLaunch;
  redaction: Redaction;
  session: McpSession;
  /** What is spoken with it: `stdio`, `http` or `sse`. */
  transport: string;
  connectMs: number;
  onNews(news: ServerNews): void;
}

export class ServedServer {
  readonly id: string;
  readonly #session: McpSession;
  readonly #launch: McpServerLaunch;
  readonly #redaction: Redaction;
  readonly #transport: string;
  readonly #connectMs: number;
  /** Requests in flight, by the id that their client gave them. */
  readonly #asked = new Map<string, AbortController>();
  #calls = 0;

  constructor(options: ServedServerOptions) {
    const { id, session, launch, redaction, transport, connectMs, onNews } = options;
    this.id = id;
    this.#transport = transport;
    this.#session = session;
    this.#launch = launch;
    this.#redaction = redaction;
    this.#connectMs = connectMs;
    session.onNotification = (method, params) => {
      const shown = params === undefined ? undefined : cleanNews(params, redaction);
      onNews({ kind: "notification", method, ...(shown === undefined ? {} : { params: shown }) });
    };
  }

  get facts(): ServerFacts {
    const { era, protocolVersion, serverInfo, capabilities, instructions, tools } = this.#session;
    const clean = (value: JsonObject) => asObject(cleanNews(value, this.#redaction));
    return {
      server: this.#launch.server,
      transport: this.#transport,
      era,
      protocol_version: protocolVersion,
      server_info: serverInfo === undefined ? null : clean(serverInfo) ?? null,
      capabilities: clean(capabilities) ?? {},
      ...(instructions === undefined
        ? {}
        : { instructions: this.#redaction.sink.redact(instructions.toWellFormed()) }),
      tools: tools.length,
      connect_ms: this.#connectMs,
    };
  }

  /** Resolves once the server has gone. */
  get ended(): Promise<ErrorBody> {
    return this.#session.ended.then((reason) => ({
      code: "DEVICE_DISCONNECTED",
      message: this.#redaction.sink.redact(`Server "${this.#launch.server}" has gone: ${reason}`),
    }));
  }

  /** Never rejects for what the server does. */
  async ask(id: string, ask: ServerAsk): Promise<ServerAnswer> {
    const abort = new AbortController();
    if (this.#asked.has(id)) {
      throw new SysError("INVALID", `Request "${id}" is in flight already`);
    }
    this.#asked.set(id, abort);
    try {
      return await this.#answer(ask, abort.signal);
    } catch (thrown) {
      return { outcome: "error", error: this.#errorOf(thrown) };
    } finally {
      this.#asked.delete(id);
    }
  }

  /** Whether there was such a request. */
  cancel(id: string): boolean {
    const abort = this.#asked.get(id);
    abort?.abort(new Error("Cancelled"));
    return abort !== undefined;
  }

  /** Ends the session and its server. Never rejects, bounded, idempotent. */
  async close(): Promise<void> {
    await this.#session.close();
  }

  async #answer(ask: ServerAsk, signal: AbortSignal): Promise<ServerAnswer> {
    const { method, params } = ask;
    const limitMs = ask.timeout_ms ?? this.#launch.timeoutMs;
    if (method === "tools/call") return this.#ofCall(await this.#call(ask, signal));
    const listed = params["cursor"] === undefined
      ? await this.#session.listAll(method, limitMs, signal)
      : undefined;
    if (listed !== undefined) return { outcome: "ok", result: this.#clean(listed) };
    return this.#ofAnswer(await this.#session.request({ method, params, limitMs, signal }));
  }

  async #call({ params, timeout_ms }: ServerAsk, signal: AbortSignal): Promise<ToolCallOutcome> {
    const { name, arguments: args = {} } = params;
    if (typeof name !== "string" || !isJsonObject(args)) {
      throw new SysError("INVALID", "A call needs the name of a tool and an object of arguments");
    }
    this.#calls += 1;
    return await this.#session.callTool({
      tool: name,
      arguments: args,
      callId: `${this.#calls}`,
      idempotencyKey: `${this.id}/${this.#calls}`,
      signal,
      cancelGraceMs: CANCEL_GRACE_MS,
      timeoutMs: timeout_ms ?? this.#launch.timeoutMs,
      maxTimeoutMs: timeout_ms ?? this.#launch.maxTimeoutMs,
    });
  }

  #ofCall(outcome: ToolCallOutcome): ServerAnswer {
    switch (outcome.kind) {
      case "not-sent":
        return { outcome: "error", error: this.#errorOf(outcome.error) };
      case "unknown":
        return { outcome: "unknown", error: this.#errorOf(outcome.error) };
      case "result":
      case "rpc-error":
        return this.#ofAnswer(outcome);
    }
  }

  #ofAnswer(answer: RawAnswer): ServerAnswer {
    if (answer.kind === "result") return { outcome: "ok", result: this.#clean(answer.result) };
    const { code, message, data } = answer;
    const { sink } = this.#redaction;
    const text = sink.redact(message.toWellFormed());
    return {
      outcome: "error",
      error: { code: "DRIVER", message: `MCP error ${code}: ${text}` },
      rpc: { code, ...(data === undefined ? {} : { data: sink.redactJson(this.#clean(data)) }) },
    };
  }

  #clean(value: Json): Json {
    if (!nestsDeeper(value)) return this.#redaction.intake.redactJson(wellFormed(value));
    throw new SysError(
      "DRIVER",
      `The answer of "${this.#launch.server}" is nested too deep to be read (more than ${JSON_DEPTH_MAX} levels)`,
    );
  }

  #errorOf(thrown: unknown): ErrorBody {
    return failureAnswer(redactError(thrown, this.#redaction.sink)).error;
  }
}

/** What nobody asked for is left out where it can't be read. */
export function cleanNews(value: Json, redaction: Redaction): Json {
  return nestsDeeper(value) ? null : redaction.sink.redactJson(wellFormed(value));
}

function asObject(value: Json): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}
