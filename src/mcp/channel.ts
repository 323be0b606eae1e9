/**
 * Between the connection and the SDK: sees every message, so that nothing an answer says is lost.
 *
 * The SDK drops answers that come after a timeout or a cancellation and rewrites or refuses others; rnix must know them all. The channel keeps the raw answer of each tracked request, sends requests of its own (the era probe), and lends the connection to one SDK client after another. The server's own requests are answered here, so that a client which isn't there yet, or doesn't want them, can't leave one open.
 */
import type { JSONRPCMessage, Transport, TransportSendOptions } from "@modelcontextprotocol/client";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import { SendError, type ServerConnection } from "./connection.ts";
import { ServerRequests } from "./server_requests.ts";

/** An answer as it came. */
export type RawAnswer =
  | { kind: "result"; result: Json }
  | { kind: "rpc-error"; code: number; message: string; data?: Json };

/** A request on its way. */
export interface Tracked {
  /** Rejects with what `send` of the connection rejects with, or when nothing was sent at all. */
  readonly sent: Promise<void>;
  /** The answer, whenever it comes; undefined once it can't come any more. Never rejects. */
  readonly answer: Promise<RawAnswer | undefined>;
  /** Why no answer can come any more, where only this request is concerned: a clause. */
  lostBecause(): string | undefined;
  /** The caller waits no longer: an answer goes only to `answer`, not to the SDK. */
  abandon(): void;
}

interface Pending {
  resolve(answer: RawAnswer | undefined): void;
  lostBecause: string | undefined;
  abandoned: boolean;
  /** Sent past the SDK, which must not see its answer. */
  isOwn: boolean;
}

/** Abandoned requests whose answers are still listened for; the oldest gives way. */
const ABANDONED_MAX = 1000;
/** JSON-RPC code by which the SDK is told that an answer is lost. */
const ANSWER_LOST = -32000;

export class Channel {
  readonly connection: ServerConnection;
  readonly #requests: ServerRequests;
  readonly #pending = new Map<string | number, Pending>();
  readonly #abandoned: (string | number)[] = [];
  /** Requests of the SDK's own, whose answers only it takes. */
  readonly #untracked = new Set<string | number>();
  /** Requests that the connection is still at work on. */
  readonly #sending = new Set<string | number>();
  #lent: LentTransport | undefined;
  #capture: ((id: string | number, sent: Promise<void>) => void) | undefined;
  /** Whether the request that is being tracked right now may be made again by its caller. */
  #repeatable = false;
  #probes = 0;
  #closed = false;
  /** Called once when the connection has ended. */
  onEnd: (() => void) | undefined;
  /** Hears every notification, also those that a client takes. Must not throw. */
  onNotification: ((method: string, params: Json | undefined) => void) | undefined;
  /** Hears that a message came, of whatever kind, before anybody takes it. Must not throw. */
  onTraffic: (() => void) | undefined;

  /** Headers that go with a message besides what its transport adds. */
  headersOf: ((method: string, params: JsonObject) => { [name: string]: string }) | undefined;

  constructor(connection: ServerConnection, requests: ServerRequests = new ServerRequests()) {
    this.connection = connection;
    this.#requests = requests;
    connection.onmessage = (message) => this.#take(message);
    connection.onclose = () => this.#end();
    connection.onlost = (id, why) => this.#lose(id, why);
  }

