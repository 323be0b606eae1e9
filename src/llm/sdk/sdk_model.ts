/**
 * A model that is reached through its provider's library, whichever that is.
 *
 * One request is one `doStream`: no retries, no tool loop. The library is loaded when the first model of its kind is made, beside everything else that happens then, and never for a scripted run.
 */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Clock } from "../../base/clock.ts";
import type { JsonObject } from "../../base/json.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import type { Model, ModelFailure, ModelOutcome, ModelRequest } from "../model.ts";
import { AbortJoin } from "./abort.ts";
import type { Dialect, SdkSettings, Wire } from "./dialect.ts";
import {
  brokenStream,
  connectionFailure,
  type Endpoint,
  failedReply,
  providerFailure,
} from "./failure.ts";
import { refuseRedirect } from "./redirect.ts";
import { type Bodies, type OutgoingBody, WholeBodies } from "./outgoing_body.ts";
import { ReplyCollector } from "./reply_collector.ts";
import { limitBody } from "./reply_limits.ts";
import { SplicedBodies } from "./spliced_body.ts";
import { StallWatch } from "./stall_watch.ts";
import { httpError, toldError } from "./thrown.ts";
import { Translator } from "./translate.ts";

/** A stream that brings no content for this long is given up, where `models.timeout` isn't set; the request may be tried again. Comments and pings that only keep a connection open are no content. */
export const STALL_MS_MAX = 300_000;

type RequestOptions = Parameters<Model["request"]>[1];
type MakeChat = (modelId: string, wire: Wire) => LanguageModelV4;

async function loadSdk(dialect: Dialect) {
  const [makeChat, { APICallError }] = await Promise.all([
    dialect.load(),
    import("@ai-sdk/provider"),
  ]);
  return { makeChat, APICallError };
}

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

/** One request's own state. */
interface Attempt {
  endpoint: Endpoint;
  body: OutgoingBody;
  collector: ReplyCollector;
  /** Every wait on the library is raced against it. */
  abort: AbortJoin;
  /** What `fetch` itself threw. */
  networkError?: unknown;
  /** What the answer says that it is. */
  contentType?: string | undefined;
}

/**
 * The library's model with the request that it works on. Making one compiles schemas, which costs as much as a request, so it is used again once a stream has ended well.
 */
interface Channel {
  modelId: string;
  chat: LanguageModelV4;
  attempt: Attempt | undefined;
}

export class SdkModel implements Model {
  readonly provider: string;
  readonly toolsMax: number | undefined;
  readonly #dialect: Dialect;
  readonly #settings: SdkSettings;
  readonly #clock: Clock;
  readonly #translator: Translator;
  readonly #bodies: Bodies;
  readonly #closing = new AbortController();
  readonly #sdk: Promise<Sdk>;
  #idle: Channel | undefined;

