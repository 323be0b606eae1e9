/**
 * Streamable HTTP: every message is a POST, its answer JSON or a stream of events; what the server says unasked comes on a GET.
 *
 * Written here, though the SDK has such a transport: that one keeps a single timer and a single `retry` for all streams, reopens the GET without measure, gives it up for good after two failures, and says neither when an answer is lost nor whether a message left.
 *
 * A request is a flight: sent → answered, on whatever stream the answer comes, or lost. A stream that ends early is resumed where the server gave event ids, else the flight is lost at once; the connection goes on. A flight that nobody waits for any more isn't resumed and has its stream ended in a while.
 * The connection ends when the server can't be reached, asks for credentials, or doesn't know the session; a status, a reset or a broken stream concerns one message. The session's id is taken from `initialize` and never kept beyond this connection.
 */
import type { JSONRPCMessage, TransportSendOptions } from "@modelcontextprotocol/client";
import { sleep, within } from "../base/clock.ts";
import type { SendOptions } from "./connection.ts";
import { MESSAGE_BYTES_MAX } from "./framing.ts";
import { Pace } from "./flood.ts";
import { bodyHeaders } from "./http_headers.ts";
import {
  boundedBody,
  HttpConnection,
  type HttpDeps,
  mediaTypeOf,
  type Requester,
  textOf,
} from "./http_connection.ts";
import { HttpSendError, refusalError, refusalOf, refusalText } from "./http_refusal.ts";
import type { HttpLaunch } from "./launch.ts";
import { messagesOf } from "./message_text.ts";

/** Of a response with an error status so much is read, for so long. */
const ERROR_BYTES_MAX = 64 * 1024;
const ERROR_MS_MAX = 3_000;
/** Of a response's media type so much is told. */
const MEDIA_TYPE_CHARS_MAX = 60;
/** A stream stays open this long after its answer, for what the server says last. */
const LINGER_MS = 5_000;
/** A late answer is listened for this long after its request was given up. */
const LATE_MS_MAX = 10 * 60_000;
/** Resumptions in a row that brought no message. */
const RESUMES_MAX = 8;
const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 60_000;
/** First pause before the GET is opened again; it doubles until a GET has lived this long. */
const LISTEN_PAUSE_MS = 1_000;
const LISTEN_HEALTHY_MS = 60_000;

/** A request that is waited for. */
interface Flight {
  readonly id: string | number;
  readonly method: string;
  readonly stop: AbortController;
  answered: boolean;
  /** Nobody waits for the answer, though it may still come. */
  given: boolean;
  lost: boolean;
  onStreamEnd: (() => void) | undefined;
  cancelTimer: (() => void) | undefined;
}

/** Where a stream of events stopped. */
interface StreamEnd {
  lastEventId: string | undefined;
  retryMs: number | undefined;
  messages: number;
  why: string | undefined;
}

export class HttpTransport extends HttpConnection {
  /** A request of 2026-07-28 is cancelled by ending its stream. */
  readonly hasPerRequestStream = true;
  readonly #url: URL;
  readonly #flights = new Map<string | number, Flight>();
  #session: string | undefined;
  #version: string | undefined;
  #listening = false;

  constructor(launch: HttpLaunch, client: Requester, deps: HttpDeps) {
    super(launch, client, deps);
    this.#url = new URL(launch.url);
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  setProtocolVersion(version: string): void {
    this.#version = version;
  }

  async send(message: JSONRPCMessage, options: SendOptions = {}): Promise<void> {
    if (this.ended !== undefined) throw this.gone();
    const flight = this.#takeOff(message, options);
    const what = "method" in message ? message.method : "an answer";
    const signal = flight?.stop.signal ?? this.stopped;
    try {
      const session = isInitialize(message) ? undefined : this.#session;
      let response: Response;
      try {
        response = await this.request("POST", this.#url, {
          headers: this.#headersFor(message, session, options),
          message,
          repeatable: options.repeatable === true,
          signal,
        });
      } catch (thrown) {
        if (flight?.given && !this.stopped.aborted) return this.#lose(flight, "it was given up");
        throw this.unsent(thrown, what);
      }
      if (!response.ok) await this.#refuse(response, what, flight, session);
      else if (flight !== undefined) await this.#takeAnswer(response, flight);
      else this.#accepted(response, message);
    } catch (thrown) {
      const error = this.sendError(thrown, what);
      if (flight !== undefined) this.#lose(flight, error.message);
      throw error;
    }
  }

