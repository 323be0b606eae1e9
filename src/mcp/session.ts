/**
 * A session with one MCP server: started, spoken to in its era, its tools listed, all within one limit.
 *
 * Only what the server announced is asked for. A session ends once and for all with its connection; starting again is the business of its owner.
 */
import type { Client } from "@modelcontextprotocol/client";
import { type Clock, sleep, within } from "../base/clock.ts";
import { formatDuration } from "../base/duration.ts";
import { type ErrorCode, SysError } from "../base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type { Channel, RawAnswer } from "./channel.ts";
import { SendError, type ServerConnection } from "./connection.ts";
import { Deadline, untilAbort } from "./deadline.ts";
import { callTool, sendRequest, type ToolCall, type ToolCallOutcome } from "./exchange.ts";
import {
  type Era,
  type EraCache,
  handshake,
  HandshakeFailure,
  modernParams,
  type Peer,
} from "./handshake.ts";
import { argumentHeaders, markFault } from "./http_headers.ts";
import { subscribeToNews } from "./list_news.ts";
import { listAll, type Page, pageOf } from "./listing.ts";
import { InputRounds, ServerRequests } from "./server_requests.ts";
import { startFailure } from "./start_failure.ts";

const METHOD_NOT_FOUND = -32601;
const TOOLS_CHANGED = "notifications/tools/list_changed";
const LOG_LEVEL_META = "io.modelcontextprotocol/logLevel";
const LOG_LEVEL = "info";

/** What can be listed: where it stands in the result, and what tells two items apart. */
const LISTINGS = [
  { method: "tools/list", what: "tools", key: "name" },
  { method: "resources/list", what: "resources", key: "uri" },
  { method: "resources/templates/list", what: "resourceTemplates", key: "uriTemplate" },
  { method: "prompts/list", what: "prompts", key: "name" },
] as const;

export interface SessionOptions {
  server: string;
  startupTimeoutMs: number;
  clock: Clock;
  /** Starts the server and connects to it; called again when it dies of the era probe. */
  connect(): Promise<ServerConnection>;
  signal?: AbortSignal | undefined;
  clientInfo: { name: string; version: string };
  eras?: EraCache;
  eraKey?: string;
  /** Answers what the server asks; by default whatever can be declined is. */
  requests?: ServerRequests;
  /** Hears all that there is to hear: news of every list, log messages of every request. Else only news of tools are asked for. */
  hearsAll?: boolean;
}

/** How a server is asked whether it lives. `ping` is `server/discover` in the era of 2026-07-28, which has no ping. */
export type ProbeMethod = "ping" | "tools/list";

/** One request that isn't a call of a tool. */
export interface SessionRequest {
  method: string;
  params: JsonObject;
  /** In all. */
  limitMs: number;
  /** Aborting tells the server that the answer isn't wanted. */
  signal?: AbortSignal | undefined;
}

export class McpSession {
  readonly server: string;
  readonly era: Era;
  readonly protocolVersion: string;
  readonly serverInfo: JsonObject | undefined;
  /** What the server says to who uses it. */
  readonly instructions: string | undefined;
  readonly capabilities: JsonObject;
  /** Definitions as the server gave them, in its order. */
  readonly tools: Json[];
  /** The server says that its tools changed. */
  onToolsChanged: (() => void) | undefined;
  readonly #client: Client;
  readonly #channel: Channel;
  readonly #clock: Clock;
  /** Only a modern server asks in the middle of a call. */
  readonly #inputs: ServerRequests | undefined;
  readonly #hearsAll: boolean;
  /** What a request that goes past the SDK must carry. */
  readonly #params: JsonObject;
  /** Whether marked arguments of calls are sent as headers too. */
  readonly #sendsHeaders: boolean;
  /** Of tools by name, as they were last listed. */
  readonly #schemas = new Map<string, Json>();
  #messages = 0;
  #heardMs: number;
  readonly #ended = Promise.withResolvers<string>();