  constructor(dialect: Dialect, settings: SdkSettings, clock: Clock) {
    this.provider = settings.name;
    this.toolsMax = dialect.toolsMax;
    this.#dialect = dialect;
    this.#settings = settings;
    this.#clock = clock;
    this.#translator = new Translator(dialect.rules);
    this.#bodies = dialect.splicesHistory === true
      ? new SplicedBodies(this.#translator)
      : new WholeBodies(this.#translator, dialect.prepare);
    this.#sdk = loadSdk(dialect);
    // Whoever makes the first request sees the error.
    this.#sdk.catch(() => {});
  }

  refuses(inputSchema: JsonObject): string | undefined {
    return this.#translator.refuses(inputSchema);
  }

  async request(request: ModelRequest, options: RequestOptions): Promise<ModelOutcome> {
    const stall = new StallWatch(this.#clock, this.#settings.timeoutMs);
    const abort = new AbortJoin([options.signal, stall.signal, this.#closing.signal]);
    const { signal } = abort;
    try {
      return await this.#attempt(request, options, abort, stall);
    } catch (thrown) {
      if (signal.aborted) return { ok: false, ...abortFailure(signal, stall.signal.aborted) };
      return { ok: false, error: toSysError(thrown), retryable: false };
    } finally {
      stall.stop();
      abort.release();
    }
  }

  /** Ends requests in flight. */
  close(): void {
    this.#closing.abort(
      new SysError("INTERNAL", "The model was closed while a request was in flight"),
    );
  }

  async #attempt(
    request: ModelRequest,
    options: RequestOptions,
    abort: AbortJoin,
    stall: StallWatch,
  ): Promise<ModelOutcome> {
    const { baseUrl, apiKey, apiKeyEnv, contextWindow, redact } = this.#settings;
    const { signal } = abort;
    signal.throwIfAborted();
    const body = this.#bodies.begin(request);
    const sdk = await abort.race(this.#sdk);
    const attempt: Attempt = {
      endpoint: {
        baseUrl,
        model: request.model,
        apiKeyEnv,
        hasKey: Boolean(apiKey),
        contextWindow,
        redact,
      },
      body,
      collector: new ReplyCollector(options.onDelta, this.#dialect.keepsCallIds),
      abort,
    };
    try {
      const failure = await this.#stream(sdk, attempt, stall);
      if (failure !== undefined) return { ok: false, ...failure };
    } catch (thrown) {
      signal.throwIfAborted();
      return { ok: false, ...this.#judge(sdk, attempt, thrown) };
    }
    signal.throwIfAborted();
    return outcomeOf(attempt);
  }

  async #stream(
    sdk: Sdk,
    attempt: Attempt,
    stall: StallWatch,
  ): Promise<ModelFailure | undefined> {
    const { body, abort, collector } = attempt;
    const channel = this.#channel(sdk.makeChat, attempt);
    const { stream } = await abort.race(channel.chat.doStream({
      ...this.#dialect.callOptions,
      prompt: body.prompt,
      tools: body.tools,
      abortSignal: abort.signal,
    }));
    const reader = stream.getReader();
    try {
      for (;;) {
        const { done, value } = await abort.race(reader.read());
        abort.signal.throwIfAborted();
        if (done) {
          channel.attempt = undefined;
          this.#idle = channel;
          return undefined;
        }
        stall.touch();
        if (value.type === "error") return this.#judge(sdk, attempt, value.error);
        collector.add(value);
      }
    } finally {
      // Frees the connection of a stream that is left early; one that has ended or failed has none.
      reader.cancel().catch(() => {});
    }
  }

  /** The idle channel if it fits, else a new one. Concurrent requests have one each. */
  #channel(makeChat: MakeChat, attempt: Attempt): Channel {
    const modelId = attempt.endpoint.model;
    const idle = this.#idle;
    if (idle?.modelId === modelId) {
      this.#idle = undefined;
      idle.attempt = attempt;
      return idle;
    }
    const state: { attempt: Attempt | undefined } = { attempt };
    return Object.assign(state, { modelId, chat: makeChat(modelId, this.#wire(state)) });
  }

  #wire(state: { attempt: Attempt | undefined }): Wire {
    return {
      settings: this.#settings,
      takeBody: (body) => state.attempt?.body.take(body) ?? body,
      noteChunk: (chunk) => state.attempt?.collector.noteChunk(chunk),
      fetch: async (url, init) => {
        const { attempt } = state;
        try {
          const text = typeof init?.body === "string" ? init.body : "";
          const body = attempt?.body.finish(text) ?? text;
          const headers = this.#headers(init?.headers);
          const response = await this.#settings.fetch(url, {
            ...init,
            headers,
            body,
            redirect: "manual",
          });
          refuseRedirect(response, url);
          if (attempt === undefined) return response;
          attempt.contentType = response.headers.get("content-type") ?? undefined;
          return limitBody(attempt.abort.guard(response), (error) => {
            attempt.networkError = error;
          });
        } catch (thrown) {
          if (attempt !== undefined) attempt.networkError = thrown;
          throw thrown;
        }
      },
    };
  }

  /** The library's headers without an empty key. */
  #headers(given: HeadersInit | undefined): Headers {
    const headers = new Headers(given);
    const { keyHeader } = this.#dialect;
    if (keyHeader === undefined || this.#settings.apiKey !== undefined) return headers;
    if (/^(Bearer)?$/.test(headers.get(keyHeader)?.trim() ?? "")) headers.delete(keyHeader);
    return headers;
  }

  /** Makes a failure of anything thrown by the library or told in its stream. */
  #judge(sdk: Sdk, attempt: Attempt, thrown: unknown): ModelFailure {
    const { endpoint, networkError } = attempt;
    if (networkError instanceof SysError) return { error: networkError, retryable: false };
    if (thrown instanceof SysError) return { error: thrown, retryable: false };
    if (networkError !== undefined) return connectionFailure(networkError, endpoint);
    if (sdk.APICallError.isInstance(thrown)) {
      const { statusCode, message, data, responseBody, responseHeaders } = thrown;
      if (statusCode === undefined || statusCode < 400) return connectionFailure(thrown, endpoint);
      const http = { statusCode, message, data, responseBody, responseHeaders };
      return providerFailure(httpError(http), endpoint, this.#clock);
    }
    const told = toldError(thrown);
    if (told !== undefined) return providerFailure(told, endpoint, this.#clock);
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return brokenStream(endpoint, why, attempt.contentType);
  }
}

/** What a stream that ended without an error comes to. */
function outcomeOf({ collector, endpoint, body, contentType }: Attempt): ModelOutcome {
  if (collector.finish?.unified === "error") {
    return { ok: false, ...failedReply(endpoint, collector.finish.raw) };
  }
  const reply = collector.reply(body.bytes);
  if (reply !== undefined) return { ok: true, reply };
  return { ok: false, ...brokenStream(endpoint, "no end mark", contentType) };
}

function abortFailure(signal: AbortSignal, stalled: boolean): ModelFailure {
  const error = signal.reason instanceof SysError
    ? signal.reason
    : new SysError("TIMEOUT", "The model request was cancelled", { cause: signal.reason });
  return { error, retryable: stalled };
}
