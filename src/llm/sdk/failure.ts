/** What went wrong with a request, as an error that says what to do and whether trying again makes sense. */
import type { Clock } from "../../base/clock.ts";
import { type ErrorCode, SysError } from "../../base/errors.ts";
import type { ModelFailure } from "../model.ts";

/** What a message may name. */
export interface Endpoint {
  baseUrl: string;
  model: string;
  apiKeyEnv: string | undefined;
  hasKey: boolean;
  /** Tokens, where known. */
  contextWindow: number | undefined;
  redact: (text: string) => string;
}

/** A provider's answer that isn't a reply. */
export interface ProviderError {
  /** HTTP status; undefined for an error inside a stream. */
  status?: number | undefined;
  /** The provider's own words. */
  message: string;
  /** The provider's own code or type, such as `context_length_exceeded`. */
  code?: string | undefined;
  headers?: { [name: string]: string } | undefined;
  /** Milliseconds that the answer's body asks to wait. */
  retryAfterMs?: number | undefined;
}

const CONTEXT_CODES = /context_length|context_window|string_above_max_length|request_too_large/;
const KEY_WORDS = /api key (not valid|expired|not found)/i;
const CONTEXT_WORDS =
  /context (length|window|size)|maximum context|prompt is too long|input is too long|too many (input )?tokens|exceeds? (the )?(model'?s )?(maximum|context)/i;
const STREAM_TYPES = /^(text\/event-stream|application\/octet-stream|text\/plain)\b/i;
const MESSAGE_CHARS_MAX = 500;
/** A provider can't make a run wait longer than this before it tries again. */
const RETRY_AFTER_MS_MAX = 3_600_000;

/** Judges an HTTP error or an error event of a stream. */
export function providerFailure(
  found: ProviderError,
  endpoint: Endpoint,
  clock: Clock,
): ModelFailure {
  const { host } = new URL(endpoint.baseUrl);
  const said = sayable(found.message, endpoint);
  const status = found.status === undefined ? "in its stream" : `HTTP ${found.status}`;
  const cause = said === "" ? status : `${status}: ${said}`;
  const fatal = (code: ErrorCode, message: string, hint?: string): ModelFailure => ({
    error: new SysError(code, message, { hint }),
    retryable: false,
  });
  const passing = (code: ErrorCode, message: string): ModelFailure => {
    const retryAfterMs = retryAfter(found, clock);
    const error = new SysError(code, message);
    return retryAfterMs === undefined
      ? { error, retryable: true }
      : { error, retryable: true, retryAfterMs };
  };
  if (CONTEXT_CODES.test(found.code ?? "") || (isClientError(found) && CONTEXT_WORDS.test(said))) {
    return { ...contextFailure(endpoint, cause), contextWindow: true };
  }
  if (found.status === 400 && KEY_WORDS.test(said)) {
    return fatal("UNAUTHENTICATED", `${host} refused the API key (${cause})`, keyHint(endpoint));
  }
  switch (found.status) {
    case 401:
      return fatal("UNAUTHENTICATED", `${host} refused the API key (${cause})`, keyHint(endpoint));
    case 403:
      return fatal(
        "PERMISSION",
        `${host} doesn't allow model "${endpoint.model}" for this key (${cause})`,
        keyHint(endpoint),
      );
    case 404:
      return fatal(
        "NOT_FOUND",
        `Model "${endpoint.model}" was not found at ${host} (${cause})`,
        'Check "preferred" and "base_url" under "models"',
      );
    case 408:
      return passing("TIMEOUT", `${host} timed out (${cause})`);
    case 429:
      return /insufficient_quota|billing/.test(found.code ?? "")
        ? fatal("RESOURCE_EXHAUSTED", `The account's quota at ${host} is used up (${cause})`)
        : passing("RESOURCE_EXHAUSTED", `${host} limits the rate of requests (${cause})`);
  }
  if (isClientError(found) && found.status !== 409 && found.status !== 425) {
    return fatal("INVALID", `${host} refused the request (${cause})`);
  }
  return passing("DRIVER", `${host} failed (${cause})`);
}

/** Words of a provider or a library, which may quote what was sent or came: without secrets, on one line, and short. */
function sayable(words: string, endpoint: Endpoint): string {
  return endpoint.redact(words).replaceAll(/\s+/g, " ").trim().slice(0, MESSAGE_CHARS_MAX)
    .toWellFormed();
}

function contextFailure({ model, contextWindow }: Endpoint, cause: string): ModelFailure {
  const size = contextWindow === undefined ? "" : ` of ${contextWindow} tokens`;
  const error = new SysError(
    "INVALID",
    `The conversation is longer than the context window${size} of model "${model}" (${cause})`,
    {
      hint:
        'Name a model with a larger context window as "fallback" under "models", or lower max_output_tokens of the servers',
    },
  );
  return { error, retryable: false };
}

/** The provider itself ended its reply as failed, such as for a call that it could not read. */
export function failedReply(endpoint: Endpoint, reason: string | undefined): ModelFailure {
  const { host } = new URL(endpoint.baseUrl);
  const why = reason === undefined ? "" : ` (${reason})`;
  return { error: new SysError("DRIVER", `${host} gave up its reply${why}`), retryable: true };
}

function isClientError({ status, code }: ProviderError): boolean {
  return status === undefined ? code === "invalid_request_error" : status >= 400 && status < 500;
}

function keyHint({ apiKeyEnv, hasKey }: Endpoint): string {
  if (apiKeyEnv === undefined) {
    return 'Name the variable that holds the key: "api_key_env" under "models"';
  }
  return hasKey ? `Check the key in ${apiKeyEnv}` : `Set ${apiKeyEnv} to your API key`;
}

/** The connection failed or broke, before or in the middle of an answer. */
export function connectionFailure(thrown: unknown, endpoint: Endpoint): ModelFailure {
  const { host } = new URL(endpoint.baseUrl);
  const error = new SysError(
    "DEVICE_DISCONNECTED",
    `Connection to ${host} failed: ${sayable(innermost(thrown), endpoint)}`,
    {
      hint: 'Check "base_url" under "models", and that the server is up',
      cause: thrown,
    },
  );
  return { error, retryable: true };
}

/** The stream ended before its end mark, or holds something that can't be read. An answer of another `contentType` than a stream's may be none at all, but a page that somebody put in between. */
export function brokenStream(
  endpoint: Endpoint,
  why: string,
  contentType: string | undefined,
): ModelFailure {
  const { host } = new URL(endpoint.baseUrl);
  const isStream = contentType === undefined || STREAM_TYPES.test(contentType);
  const hint = isStream
    ? undefined
    : `It answered with ${sayable(contentType, endpoint)} and no stream of events: check ` +
      '"base_url" under "models"';
  return {
    error: new SysError(
      "DEVICE_DISCONNECTED",
      `Reply from ${host} broke off: ${sayable(why, endpoint)}`,
      { hint },
    ),
    retryable: true,
  };
}

/** The message at the bottom of a chain of causes: the upper ones only say that something failed. */
function innermost(thrown: unknown): string {
  let error = thrown;
  for (
    let depth = 0;
    depth < 8 && error instanceof Error && error.cause instanceof Error;
    depth++
  ) {
    error = error.cause;
  }
  return error instanceof Error ? error.message : String(error);
}

/** Milliseconds that the provider asks to wait. */
function retryAfter(
  { headers = {}, retryAfterMs }: ProviderError,
  clock: Clock,
): number | undefined {
  if (retryAfterMs !== undefined) return clamp(retryAfterMs);
  const exact = Number(headers["retry-after-ms"] ?? Number.NaN);
  if (Number.isFinite(exact)) return clamp(exact);
  const text = headers["retry-after"];
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return clamp(seconds * 1000);
  const dateMs = Date.parse(text);
  return Number.isNaN(dateMs) ? undefined : clamp(dateMs - clock.now());
}

function clamp(ms: number): number {
  return Math.min(Math.max(Math.ceil(ms), 0), RETRY_AFTER_MS_MAX);
}