  /**
   * Starts the server and lists its tools.
   *
   * Throws a SysError that says what failed, names the limit and its key where it was the time, and carries the last lines of the server's stderr; nothing is left running then. TIMEOUT, NOT_FOUND, PERMISSION, RESOURCE_EXHAUSTED, else DRIVER.
   */
  static async open(options: SessionOptions): Promise<McpSession> {
    const { clock, startupTimeoutMs, signal } = options;
    const deadline = new Deadline(clock, startupTimeoutMs, signal);
    const requests = options.requests ?? new ServerRequests();
    let peer: Peer | undefined;
    try {
      peer = await handshake({
        ...options,
        requests,
        deadline,
        eras: options.eras ?? new Map(),
        eraKey: options.eraKey ?? options.server,
      });
      const tools = await listTools(options.server, peer, deadline.signal);
      return new McpSession({ ...options, requests }, peer, tools);
    } catch (thrown) {
      const failed = thrown instanceof HandshakeFailure
        ? thrown.connection
        : peer?.channel.connection;
      const error = await startFailure(thrown, {
        ...{ server: options.server, startupTimeoutMs, deadline, connection: failed },
        step: peer === undefined ? "handshake" : "listing",
      });
      await failed?.close();
      throw error.with({ retryAfterMs: failed?.retryAfterMs });
    } finally {
      deadline.release();
    }
  }

  private constructor(
    options: SessionOptions & { requests: ServerRequests },
    peer: Peer,
    tools: Json[],
  ) {
    this.server = options.server;
    this.era = peer.era;
    this.#inputs = peer.era === "modern" ? options.requests : undefined;
    this.#hearsAll = options.hearsAll === true;
    this.tools = tools;
    this.#client = peer.client;
    this.#channel = peer.channel;
    this.#clock = options.clock;
    this.#heardMs = options.clock.monotonic();
    this.#params = peer.era === "modern" ? modernParams(options.clientInfo, options.requests) : {};
    this.protocolVersion = peer.client.getNegotiatedProtocolVersion() ?? "unknown";
    this.instructions = peer.client.getInstructions();
    this.serverInfo = asObject(peer.client.getServerVersion());
    this.capabilities = asObject(peer.client.getServerCapabilities()) ?? {};
    const end = () => this.#ended.resolve(peer.channel.connection.ended ?? "it ended");
    peer.channel.onEnd = end;
    if (peer.channel.connection.ended !== undefined) end();
    this.#sendsHeaders = peer.era === "modern" &&
      peer.channel.connection.hasPerRequestStream === true;
    this.#learn(tools);
    if (this.#sendsHeaders) {
      peer.channel.headersOf = (method, params) => this.#headersOf(method, params);
    }
    peer.channel.onTraffic = () => {
      this.#messages += 1;
      this.#heardMs = this.#clock.monotonic();
    };
    this.#followTools();
  }

  /** Whether calls can be sent. */
  get alive(): boolean {
    return this.#channel.connection.ended === undefined;
  }

  /** Resolves with the reason once the connection is over. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  /** The reason itself, once there is one. */
  get endedReason(): string | undefined {
    return this.#channel.connection.ended;
  }

  /** What the end was, where it isn't DEVICE_DISCONNECTED. */
  get endedCode(): ErrorCode | undefined {
    return this.#channel.connection.endedCode;
  }

  /** How long the server asked to be left alone, milliseconds from its end on. */
  get retryAfterMs(): number | undefined {
    return this.#channel.connection.retryAfterMs;
  }

  /** When the last message of any kind came, on the monotonic clock; the handshake counts. */
  get heardMs(): number {
    return this.#heardMs;
  }

  /** Requests whose answers are awaited, and those given up that the server may still be at work on. Probes don't count. */
  get inFlight(): { open: number; abandoned: number } {
    const { open, abandoned } = this.#channel;
    return { open, abandoned };
  }

