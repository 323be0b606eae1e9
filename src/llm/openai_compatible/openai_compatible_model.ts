/**
 * Any server that speaks OpenAI's chat completions.
 *
 * One request is one `doStream` of the SDK's provider: no retries, no tool loop. The SDK is loaded when the first model of this kind is made, beside everything else that happens then, and never for a scripted run.
 */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Clock } from "../../base/clock.ts";
import { formatDuration } from "../../base/duration.ts";
import type { JsonObject } from "../../base/json.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import type { Model, ModelFailure, ModelOutcome, ModelRequest } from "../model.ts";
import {
  brokenStream,
  connectionFailure,
  type Endpoint,
  type ProviderError,
  providerFailure,
} from "./failure.ts";
import { projectSchema } from "../schema_projection.ts";
import { ReplyCollector } from "./reply_collector.ts";
import { type RequestBody, RequestCache } from "./request_body.ts";

/** A stream that brings nothing for this long is given up, where `models.timeout` isn't set; the request may be tried again. */
export const STALL_MS_MAX = 300_000;

// Also the key of provider metadata in the journal. Not the SDK's own name: it would copy metadata under that one into the wire messages.
const PROVIDER_KEY = "rnix";

/** What the model needs of its settings. */
export interface OpenAiCompatibleSettings {
  baseUrl: string;
  apiKey: string | undefined;
  apiKeyEnv: string | undefined;
  headers: { [name: string]: string };
  /** How long a stream may bring nothing. */
  timeoutMs: number;
}

type RequestOptions = Parameters<Model["request"]>[1];

function loadSdk() {
  return Promise.all([import("@ai-sdk/openai-compatible"), import("@ai-sdk/provider")])
    .then(([{ createOpenAICompatible }, { APICallError }]) => ({
      createOpenAICompatible,
      APICallError,
    }));
}

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

/** One request's own state. */
interface Attempt {
  endpoint: Endpoint;
  body: RequestBody;
  collector: ReplyCollector;
  signal: AbortSignal;
  /** What `fetch` itself threw. */
  networkError?: unknown;
}

/**
 * The SDK's model with the request that it works on. Making one compiles schemas, which costs as much as a request, so it is used again once a stream has ended well.
 */
interface Channel {
  modelId: string;
  chat: LanguageModelV4;
  attempt: Attempt | undefined;
}

export class OpenAiCompatibleModel implements Model {
  readonly provider = "openai-compatible";
  readonly #settings: OpenAiCompatibleSettings;
  readonly #clock: Clock;
  readonly #cache = new RequestCache();
  readonly #closing = new AbortController();
  readonly #sdk: Promise<Sdk>;
  #idle: Channel | undefined;

  constructor(settings: OpenAiCompatibleSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#sdk = loadSdk();
    // Whoever makes the first request sees the error.
    this.#sdk.catch(() => {});
  }

  refuses(inputSchema: JsonObject): string | undefined {
    const projection = projectSchema(inputSchema);
    return "refused" in projection ? projection.refused : undefined;
  }

