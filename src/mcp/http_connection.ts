/**
 * What every connection over HTTP has in common: requests with the launch's headers, streams of events, one way out.
 *
 * open → ended (nothing more is sent) → over (`onclose` told, streams aborted, goodbye said, all requests gone).
 * Between the last two, where the end came from one request's response, requests that still wait for theirs get a moment: each learns for itself whether it ran. What happens to the connection is noted in the server's log, in place of the stderr it hasn't got.
 */
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import type { Clock } from "../base/clock.ts";
import { within } from "../base/clock.ts";
import { type ErrorCode, SysError } from "../base/errors.ts";
import { SendError, type SendOptions, type ServerConnection } from "./connection.ts";
import { Pace } from "./flood.ts";
import { type HttpClient, RequestFailure } from "./http_client.ts";
import type { HttpLaunch } from "./launch.ts";
import { messagesOf } from "./message_text.ts";
import { type SseEvent, SseParser } from "./sse_events.ts";
import type { StderrLog } from "./stderr_log.ts";

/** How long requests still learn their own fate after one of them ended the connection. */
const VERDICT_MS_MAX = 800;
/** How long the goodbye and the end of the streams may take, each. */
const GOODBYE_MS_MAX = 2_000;
/** Different notes of one connection. */
const NOTES_MAX = 200;

export interface HttpDeps {
  clock: Clock;
  log: StderrLog;
}

/** What makes the requests: an {@link HttpClient}. */
export type Requester = Pick<HttpClient, "request" | "close">;

/** Why a connection ended. */
export interface End {
  code?: ErrorCode | undefined;
  hint?: string | undefined;
}

/** What goes out with a request. */
interface Outgoing {
  headers?: { readonly [name: string]: string };
  message?: JSONRPCMessage;
  /** Whether its caller makes it again where its outcome is unknown. */
  repeatable?: boolean;
  signal: AbortSignal;
}

const encoder = new TextEncoder();

export abstract class HttpConnection implements ServerConnection {
  onmessage: ServerConnection["onmessage"];
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  onlost: ((id: string | number, why: string) => void) | undefined;
  readonly firstNoise: undefined;
  protected readonly server: string;
  protected readonly clock: Clock;
  readonly #log: StderrLog;
  readonly #headers: Headers;
  readonly #client: Requester;
  readonly #stop = new AbortController();
  readonly #tasks = new Set<Promise<void>>();
  readonly #waiting = new Set<Promise<unknown>>();
  readonly #noted = new Set<string>();
  #ended: string | undefined;
  #end: End = {};
  #ending: Promise<void> | undefined;
  /** Until when the server asked to be left alone, by the clock that never goes back. */
  #restUntilMs = 0;
  #unwanted = false;

  constructor(launch: HttpLaunch, client: Requester, deps: HttpDeps) {
    this.server = launch.server;
    this.clock = deps.clock;
    this.#log = deps.log;
    this.#client = client;
    this.#headers = headersOf(launch);
  }

  get ended(): string | undefined {
    return this.#ended;
  }

  get endedCode(): ErrorCode | undefined {
    return this.#end.code;
  }

  get hint(): string {
    return this.#end.hint ??
      `Check the url of server "${this.server}": it must be that of an MCP server over HTTP`;
  }

  get retryAfterMs(): number | undefined {
    const restMs = this.#restUntilMs - this.clock.monotonic();
    return restMs > 0 ? restMs : undefined;
  }

  abstract start(): Promise<void>;
  abstract send(message: JSONRPCMessage, options?: SendOptions): Promise<void>;

  unwanted(note?: string): void {
    this.#unwanted = true;
    if (note !== undefined) this.note(note);
  }

  lastLines(): string[] {
    return [];
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  async close(reason: string = "rnix closed it"): Promise<void> {
    this.finish(reason);
    await this.#ending;
  }

  /** Aborts with the connection. */
  protected get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** Says goodbye to the server; bounded by its caller. */
  protected goodbye(_signal: AbortSignal): Promise<void> {
    return Promise.resolve();
  }

  /** Ends the connection; `gently` leaves requests that wait for a response a moment. */
  protected finish(reason: string, end: End = {}, gently = false): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#end = end;
    this.note(`The connection ended: ${reason}`);
    this.#ending = this.#leave(gently);
  }

  /** A server's words without secrets. */
  protected redacted(text: string): string {
    return this.#log.redacted(text);
  }