  /** Asks the server whether it lives: an answer of any kind within `limitMs` is life, an error or another message too. Never rejects. */
  async probe(method: ProbeMethod, limitMs: number): Promise<"alive" | "silent"> {
    const messages = this.#messages;
    const asked = method === "ping" && this.era === "modern" ? "server/discover" : method;
    const tracked = this.#channel.request(asked, this.#params);
    const answered = tracked.sent.then(() => tracked.answer)
      .then((answer) => answer !== undefined, () => false);
    const isAlive = await within(this.#clock, limitMs, answered, () => false);
    if (!isAlive) tracked.abandon();
    return isAlive || this.#messages > messages ? "alive" : "silent";
  }

  /** Why a tool can't be called over this transport; undefined when it can. */
  toolFault(definition: Json): string | undefined {
    if (!this.#sendsHeaders || !isJsonObject(definition)) return undefined;
    return markFault(definition["inputSchema"]);
  }

  /** The last lines of the server's stderr, redacted. */
  lastLines(): string[] {
    return this.#channel.connection.lastLines();
  }

  /** Calls a tool once; exactly one outcome, never throws. `server`: its name in errors, where it isn't the session's own. */
  callTool(
    call: Omit<ToolCall, "server"> & { server?: string },
  ): Promise<ToolCallOutcome> {
    const peer = {
      client: this.#client,
      channel: this.#channel,
      clock: this.#clock,
      inputs: this.#inputs,
      meta: this.#meta,
    };
    return callTool(peer, { server: this.server, ...call });
  }

  /** Told of everything that the server tells by itself. The listener must not throw. */
  set onNotification(listener: (method: string, params: Json | undefined) => void) {
    this.#channel.onNotification = listener;
  }

  /** Sends a request and gives its answer as it came, an error of the server's included. Throws TIMEOUT, DEVICE_DISCONNECTED, or DRIVER for one that was given up or can't be sent in this era. */
  async request({ method, params, limitMs, signal }: SessionRequest): Promise<RawAnswer> {
    const rounds = new InputRounds(this.#inputs);
    return await this.#limited(method, limitMs, async (ended) => {
      let more: JsonObject = {};
      for (;;) {
        const answer = await exchanged(
          this.server,
          this.#line,
          method,
          { ...params, ...this.#meta === undefined ? {} : { _meta: this.#meta }, ...more },
          ended,
        );
        const next = answer.kind === "result" ? rounds.next(answer.result) : undefined;
        if (next === undefined) return answer;
        if (next.pauseMs > 0) await sleep(this.#clock, next.pauseMs, ended);
        more = next.params;
      }
    }, signal);
  }

  /** All pages of a listing as one result; undefined where the method is no listing. Throws like {@link listTools}. */
  async listAll(method: string, limitMs: number, signal?: AbortSignal): Promise<Json | undefined> {
    const listing = LISTINGS.find((each) => each.method === method);
    if (listing === undefined) return undefined;
    const { what, key } = listing;
    const items = await this.#limited(
      method,
      limitMs,
      (ended) => list(this.server, what, key, (params) => this.#ask(method, params, ended)),
      signal,
    );
    if (what !== "tools") return { [what]: items };
    this.#learn(items);
    return { tools: items.filter((tool) => this.toolFault(tool) === undefined) };
  }

  #learn(tools: Json[]): void {
    if (!this.#sendsHeaders) return;
    for (const tool of tools) {
      if (!isJsonObject(tool) || typeof tool["name"] !== "string") continue;
      this.#schemas.set(tool["name"], tool["inputSchema"] ?? null);
    }
  }

  #headersOf(method: string, params: JsonObject): { [name: string]: string } {
    const { name, arguments: args = {} } = params;
    if (method !== "tools/call" || typeof name !== "string" || !isJsonObject(args)) return {};
    return argumentHeaders(this.#schemas.get(name), args);
  }

  /** A modern server tells of its log only where a request asks for it. */
  get #meta(): JsonObject | undefined {
    return this.era === "modern" && this.#hearsAll ? { [LOG_LEVEL_META]: LOG_LEVEL } : undefined;
  }

  get #line(): Line {
    return { client: this.#client, channel: this.#channel };
  }

  /** The server's tools as they are now. Throws TIMEOUT, DRIVER, DEVICE_DISCONNECTED. */
  async listTools(limitMs: number): Promise<Json[]> {
    const tools = await this.#limited("tools/list", limitMs, (signal) =>
      listTools(this.server, {
        client: this.#client,
        channel: this.#channel,
        capabilities: this.capabilities,
      }, signal));
    this.#learn(tools);
    return tools;
  }

  /** Resource definitions; empty for a server that announces none. Throws like {@link listTools}. */
  async listResources(limitMs: number): Promise<Json[]> {
    if (this.capabilities["resources"] === undefined) return [];
    return await this.#limited(
      "resources/list",
      limitMs,
      (signal) =>
        list(
          this.server,
          "resources",
          "uri",
          (params) => this.#ask("resources/list", params, signal),
        ),
    );
  }

  /** Result of `resources/read` as it came. Throws like {@link listTools}. */
  async readResource(uri: string, limitMs: number): Promise<Json> {
    const method = "resources/read";
    const answer = await this.request({ method, params: { uri }, limitMs });
    if (answer.kind === "rpc-error") throw refused(this.server, method, answer);
    if (isJsonObject(answer.result) && answer.result["resultType"] === "input_required") {
      throw new SysError(
        "DRIVER",
        `Server "${this.server}" asks for input before it gives "${uri}", which rnix can't give`,
      );
    }
    return answer.result;
  }

  /** Ends the session and its server. Never rejects, bounded, idempotent. */
  async close(): Promise<void> {
    await this.#client.close().catch(() => {});
    await this.#channel.connection.close().catch(() => {});
  }

