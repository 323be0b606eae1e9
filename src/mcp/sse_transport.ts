/**
 * HTTP+SSE of 2024-11-05: one GET whose stream first names an address of the same origin, then carries all that the server says; every message of ours is a POST to that address.
 *
 * connecting → open (the address is known) → ended, with its stream: without it no answer can come. Messages wait for the address; who sends them has the limits.
 */
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { within } from "../base/clock.ts";
import {
  boundedBody,
  HttpConnection,
  type HttpDeps,
  mediaTypeOf,
  type Requester,
  textOf,
} from "./http_connection.ts";
import { refusalError, refusalOf, refusalText, type Refused } from "./http_refusal.ts";
import type { SendOptions } from "./connection.ts";
import { untilAbort } from "./deadline.ts";
import type { HttpLaunch } from "./launch.ts";
import type { SseEvent } from "./sse_events.ts";

const ERROR_BYTES_MAX = 64 * 1024;
const ERROR_MS_MAX = 3_000;

export class SseTransport extends HttpConnection {
  readonly era = "legacy";
  readonly #url: URL;
  readonly #endpoint = Promise.withResolvers<URL>();
  #known = false;
  #version: string | undefined;

  constructor(launch: HttpLaunch, client: Requester, deps: HttpDeps) {
    super(launch, client, deps);
    this.#url = new URL(launch.url);
    this.#endpoint.promise.catch(() => {});
  }

  /** Resolves once the address for messages is known; rejects when the connection ended before. */
  get ready(): Promise<void> {
    return untilAbort(this.#endpoint.promise, this.stopped).then(() => {});
  }

  start(): Promise<void> {
    this.own(this.#listen());
    return Promise.resolve();
  }

  setProtocolVersion(version: string): void {
    this.#version = version;
  }

  async send(message: JSONRPCMessage, { repeatable = false }: SendOptions = {}): Promise<void> {
    if (this.ended !== undefined) throw this.gone();
    const what = "method" in message ? message.method : "an answer";
    const endpoint = await untilAbort(this.#endpoint.promise, this.stopped).catch(() => {
      throw this.gone();
    });
    const request = "method" in message && "id" in message ? message.id : undefined;
    try {
      await this.#post(endpoint, message, { what, repeatable });
    } catch (thrown) {
      const error = this.sendError(thrown, what);
      if (request !== undefined && !this.stopped.aborted) this.onlost?.(request, error.message);
      throw error;
    }
  }

  async #post(
    endpoint: URL,
    message: JSONRPCMessage,
    { what, repeatable }: { what: string; repeatable: boolean },
  ): Promise<void> {
    let response: Response;
    try {
      response = await this.request("POST", endpoint, {
        headers: { ...this.#versionHeader(), "content-type": "application/json" },
        message,
        repeatable,
        signal: this.stopped,
      });
    } catch (thrown) {
      throw this.unsent(thrown, what);
    }
    if (response.ok) return await response.body?.cancel().catch(() => {});
    // The address is the session's: a server that doesn't know it has lost the session.
    const refusal = refusalOf(response, await this.#errorText(response), this.#refused(true));
    this.note(`${refusalText(refusal)} to ${what}`);
    if (refusal.sessionGone) {
      this.finish(`its session is over: ${refusalText(refusal)}`, { code: refusal.code }, true);
    } else if (refusal.status === 401) {
      this.finish(`it answered ${refusalText(refusal)}`, refusal, true);
    } else if (!("id" in message)) return;
    throw refusalError(refusal, this.server, what);
  }

  #versionHeader(): { [name: string]: string } {
    return this.#version === undefined ? {} : { "mcp-protocol-version": this.#version };
  }

  async #listen(): Promise<void> {
    let response: Response;
    try {
      response = await this.request("GET", this.#url, {
        headers: { "accept": "text/event-stream" },
        signal: this.stopped,
      });
    } catch (thrown) {
      return this.finish(textOf(thrown));
    }
    if (!response.ok) {
      const text = await this.#errorText(response);
      const refusal = refusalOf(response, text, this.#refused(false));
      const { code, hint } = refusal.status === 401
        ? refusal
        : { code: undefined, hint: undefined };
      return this.finish(`it answered ${refusalText(refusal)} to a GET`, { code, hint });
    }
    if (mediaTypeOf(response) !== "text/event-stream") {
      await response.body?.cancel();
      return this.finish("its answer to a GET is no stream of events");
    }
    const why = await this.readEvents(response, this.stopped, (event, pace) => {
      if (event.type === "endpoint") this.#takeEndpoint(event);
      else if (event.type === "message" && event.data !== undefined) {
        if (this.handOn(event.data, pace).length > 0) return;
        this.note("An event came that is no message; it was dropped");
      }
    });
    this.finish(`its event stream ended${why === undefined ? "" : `: ${why}`}`);
  }

  #takeEndpoint(event: SseEvent): void {
    if (this.#known) return;
    this.#known = true;
    const endpoint = URL.parse(new TextDecoder().decode(event.data), this.#url);
    if (endpoint === null || endpoint.origin !== this.#url.origin) {
      const where = endpoint === null ? "no address" : endpoint.origin;
      return this.finish(`it wants messages sent to another origin: ${where}`);
    }
    this.note("Connected over HTTP+SSE");
    this.#endpoint.resolve(endpoint);
  }

  #refused(hadSession: boolean): Refused {
    return { server: this.server, hadSession, redact: (words) => this.redacted(words) };
  }

  async #errorText(response: Response): Promise<string> {
    const body = boundedBody(response, ERROR_BYTES_MAX).catch(() => new Uint8Array(0));
    const bytes = await within(this.clock, ERROR_MS_MAX, body, () => new Uint8Array(0));
    return new TextDecoder().decode(bytes);
  }
}