  /** A transport for one SDK client. Its `close` only detaches it; lending again detaches the one before. */
  lend(): Transport {
    this.#lent = new LentTransport(
      this.connection,
      (message, options) => this.#send(message, options),
    );
    return this.#lent;
  }

  /** Requests on their way that somebody waits for, those sent past the SDK aside. */
  get open(): number {
    return this.#count((pending) => !pending.abandoned);
  }

  /** Requests that nobody waits for any more, though the server may be at work on them. */
  get abandoned(): number {
    return this.#count((pending) => pending.abandoned);
  }

  /** Sends a request past the SDK. */
  request(method: string, params: JsonObject): Tracked {
    const id = `rnix-${++this.#probes}`;
    return this.#track(() => this.#send({ jsonrpc: "2.0", id, method, params }), true);
  }

  /** Follows the one request that `send` makes before it returns. `repeatable` goes to the connection with it. */
  track(send: () => Promise<unknown>, { repeatable = false } = {}): Tracked {
    this.#repeatable = repeatable;
    try {
      return this.#track(send, false);
    } finally {
      this.#repeatable = false;
    }
  }

  #count(counts: (pending: Pending) => boolean): number {
    let count = 0;
    for (const pending of this.#pending.values()) if (!pending.isOwn && counts(pending)) count += 1;
    return count;
  }

  #track(send: () => Promise<unknown>, isOwn: boolean): Tracked {
    let id: string | number | undefined;
    let sent: Promise<void> | undefined;
    this.#capture = (capturedId, capturedSent) => {
      id = capturedId;
      sent = capturedSent;
    };
    const outcome = send();
    this.#capture = undefined;
    outcome.catch(() => {});
    if (id === undefined || sent === undefined) {
      const refused = outcome.catch((thrown) => thrown).then((thrown) => {
        const why = thrown instanceof Error ? thrown.message : "The request was not sent";
        throw new SendError(why, true, thrown);
      });
      refused.catch(() => {});
      return {
        sent: refused,
        answer: Promise.resolve(undefined),
        lostBecause: () => undefined,
        abandon: () => {},
      };
    }
    const tracked = this.#follow(id, sent, isOwn);
    sent.catch((thrown) => {
      if (thrown instanceof SendError && thrown.nothingSent) this.#forget(id);
    });
    return tracked;
  }

  #follow(id: string | number, sent: Promise<void>, isOwn: boolean): Tracked {
    const { promise, resolve } = Promise.withResolvers<RawAnswer | undefined>();
    const pending: Pending = { resolve, lostBecause: undefined, abandoned: false, isOwn };
    if (this.#closed) resolve(undefined);
    else this.#pending.set(id, pending);
    return {
      sent,
      answer: promise,
      lostBecause: () => pending.lostBecause,
      abandon: () => {
        if (pending.abandoned || this.#pending.get(id) !== pending) return;
        pending.abandoned = true;
        this.#abandoned.push(id);
        if (this.#abandoned.length > ABANDONED_MAX) this.#forget(this.#abandoned.shift());
      },
    };
  }

  #forget(id: string | number | undefined): void {
    if (id === undefined) return;
    this.#pending.get(id)?.resolve(undefined);
    this.#pending.delete(id);
  }

  /** No answer can come any more to this one request: whoever waits for it is told now. */
  #lose(id: string | number, why: string): void {
    const pending = this.#pending.get(id);
    const isSdks = this.#untracked.delete(id) || (pending !== undefined && !pending.isOwn);
    if (pending !== undefined) pending.lostBecause = why;
    if (pending?.abandoned) this.#abandoned.splice(this.#abandoned.indexOf(id), 1);
    this.#forget(id);
    // While it is still being sent, the failure to send says more.
    if (!isSdks || pending?.abandoned || this.#sending.has(id)) return;
    this.#lent?.onmessage?.({
      jsonrpc: "2.0",
      id,
      error: { code: ANSWER_LOST, message: `The answer is lost: ${why}` },
    });
  }

  #send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const headers = "method" in message
      ? this.headersOf?.(message.method, asObject(message.params))
      : undefined;
    const sent = this.connection.send(message, {
      ...options,
      ...(headers === undefined ? {} : { headers: { ...options?.headers, ...headers } }),
      ...(this.#repeatable ? { repeatable: true } : {}),
    });
    if ("method" in message && "id" in message && message.id !== undefined) {
      const { id } = message;
      this.#sending.add(id);
      const isSent = () => this.#sending.delete(id);
      sent.then(isSent, isSent);
      if (this.#capture === undefined) this.#untracked.add(message.id);
      else this.#capture(message.id, sent);
    }
    return sent;
  }

  #take(message: JSONRPCMessage): void {
    this.onTraffic?.();
    const answer = answerOf(message);
    const id = answer === undefined ? undefined : this.#sentId(message);
    const pending = id === undefined ? undefined : this.#pending.get(id);
    if (answer !== undefined && id !== undefined && pending !== undefined) {
      this.#pending.delete(id);
      pending.resolve(answer);
      if (pending.abandoned) {
        this.#abandoned.splice(this.#abandoned.indexOf(id), 1);
        return;
      }
      if (pending.isOwn) return;
    } else if (answer !== undefined && (id === undefined || !this.#untracked.delete(id))) {
      return this.connection.unwanted?.(
        "An answer came that no request waited for; it was dropped",
      );
    } else if (answer === undefined && !this.#isProgress(message)) this.connection.unwanted?.();
    if (this.#isAnsweredHere(message)) return;
    if (answer === undefined) this.#tell(message);
    this.#lent?.onmessage?.(message);
  }

  #tell(message: JSONRPCMessage): void {
    if (!("method" in message)) return;
    const params = message.params === undefined ? undefined : asJson(message.params);
    this.onNotification?.(message.method, params);
  }

  /** The id a request was sent with: some servers give numbers back as text. */
  #sentId(message: JSONRPCMessage): string | number | undefined {
    if (!("id" in message) || message.id === undefined) return undefined;
    if (this.#pending.has(message.id) || this.#untracked.has(message.id)) return message.id;
    const { id } = message;
    return typeof id === "string" && /^(0|[1-9]\d{0,14})$/.test(id) ? Number(id) : undefined;
  }

  /** Whether it tells of a request that is waited for. */
  #isProgress(message: JSONRPCMessage): boolean {
    if (!("method" in message) || message.method !== "notifications/progress") return false;
    const token = message.params?.["progressToken"];
    return (typeof token === "string" || typeof token === "number") && this.#pending.has(token);
  }

  /** Whether the message was a request, which has its answer now. */
  #isAnsweredHere(message: JSONRPCMessage): boolean {
    if (!("method" in message) || !("id" in message) || message.id === undefined) return false;
    const params = message.params === undefined ? undefined : asJson(message.params);
    const answer = this.#requests.answer(message.method, params);
    this.#send({ jsonrpc: "2.0", id: message.id, ...answer }).catch(() => {});
    return true;
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const id of [...this.#pending.keys()]) this.#forget(id);
    this.#lent?.onclose?.();
    this.onEnd?.();
  }
}

