/**
 * A scenario spoken over HTTP: Streamable HTTP of every version, or the HTTP+SSE of 2024-11-05.
 *
 * In a test: `ScriptedHttpServer.start(scenario)`; it records what it receives, and `stop` and `restart` model an outage. As a process (for servers that block): `deno run -A scripted_http_server.ts '<scenario as JSON>'|@FILE` prints its address.
 */
import { type WireReply, type WireRequest, WireServer } from "./http_wire.ts";
import { type Fields, isFields, pause, type Value } from "./rpc_stdio.ts";
import { type Exchange, givenScenario, ScenarioPlayer } from "./scripted_player.ts";
import type { HttpScenario, HttpStep, Scenario, Step } from "./scripted_scenario.ts";

/** One request as it came. */
export interface Received extends WireRequest {
  /** The message in the body of a POST. */
  message: Fields | undefined;
  atMs: number;
  /** The client went before the answer was there. */
  abandoned: boolean;
}

const SESSION = "mcp-session-id";
const MESSAGES_PATH = "/messages";
const EVENT_STREAM = { "content-type": "text/event-stream", "cache-control": "no-cache" };
const JSON_TYPE = { "content-type": "application/json" };

export class ScriptedHttpServer {
  /** Every request since the first start, in order. */
  readonly received: Received[] = [];
  readonly #wire: WireServer;
  readonly #sessions = new Set<string>();
  #player: ScenarioPlayer;
  #port = 0;
  /** The stream of the last GET, and the answers that wait for one. */
  #stream: WireReply | undefined;
  #kept: Fields[] = [];
  #onExit: ((code: number) => void) | undefined;

  private constructor(scenario: Scenario) {
    this.#player = new ScenarioPlayer(scenario);
    this.#wire = new WireServer((request, reply) => this.#handle(request, reply));
  }

