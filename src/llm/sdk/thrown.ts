/** Reads what a provider's library throws or tells in a stream: an HTTP answer, an error event, or neither. */
import type { ProviderError } from "./failure.ts";

/** An error event of a stream: `{message, type?, code?, statusCode?}`, or the same inside `error` or `response.error`. */
export function toldError(value: unknown): ProviderError | undefined {
  if (value instanceof Error || typeof value !== "object" || value === null) return undefined;
  const message = member(value, "message");
  const statusCode = member(value, "statusCode");
  const code = member(value, "code");
  const status = [statusCode, code].find((number) =>
    typeof number === "number" && number >= 400 && number < 600
  );
  return {
    message: typeof message === "string" ? message : JSON.stringify(value),
    code: codeOf(value),
    ...(typeof status === "number" ? { status } : {}),
  };
}

/** What is read of an HTTP error. */
export interface HttpError {
  message: string;
  statusCode: number;
  /** The body as the library understood it. */
  data: unknown;
  responseBody: string | undefined;
  responseHeaders: { [name: string]: string } | undefined;
}

/** An HTTP error in the provider's own words. */
export function httpError(thrown: HttpError): ProviderError {
  const { message, statusCode, responseBody, responseHeaders } = thrown;
  const body = thrown.data ?? parsed(responseBody);
  const inner = member(body, "error") ?? body;
  const said = member(inner, "message");
  return {
    status: statusCode,
    message: typeof said === "string" ? said : responseBody ?? message,
    code: codeOf(inner),
    headers: responseHeaders,
    retryAfterMs: retryDelay(member(inner, "details")),
  };
}

/** `code`, else `type`, else `status`, whichever is a word. */
function codeOf(error: unknown): string | undefined {
  return ["code", "type", "status"].map((key) => member(error, key))
    .find((word): word is string => typeof word === "string");
}

/** Google's `RetryInfo`: `{"retryDelay": "34.5s"}` among the details. */
function retryDelay(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined;
  const delay = details.map((detail) => member(detail, "retryDelay"))
    .find((text) => typeof text === "string");
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(delay ?? "")?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function member(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