  protected override seen(message: JSONRPCMessage): void {
    if ("method" in message || !("id" in message) || message.id === undefined) return;
    const flight = this.#flights.get(message.id) ?? this.#flights.get(Number(message.id));
    if (flight === undefined || flight.answered) return;
    flight.answered = true;
    this.#endIn(flight, LINGER_MS);
  }

  protected override async goodbye(signal: AbortSignal): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session === undefined || this.endedCode !== undefined) return;
    const response = await this.request("DELETE", this.#url, {
      headers: this.#sessionHeaders(session),
      signal,
    });
    await response.body?.cancel();
  }

  #takeOff(message: JSONRPCMessage, options: TransportSendOptions): Flight | undefined {
    if (!("method" in message)) return undefined;
    if (!("id" in message) || message.id === undefined) {
      if (message.method === "notifications/cancelled") this.#giveUp(message.params?.["requestId"]);
      return undefined;
    }
    const flight: Flight = {
      id: message.id,
      method: message.method,
      stop: new AbortController(),
      answered: false,
      given: false,
      lost: false,
      onStreamEnd: options.onRequestStreamEnd,
      cancelTimer: undefined,
    };
    const land = () => flight.stop.abort(this.stopped.reason);
    const giveUp = () => {
      flight.given = true;
      flight.stop.abort(new Error("It was given up"));
    };
    this.stopped.addEventListener("abort", land, { once: true });
    options.requestSignal?.addEventListener("abort", giveUp, { once: true });
    flight.stop.signal.addEventListener("abort", () => {
      flight.cancelTimer?.();
      this.stopped.removeEventListener("abort", land);
      options.requestSignal?.removeEventListener("abort", giveUp);
    }, { once: true });
    if (options.requestSignal?.aborted) giveUp();
    this.#flights.set(flight.id, flight);
    return flight;
  }

  /** The answer is of no use any more; if it comes all the same, it is late. */
  #giveUp(id: unknown): void {
    if (typeof id !== "string" && typeof id !== "number") return;
    const flight = this.#flights.get(id);
    if (flight === undefined) return;
    flight.given = true;
    if (!flight.answered) this.#endIn(flight, LATE_MS_MAX);
  }

  #endIn(flight: Flight, ms: number): void {
    flight.cancelTimer?.();
    if (flight.stop.signal.aborted) return;
    flight.cancelTimer = this.clock.after(
      ms,
      () => flight.stop.abort(new Error("It was given up")),
    );
  }

  #land(flight: Flight): void {
    this.#flights.delete(flight.id);
    flight.stop.abort(new Error("It is over"));
  }

  /** No answer can come any more. */
  #lose(flight: Flight, why: string): void {
    if (!flight.answered && !flight.lost) {
      flight.lost = true;
      flight.onStreamEnd?.();
      if (!this.stopped.aborted) this.onlost?.(flight.id, why);
    }
    this.#land(flight);
  }

  #sessionHeaders(session: string | undefined): { [name: string]: string } {
    return {
      ...(session === undefined ? {} : { "mcp-session-id": session }),
      ...(this.#version === undefined ? {} : { "mcp-protocol-version": this.#version }),
    };
  }

  #headersFor(
    message: JSONRPCMessage,
    session: string | undefined,
    options: TransportSendOptions,
  ): { [name: string]: string } {
    return {
      ...options.headers,
      ...this.#sessionHeaders(session),
      ...("method" in message && "id" in message
        ? bodyHeaders(message.method, message.params)
        : {}),
      "accept": "application/json, text/event-stream",
      "content-type": "application/json",
    };
  }

  /** A message without an answer has arrived. */
  #accepted(response: Response, message: JSONRPCMessage): void {
    response.body?.cancel().catch(() => {});
    if ("method" in message && message.method === "notifications/initialized") this.#listen();
  }

  async #takeAnswer(response: Response, flight: Flight): Promise<void> {
    if (flight.method === "initialize") this.#takeSession(response);
    const type = mediaTypeOf(response);
    if (type === "text/event-stream") return this.own(this.#follow(response, flight));
    const kind = type === "" ? "" : ` (${type.slice(0, MEDIA_TYPE_CHARS_MAX)})`;
    let why = `HTTP ${response.status}${kind} without an answer`;
    if (type === "application/json") {
      try {
        this.handOn(await boundedBody(response, MESSAGE_BYTES_MAX), new Pace(this.clock));
        if (flight.answered) return this.#land(flight);
      } catch (thrown) {
        if (flight.given && !this.stopped.aborted) return this.#lose(flight, "it was given up");
        why = this.ended ?? `its answer broke off: ${textOf(thrown)}`;
      }
    } else await response.body?.cancel();
    throw new HttpSendError(`Server "${this.server}" gave no answer to ${flight.method}: ${why}`, {
      nothingSent: false,
      tellsLegacy: true,
    });
  }

  #takeSession(response: Response): void {
    const session = response.headers.get("mcp-session-id") ?? "";
    this.#session = /^[\x21-\x7e]+$/.test(session) ? session : undefined;
    this.note(
      `Connected over Streamable HTTP${this.#session === undefined ? "" : ", with a session"}`,
    );
  }

  /** Ends in a rejection, unless the body is the answer to the very request, or nothing was asked. */
  async #refuse(
    response: Response,
    what: string,
    flight: Flight | undefined,
    session: string | undefined,
  ): Promise<void> {
    const body = await this.#errorBody(response);
    const answers = messagesOf(body).some((message) =>
      flight !== undefined && "error" in message && message.id === flight.id
    );
    if (answers && flight !== undefined) {
      this.note(`HTTP ${response.status} to ${what}, with an error of JSON-RPC`);
      this.handOn(body, new Pace(this.clock));
      return this.#land(flight);
    }
    const text = new TextDecoder().decode(body);
    const refusal = refusalOf(response, text, {
      server: this.server,
      hadSession: session !== undefined,
      redact: (words) => this.redacted(words),
    });
    this.note(`${refusalText(refusal)} to ${what}`);
    if (refusal.sessionGone) {
      this.finish(`its session is over: ${refusalText(refusal)}`, { code: refusal.code }, true);
    } else if (refusal.status === 401) {
      this.finish(`it answered ${refusalText(refusal)}`, refusal, true);
    } else if (flight === undefined) {
      if (what === "notifications/initialized") this.#listen();
      return;
    }
    throw refusalError(refusal, this.server, what);
  }

  async #errorBody(response: Response): Promise<Uint8Array> {
    const none = new Uint8Array(0);
    const body = boundedBody(response, ERROR_BYTES_MAX).catch(() => none);
    return await within(this.clock, ERROR_MS_MAX, body, () => none);
  }

  /** Follows the stream of a request's answer, and what resumes it, to the answer or its loss. */
  async #follow(first: Response, flight: Flight): Promise<void> {
    const { signal } = flight.stop;
    let end = await this.#read(first, signal);
    let why = end.why ?? "the stream of its answer ended without it";
    for (let idle = 0; !flight.answered && !flight.given && !signal.aborted;) {
      if (end.lastEventId === undefined || idle >= RESUMES_MAX) break;
      const pauseMs = Math.max(
        Math.min(end.retryMs ?? LISTEN_PAUSE_MS, PAUSE_MS_MAX),
        idle === 0 ? 0 : PAUSE_MS_MIN * 2 ** idle,
      );
      await sleep(this.clock, pauseMs, signal).catch(() => {});
      if (flight.answered || signal.aborted) break;
      const response = await this.#openStream(end, signal);
      if (response === "none") {
        why = `${why}, and the server doesn't resume it`;
        break;
      }
      if (typeof response === "string") why = response;
      const before = end;
      if (typeof response !== "string") end = await this.#read(response, signal, before);
      idle = end.messages > 0 && end !== before ? 0 : idle + 1;
    }
    this.#lose(flight, why);
  }

  /** A GET's stream; `none` when the server has none to give, else why there is none now. */
  async #openStream(
    from: Pick<StreamEnd, "lastEventId">,
    signal: AbortSignal,
  ): Promise<Response | string> {
    const session = this.#session;
    try {
      const response = await this.request("GET", this.#url, {
        headers: {
          ...this.#sessionHeaders(session),
          ...(from.lastEventId === undefined ? {} : { "last-event-id": from.lastEventId }),
          "accept": "text/event-stream",
        },
        signal,
      });
      if (response.ok && mediaTypeOf(response) === "text/event-stream") return response;
      await response.body?.cancel();
      const { status } = response;
      if (status === 404 && session !== undefined) {
        this.finish("its session is over: HTTP 404", { code: "SESSION_EXPIRED" }, true);
      }
      return status >= 500 || status === 429 ? `HTTP ${status} to a GET` : "none";
    } catch (thrown) {
      return textOf(thrown);
    }
  }

  /** Reads a stream to its end; what `before` knew of ids and pauses holds until the stream says otherwise. */
  async #read(
    response: Response,
    signal: AbortSignal,
    before?: Pick<StreamEnd, "lastEventId" | "retryMs">,
  ): Promise<StreamEnd> {
    const end: StreamEnd = {
      lastEventId: before?.lastEventId,
      retryMs: before?.retryMs,
      messages: 0,
      why: undefined,
    };
    end.why = await this.readEvents(response, signal, (event, pace) => {
      if (event.id !== undefined) end.lastEventId = event.id === "" ? undefined : event.id;
      end.retryMs = event.retryMs ?? end.retryMs;
      if (event.data === undefined || event.data.length === 0 || event.type !== "message") return;
      const messages = this.handOn(event.data, pace);
      end.messages += messages.length;
      if (messages.length === 0) this.note("An event came that is no message; it was dropped");
    });
    return end;
  }

  /** Listens to what the server says unasked, for as long as the connection lasts. */
  #listen(): void {
    if (this.#listening) return;
    this.#listening = true;
    this.own(this.#listenOn());
  }

  async #listenOn(): Promise<void> {
    let end: Pick<StreamEnd, "lastEventId" | "retryMs"> = {
      lastEventId: undefined,
      retryMs: undefined,
    };
    let pauseMs = LISTEN_PAUSE_MS;
    while (!this.stopped.aborted) {
      const sinceMs = this.clock.monotonic();
      const response = await this.#openStream(end, this.stopped);
      if (this.stopped.aborted) break;
      if (response === "none") return this.note("It has no stream for what it says unasked");
      if (typeof response === "string") this.note(`No stream for now: ${response}`);
      else end = await this.#read(response, this.stopped, end);
      if (this.clock.monotonic() - sinceMs >= LISTEN_HEALTHY_MS) pauseMs = LISTEN_PAUSE_MS;
      const waitMs = Math.max(pauseMs, Math.min(end.retryMs ?? 0, PAUSE_MS_MAX));
      await sleep(this.clock, waitMs, this.stopped).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
    }
  }
}

function isInitialize(message: JSONRPCMessage): boolean {
  return "method" in message && message.method === "initialize";
}