  static async start(
    scenario: Scenario,
    options: { port?: number; onExit?: (code: number) => void } = {},
  ): Promise<ScriptedHttpServer> {
    const server = new ScriptedHttpServer(scenario);
    server.#onExit = options.onExit;
    server.#port = await server.#wire.start(options.port ?? 0);
    return server;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get url(): string {
    return `${this.origin}/mcp`;
  }

  get http(): HttpScenario {
    return this.#player.scenario.http ?? {};
  }

  get modern(): boolean {
    return this.scenario.era === "modern";
  }

  get scenario(): Scenario {
    return this.#player.scenario;
  }

  /** The JSON of a message. */
  text(message: Fields, space?: number): string {
    const { idsAsText, batches } = this.scenario;
    const { id } = message;
    const shaped = idsAsText && typeof id === "number" ? { ...message, id: String(id) } : message;
    const whole = { jsonrpc: "2.0", ...shaped };
    return JSON.stringify(batches ? [whole] : whole, undefined, space);
  }

  /** A message as an event. */
  event(message: Fields): string {
    if (!this.http.dataLines) return `event: message\ndata: ${this.text(message)}\n\n`;
    const lines = this.text(message, 1).split("\n").map((line) => `data: ${line}\n`);
    return `event: message\n${lines.join("")}\n`;
  }

  /** Text of an event stream, in the scenario's shape. */
  async put(reply: WireReply, text: string): Promise<void> {
    const { crlf, chunkBytes } = this.scenario;
    const bytes = new TextEncoder().encode(crlf ? text.replaceAll("\n", "\r\n") : text);
    const size = chunkBytes ?? Math.max(bytes.length, 1);
    for (let at = 0; at < bytes.length; at += size) {
      await reply.chunk(bytes.subarray(at, at + size));
    }
  }

  /** How many requests came with this verb, or with this method of JSON-RPC. */
  count(what: string): number {
    return this.of(what).length;
  }

  /** The requests with this verb, or this method of JSON-RPC. */
  of(what: string): Received[] {
    return this.received.filter(({ verb, message }) =>
      verb === what || message?.["method"] === what
    );
  }

  /** The server is down: its connections break, its port refuses. Idempotent. */
  async stop(): Promise<void> {
    this.#stream = undefined;
    await this.#wire.stop();
  }

  /** Up again on the same port, a new life: sessions and uses are forgotten. */
  async restart(scenario: Scenario = this.#player.scenario): Promise<void> {
    await this.stop();
    this.#sessions.clear();
    this.#kept = [];
    this.#player = new ScenarioPlayer(scenario);
    await this.#wire.start(this.#port);
  }

  /** A message on the stream of the last GET. */
  async push(message: Fields): Promise<void> {
    if (this.#stream !== undefined) await this.put(this.#stream, this.event(message));
  }

  /** Ends the stream of the last GET. */
  closeStream(): void {
    this.#stream?.end();
  }

  /** Forgets all sessions. */
  forget(): void {
    this.#sessions.clear();
  }

  newSession(): string {
    const id = crypto.randomUUID();
    this.#sessions.add(id);
    return id;
  }

  /** What the session rules say: a status that refuses, or undefined. */
  refusal(headers: WireRequest["headers"]): number | undefined {
    if (this.modern || this.http.session === false) return undefined;
    const id = headers[SESSION];
    if (id === undefined) return 400;
    return this.#sessions.has(id) ? undefined : 404;
  }

  /** An answer for the next stream that the client opens. */
  keep(answer: Fields): void {
    this.#kept.push(answer);
  }

  async exit(code: number): Promise<void> {
    await this.stop();
    this.#onExit?.(code);
  }

  async #handle(request: WireRequest, reply: WireReply): Promise<void> {
    const message = request.verb === "POST" ? messageOf(request.body) : undefined;
    const received: Received = { ...request, message, atMs: performance.now(), abandoned: false };
    this.received.push(received);
    reply.onabandoned = () => received.abandoned = true;
    if (request.verb === "GET") return await this.#get(request, reply);
    if (request.verb === "DELETE") return await this.#delete(request, reply);
    if (message === undefined) return reply.whole(400, JSON_TYPE, "{}");
    const legacy = this.http.kind === "legacy";
    if (legacy && !request.target.startsWith(MESSAGES_PATH)) {
      const { status = this.http.postStatus ?? 405 } = this.#player.verbStep("POST")?.http ?? {};
      return reply.whole(status, {}, "");
    }
    const exchange = new HttpExchange(this, request, message, reply, legacy);
    await this.#player.take(message, exchange);
    exchange.finish();
  }

  async #get(request: WireRequest, reply: WireReply): Promise<void> {
    const http = this.#player.verbStep("GET")?.http ?? {};
    const legacy = this.http.kind === "legacy";
    const refusal = legacy ? undefined : this.refusal(request.headers);
    if (http.forget) this.forget();
    if (await refused(http, reply)) return;
    if (refusal !== undefined) return reply.whole(refusal, {}, "");
    if (!legacy && !this.http.stream && this.#kept.length === 0) return reply.whole(405, {}, "");
    reply.begin(200, { ...EVENT_STREAM, ...http.headers });
    this.#stream = reply;
    if (legacy) {
      const endpoint = this.http.endpoint ?? `${MESSAGES_PATH}?session=${this.newSession()}`;
      await reply.chunk(`event: endpoint\ndata: ${endpoint}\n\n`);
    }
    for (const event of http.events ?? []) await reply.chunk(`${event}\n\n`);
    for (const answer of this.#kept.splice(0)) await this.put(reply, this.event(answer));
    if (http.endAfterMs === undefined) return;
    await pause(http.endAfterMs);
    reply.end();
  }

  async #delete(request: WireRequest, reply: WireReply): Promise<void> {
    if (await refused(this.#player.verbStep("DELETE")?.http ?? {}, reply)) return;
    const known = this.#sessions.delete(request.headers[SESSION] ?? "");
    reply.whole(known ? 200 : 404, {}, "");
  }
}

/** The way back for one POST. */
class HttpExchange implements Exchange {
  readonly #server: ScriptedHttpServer;
  readonly #request: WireRequest;
  readonly #message: Fields;
  readonly #reply: WireReply;
  readonly #legacy: boolean;
  #step: Step = {};
  #held = false;

  constructor(
    server: ScriptedHttpServer,
    request: WireRequest,
    message: Fields,
    reply: WireReply,
    legacy: boolean,
  ) {
    this.#server = server;
    this.#request = request;
    this.#message = message;
    this.#reply = reply;
    this.#legacy = legacy;
  }

  get #http(): HttpStep {
    return this.#step.http ?? {};
  }

  admit(step: Step): "over" | "goes on" {
    if (step.http?.forget) this.#server.forget();
    const { method } = this.#message;
    if (this.#legacy || method === "initialize" || method === "server/discover") return "goes on";
    const status = this.#server.refusal(this.#request.headers);
    if (status === undefined) return "goes on";
    const error = { code: -32001, message: status === 404 ? "Session not found" : "No session" };
    this.#reply.whole(status, JSON_TYPE, JSON.stringify({ jsonrpc: "2.0", id: null, error }));
    return "over";
  }

  async perform(step: Step): Promise<"over" | "goes on"> {
    this.#step = step;
    const body = step.error === undefined
      ? undefined
      : JSON.stringify({ jsonrpc: "2.0", id: this.#message["id"] ?? null, error: step.error });
    if (await refused({ ...(body === undefined ? {} : { body }), ...step.http }, this.#reply)) {
      return "over";
    }
    if (this.#legacy) this.#reply.whole(202, {}, "Accepted");
    for (const event of this.#http.events ?? []) await this.#put(`${event}\n\n`);
    return "goes on";
  }

  async send(message: Fields): Promise<void> {
    const isAnswer = !("method" in message) && message["id"] === this.#message["id"];
    const { cut, form = this.#server.http.form ?? "json" } = this.#http;
    if (isAnswer && cut !== undefined) return this.#cut(message, cut);
    if (this.#legacy) return await this.#server.push(message);
    if (!isAnswer || form === "sse" || this.#reply.state === "streaming") {
      return await this.#put(this.#server.event(message));
    }
    this.#reply.whole(200, this.#headers(JSON_TYPE), this.#server.text(message));
  }

  hold(): void {
    this.#held = true;
  }

  async exit(code: number): Promise<void> {
    await this.#server.exit(code);
  }

  /** All has been said: the stream ends, a message that needs no answer is accepted; silence goes on. */
  finish(): void {
    const goesOn = this.#held || this.#step.silent;
    if (this.#reply.state === "streaming" && !goesOn) this.#reply.end();
    if (this.#message["method"] === undefined || this.#message["id"] === undefined) {
      this.#reply.whole(202, {}, "");
    }
    if (this.#http.closeAfter) this.#reply.hangUp();
  }

  #cut(answer: Fields, how: "end" | "reset"): void {
    if (this.#http.answerOnGet) this.#server.keep(answer);
    if (this.#legacy) return this.#server.closeStream();
    this.#reply.begin(200, this.#headers(EVENT_STREAM));
    if (how === "end") this.#reply.end();
    else this.#reply.break("reset");
  }

  async #put(text: string): Promise<void> {
    this.#reply.begin(200, this.#headers(EVENT_STREAM));
    await this.#server.put(this.#reply, text);
  }

  #headers(form: { [name: string]: string }): { [name: string]: string } {
    const { modern, http } = this.#server;
    const begins = this.#message["method"] === "initialize" && !modern && http.session !== false;
    return {
      ...form,
      ...(begins ? { [SESSION]: this.#server.newSession() } : {}),
      ...this.#http.headers,
    };
  }
}

/** What a step does in place of any answer; whether it did. */
async function refused(http: HttpStep, reply: WireReply): Promise<boolean> {
  if (http.headersAfterMs !== undefined) await pause(http.headersAfterMs);
  if (http.socket !== undefined) {
    reply.break(http.socket);
    return true;
  }
  if (http.endlessBytes !== undefined) {
    reply.begin(http.status ?? 200, { ...JSON_TYPE, ...http.headers });
    const piece = " ".repeat(http.endlessBytes);
    while (reply.state === "streaming") {
      await reply.chunk(piece);
      await pause(1);
    }
    return true;
  }
  if (http.status === undefined) return false;
  const type = http.body?.startsWith("{") ? JSON_TYPE : {};
  reply.whole(http.status, { ...type, ...http.headers }, http.body ?? "");
  return true;
}

function messageOf(body: string): Fields | undefined {
  try {
    const value: Value = JSON.parse(body);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

if (import.meta.main) {
  const server = await ScriptedHttpServer.start(givenScenario(Deno.args[0]), {
    onExit: (code) => Deno.exit(code),
  });
  console.log(server.url);
}