  /** A line for the server's log, once. */
  protected note(text: string): void {
    if (this.#noted.has(text) || this.#noted.size >= NOTES_MAX) return;
    this.#noted.add(text);
    this.#log.note(`[rnix] ${text}`);
  }

  /** Owns work that goes on by itself; the connection isn't over before it is. */
  protected own(work: Promise<void>): void {
    const task = work.catch((thrown) => this.note(`Internal fault: ${textOf(thrown)}`));
    this.#tasks.add(task);
    task.finally(() => this.#tasks.delete(task));
  }

  protected gone(): SendError {
    return new SendError(`Server "${this.server}" is gone: ${this.#ended ?? "closed"}`, true);
  }

  /** A request with the launch's headers; the reason is remembered where the server asks for rest. */
  protected async request(
    method: "GET" | "POST" | "DELETE",
    url: URL,
    { headers = {}, message, repeatable = false, signal }: Outgoing,
  ): Promise<Response> {
    const all = new Headers(this.#headers);
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    const body = message === undefined ? undefined : encoder.encode(JSON.stringify(message));
    const response = this.#client.request(url, {
      method,
      headers: all,
      signal,
      repeatable: message === undefined || isRepeatable(message),
      shared: repeatable,
      ...(body === undefined ? {} : { body }),
    });
    if (method !== "POST") return await response;
    this.#waiting.add(response);
    try {
      const given = await response;
      const restMs = retryAfterOf(given, this.clock.now());
      if (restMs !== undefined) this.#restUntilMs = this.clock.monotonic() + restMs;
      return given;
    } finally {
      this.#waiting.delete(response);
    }
  }

  /** Whatever is thrown once a message was on its way: only who knows for certain says that nothing was sent. */
  protected sendError(thrown: unknown, what: string): SendError {
    return thrown instanceof SendError ? thrown : new SendError(
      `Server "${this.server}" gave no answer to ${what}: ${this.#ended ?? textOf(thrown)}`,
      false,
      thrown,
    );
  }

  /** What a POST that got no response means: a server that can't be reached ends the connection. */
  protected unsent(thrown: unknown, what: string): SendError {
    if (!(thrown instanceof RequestFailure)) return this.sendError(thrown, what);
    if (thrown.nothingSent) {
      const hint = thrown.hint ??
        `Check that server "${this.server}" runs and that its url is right`;
      this.finish(thrown.message, { hint }, true);
      const cause = new SysError("DEVICE_DISCONNECTED", thrown.message, { hint });
      return new SendError(
        `Server "${this.server}" got no ${what}: ${thrown.message}`,
        true,
        cause,
      );
    }
    this.note(`${what}: ${thrown.message}`);
    return new SendError(
      `Server "${this.server}" gave no answer to ${what}: ${thrown.message}`,
      false,
      thrown,
    );
  }

  /** Hands the messages of a piece of JSON on; those that were there. */
  protected handOn(json: Uint8Array, pace: Pace): JSONRPCMessage[] {
    const messages = messagesOf(json);
    for (const message of messages) {
      if (this.#stop.signal.aborted) break;
      this.#unwanted = false;
      this.seen(message);
      this.onmessage?.(message);
      if (!this.#unwanted) pace.useful();
    }
    return messages;
  }

  /** Told of each message before it is handed on. */
  protected seen(_message: JSONRPCMessage): void {}

  /** Reads events to the end of the stream; why it ended, undefined for a clean end. Never rejects. */
  protected async readEvents(
    response: Response,
    signal: AbortSignal,
    take: (event: SseEvent, pace: Pace) => void,
  ): Promise<string | undefined> {
    const reader = response.body?.getReader();
    if (reader === undefined) return undefined;
    const parser = new SseParser();
    const pace = new Pace(this.clock);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return undefined;
        pace.begin();
        for (const event of parser.push(value)) take(event, pace);
        await pace.rest();
        if (signal.aborted) return "it was ended here";
      }
    } catch (thrown) {
      return signal.aborted ? "it was ended here" : `it broke off: ${textOf(thrown)}`;
    } finally {
      await reader.cancel().catch(() => {});
    }
  }

  async #leave(gently: boolean): Promise<void> {
    if (gently) {
      const verdicts = Promise.allSettled([...this.#waiting]).then(() => {});
      await within(this.clock, VERDICT_MS_MAX, verdicts, () => {});
    }
    const goodbye = new AbortController();
    this.#stop.abort(new Error(this.#ended));
    this.onclose?.();
    await within(
      this.clock,
      GOODBYE_MS_MAX,
      this.goodbye(goodbye.signal).catch(() => {}),
      () => goodbye.abort(new Error("The time is up")),
    );
    await within(this.clock, GOODBYE_MS_MAX, Promise.all(this.#tasks).then(() => {}), () => {});
    this.#client.close();
    await this.#log.close();
  }
}

/** Requests that only ask, and what isn't a request. */
function isRepeatable(message: JSONRPCMessage): boolean {
  if (!("method" in message) || !("id" in message)) return true;
  return message.method === "ping" || message.method === "server/discover" ||
    message.method.endsWith("/list");
}

/** A body as bytes, at most so many. Throws RESOURCE_EXHAUSTED over that, or what the reader throws. */
export async function boundedBody(response: Response, bytesMax: number): Promise<Uint8Array> {
  const { headers } = response;
  // Of a body that isn't packed the length holds, and reading it whole is quicker.
  const length = headers.has("content-encoding") ? null : headers.get("content-length");
  if (length !== null && /^\d{1,15}$/.test(length) && Number(length) <= bytesMax) {
    return new Uint8Array(await response.arrayBuffer());
  }
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > bytesMax) {
      throw new SysError("RESOURCE_EXHAUSTED", `its answer is over ${bytesMax} bytes`);
    }
    parts.push(part);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Media type without its parameters, in lower case. */
export function mediaTypeOf(response: Response): string {
  return (response.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** What was thrown, as text. */
export function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The headers of the launch. Throws INVALID, without their values. */
export function headersOf(launch: HttpLaunch): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(launch.headers)) {
    try {
      headers.set(name, value);
    } catch {
      throw new SysError(
        "INVALID",
        `The header ${
          JSON.stringify(name)
        } of server "${launch.server}" has a name or value that HTTP doesn't allow`,
        { hint: "A value must be one line, without control characters" },
      );
    }
  }
  return headers;
}

/** Milliseconds from now on: the header has seconds or a date. */
function retryAfterOf(response: Response, nowMs: number): number | undefined {
  if (response.status !== 429 && response.status !== 503) return undefined;
  const value = response.headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