/** What an SDK client gets in place of the connection. */
class LentTransport implements Transport {
  onmessage: Transport["onmessage"];
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  readonly #connection: ServerConnection;
  readonly #send: (message: JSONRPCMessage, options?: TransportSendOptions) => Promise<void>;

  constructor(connection: ServerConnection, send: LentTransport["send"]) {
    this.#connection = connection;
    this.#send = send;
  }

  /** Whether a request is cancelled by ending its own stream (2026-07-28 over HTTP). */
  get hasPerRequestStream(): boolean {
    return this.#connection.hasPerRequestStream ?? false;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    return this.#send(message, options);
  }

  setProtocolVersion(version: string): void {
    this.#connection.setProtocolVersion?.(version);
  }

  close(): Promise<void> {
    this.onmessage = undefined;
    this.onclose?.();
    this.onclose = undefined;
    return Promise.resolve();
  }
}

function answerOf(message: JSONRPCMessage): RawAnswer | undefined {
  if ("method" in message) return undefined;
  if ("error" in message) {
    const error = asJson(message.error);
    const { code, message: text, data } = isJsonObject(error) ? error : {};
    return {
      kind: "rpc-error",
      code: typeof code === "number" ? code : 0,
      message: typeof text === "string" ? text : "no message",
      ...(data === undefined ? {} : { data }),
    };
  }
  return "result" in message ? { kind: "result", result: asJson(message.result) } : undefined;
}

/** What the SDK sends is JSON. */
function asObject(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? value as JsonObject : {};
}

/** What came out of `JSON.parse` is JSON; only the type doesn't know. */
function asJson(value: unknown): Json {
  return value as Json;
}