  async #limited<T>(
    method: string,
    limitMs: number,
    work: (signal: AbortSignal) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const deadline = new Deadline(this.#clock, limitMs, signal);
    try {
      return await untilAbort(work(deadline.signal), deadline.signal);
    } catch (thrown) {
      if (!deadline.expired && deadline.signal.aborted) {
        throw new SysError("DRIVER", `The request ${method} to "${this.server}" was given up`);
      }
      if (!deadline.expired) throw thrown;
      throw new SysError(
        "TIMEOUT",
        `No answer from "${this.server}" to ${method} within ${formatDuration(limitMs)} (timeout)`,
      );
    } finally {
      deadline.release();
    }
  }

  #ask(method: string, params: JsonObject, signal: AbortSignal): Promise<Json> {
    return ask(this.server, this.#line, method, params, signal);
  }

  #followTools(): void {
    const tells = (what: string) => {
      const capability = this.capabilities[what];
      return isJsonObject(capability) && capability["listChanged"] === true;
    };
    if (tells("tools")) {
      this.#client.setNotificationHandler(TOOLS_CHANGED, () => this.onToolsChanged?.());
    }
    const wanted = {
      ...tells("tools") ? { toolsListChanged: true } : {},
      ...this.#hearsAll && tells("resources") ? { resourcesListChanged: true } : {},
      ...this.#hearsAll && tells("prompts") ? { promptsListChanged: true } : {},
    };
    if (this.era !== "modern" || Object.keys(wanted).length === 0) return;
    const stop = new AbortController();
    this.ended.then(() => stop.abort());
    const missed = () => this.onToolsChanged?.();
    subscribeToNews(this.#client, wanted, this.#clock, stop.signal, missed);
  }
}

type Line = Pick<Peer, "client" | "channel">;

async function listTools(
  server: string,
  line: Line & { capabilities?: JsonObject },
  signal: AbortSignal,
): Promise<Json[]> {
  const capabilities = line.capabilities ?? asObject(line.client.getServerCapabilities()) ?? {};
  if (capabilities["tools"] === undefined) return [];
  return await list(
    server,
    "tools",
    "name",
    (params) => ask(server, line, "tools/list", params, signal),
  );
}

function list(
  server: string,
  what: string,
  key: string,
  fetch: (params: JsonObject) => Promise<Json>,
): Promise<Json[]> {
  const fetchPage = async (cursor: string | undefined): Promise<Page> =>
    pageOf(await fetch(cursor === undefined ? {} : { cursor }), what);
  return listAll({ server, what, key, fetchPage });
}

/** The answer to a request. */
async function exchanged(
  server: string,
  line: Line,
  method: string,
  params: JsonObject,
  signal: AbortSignal,
): Promise<RawAnswer> {
  const stop = new AbortController();
  const tracked = sendRequest(line.client, line.channel, method, params, { signal: stop.signal });
  const answer = await untilAbort(
    tracked.sent.then(() => tracked.answer),
    signal,
  ).catch((thrown) => {
    tracked.abandon();
    stop.abort(new Error("The time is up"));
    if (!(thrown instanceof SendError)) throw thrown;
    const { code, hint } = thrown.cause instanceof SysError
      ? thrown.cause
      : { code: "DEVICE_DISCONNECTED" as const, hint: undefined };
    throw new SysError(code, thrown.message, { cause: thrown, hint });
  });
  if (answer === undefined) {
    const lost = tracked.lostBecause();
    const why = lost ?? line.channel.connection.ended ?? "the connection ended";
    const what = lost === undefined ? "Server" : "The answer of server";
    throw new SysError(
      "DEVICE_DISCONNECTED",
      `${what} "${server}" was lost during ${method}: ${why}`,
    );
  }
  return answer;
}

/** The result of a request; a method the server doesn't know gives an empty one. */
async function ask(
  server: string,
  line: Line,
  method: string,
  params: JsonObject,
  signal: AbortSignal,
): Promise<Json> {
  const answer = await exchanged(server, line, method, params, signal);
  if (answer.kind === "result") return answer.result;
  if (answer.code === METHOD_NOT_FOUND) return {};
  throw refused(server, method, answer);
}

function refused(
  server: string,
  method: string,
  { code, message }: Extract<RawAnswer, { kind: "rpc-error" }>,
): SysError {
  return new SysError("DRIVER", `Server "${server}" refused ${method}: ${message} (${code})`);
}

/** What the SDK has parsed from JSON is JSON still. */
function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null ? value as JsonObject : undefined;
}