  async request(request: ModelRequest, options: RequestOptions): Promise<ModelOutcome> {
    const stall = new StallWatch(this.#clock, this.#settings.timeoutMs);
    const signal = AbortSignal.any([options.signal, stall.signal, this.#closing.signal]);
    try {
      const failure = await this.#attempt(request, options, signal, stall);
      return failure;
    } catch (thrown) {
      if (signal.aborted) return { ok: false, ...abortFailure(signal, stall.signal.aborted) };
      return { ok: false, error: toSysError(thrown), retryable: false };
    } finally {
      stall.stop();
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
    signal: AbortSignal,
    stall: StallWatch,
  ): Promise<ModelOutcome> {
    const { baseUrl, apiKey, apiKeyEnv } = this.#settings;
    signal.throwIfAborted();
    const body = this.#cache.begin(request);
    const sdk = await this.#sdk;
    const attempt: Attempt = {
      endpoint: { baseUrl, model: request.model, apiKeyEnv, hasKey: Boolean(apiKey) },
      body,
      collector: new ReplyCollector(options.onDelta),
      signal,
    };
    try {
      const failure = await this.#stream(sdk, attempt, stall);
      if (failure !== undefined) return { ok: false, ...failure };
    } catch (thrown) {
      signal.throwIfAborted();
      return { ok: false, ...this.#judge(sdk, attempt, thrown) };
    }
    signal.throwIfAborted();
    const reply = attempt.collector.reply(attempt.body.bytes);
    if (reply !== undefined) return { ok: true, reply };
    return { ok: false, ...brokenStream(attempt.endpoint, "no end mark") };
  }

  async #stream(
    sdk: Sdk,
    attempt: Attempt,
    stall: StallWatch,
  ): Promise<ModelFailure | undefined> {
    const { body, signal, collector } = attempt;
    const channel = this.#channel(sdk, attempt);
    const { stream } = await channel.chat.doStream({
      prompt: body.prompt,
      tools: body.tools,
      abortSignal: signal,
    });
    const reader = stream.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        signal.throwIfAborted();
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
  #channel(sdk: Sdk, attempt: Attempt): Channel {
    const modelId = attempt.endpoint.model;
    const idle = this.#idle;
    if (idle?.modelId === modelId) {
      this.#idle = undefined;
      idle.attempt = attempt;
      return idle;
    }
    const state: { attempt: Attempt | undefined } = { attempt };
    return Object.assign(state, { modelId, chat: this.#chat(sdk, modelId, state) });
  }

  #chat(sdk: Sdk, modelId: string, state: { attempt: Attempt | undefined }): LanguageModelV4 {
    const { baseUrl, apiKey, headers } = this.#settings;
    return sdk.createOpenAICompatible({
      name: PROVIDER_KEY,
      baseURL: baseUrl,
      ...(apiKey === undefined ? {} : { apiKey }),
      headers,
      includeUsage: true,
      transformRequestBody: (args) => state.attempt?.body.take(args) ?? args,
      metadataExtractor: {
        extractMetadata: () => Promise.resolve(undefined),
        createStreamExtractor: () => ({
          processChunk: (chunk) => state.attempt?.collector.noteChunk(chunk),
          buildMetadata: () => undefined,
        }),
      },
      fetch: async (url, init) => {
        const { attempt } = state;
        try {
          const text = typeof init?.body === "string" ? init.body : "";
          return await fetch(url, { ...init, body: attempt?.body.finish(text) ?? text });
        } catch (thrown) {
          if (attempt !== undefined) attempt.networkError = thrown;
          throw thrown;
        }
      },
    }).chatModel(modelId);
  }

  /** Makes a failure of anything thrown by the SDK or told in its stream. */
  #judge(sdk: Sdk, attempt: Attempt, thrown: unknown): ModelFailure {
    const { endpoint, networkError } = attempt;
    if (networkError !== undefined) return connectionFailure(networkError, endpoint);
    if (sdk.APICallError.isInstance(thrown)) {
      const status = thrown.statusCode;
      if (status === undefined || status < 400) return connectionFailure(thrown, endpoint);
      return providerFailure(
        {
          status,
          message: thrown.data === undefined
            ? thrown.responseBody ?? thrown.message
            : thrown.message,
          code: codeOf(thrown.data),
          headers: thrown.responseHeaders,
        },
        endpoint,
        this.#clock,
      );
    }
    const told = toldError(thrown);
    if (told !== undefined) return providerFailure(told, endpoint, this.#clock);
    return brokenStream(endpoint, thrown instanceof Error ? thrown.message : String(thrown));
  }
}

/** An error event of a stream: `{message, type?, code?}`. */
function toldError(value: unknown): ProviderError | undefined {
  if (value instanceof Error || typeof value !== "object" || value === null) return undefined;
  const message: unknown = Reflect.get(value, "message");
  const code: unknown = Reflect.get(value, "code");
  return {
    message: typeof message === "string" ? message : JSON.stringify(value),
    code: codeOf({ error: value }),
    ...(typeof code === "number" && code >= 400 && code < 600 ? { status: code } : {}),
  };
}

/** `error.code`, else `error.type`, of an error body. */
function codeOf(data: unknown): string | undefined {
  const error: unknown = typeof data === "object" && data !== null
    ? Reflect.get(data, "error")
    : undefined;
  if (typeof error !== "object" || error === null) return undefined;
  return [Reflect.get(error, "code"), Reflect.get(error, "type")]
    .find((word): word is string => typeof word === "string");
}

function abortFailure(signal: AbortSignal, stalled: boolean): ModelFailure {
  const error = signal.reason instanceof SysError
    ? signal.reason
    : new SysError("TIMEOUT", "The model request was cancelled", { cause: signal.reason });
  return { error, retryable: stalled };
}

/** Aborts its signal when nothing was touched for a while. One timer, moved only when it fires. */
class StallWatch {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #limitMs: number;
  #touchedMs: number;
  #cancel: () => void;

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#touchedMs = clock.monotonic();
    this.#cancel = clock.after(limitMs, () => this.#check());
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  touch(): void {
    this.#touchedMs = this.#clock.monotonic();
  }

  stop(): void {
    this.#cancel();
  }

  #check(): void {
    const restMs = this.#touchedMs + this.#limitMs - this.#clock.monotonic();
    if (restMs > 0) {
      this.#cancel = this.#clock.after(restMs, () => this.#check());
      return;
    }
    this.#controller.abort(
      new SysError(
        "TIMEOUT",
        `The model sent nothing for ${formatDuration(this.#limitMs)} (models.timeout)`,
      ),
    );
  }
}
