/**
 * What a response's status means for the message it answers.
 *
 * Few statuses prove that a request didn't run, and only those that say by their definition that it was refused as it came in: 401 ("has not been applied", RFC 9110), 403, 405, 413, 415, 429, and 404 or 400 for a session that the server doesn't know. MCP puts the failure of a tool into a result of status 200, so these don't come from a tool. Any other 400 counts only where its body is a JSON-RPC error without an id, which the protocol gives to input that wasn't accepted. 404 without a session may be a gateway's view of what the tool reached; 408, 409, 5xx and the rest may come after the effect: unknown. No header and no text in a body makes a repeat safe ([A09]).
 */
import { type ErrorCode, SysError } from "../base/errors.ts";
import { isJsonObject, type Json } from "../base/json.ts";
import { SendError } from "./connection.ts";

/** Statuses by which a request was refused before anything was done for it. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 405, 413, 415, 429]);
/** Statuses that don't tell of a server with another transport. */
const NOT_OF_THE_TRANSPORT: ReadonlySet<number> = new Set([401, 403, 407, 408, 413, 429]);
const TEXT_CHARS_MAX = 300;

/** A response that is no answer. */
export interface Refusal {
  status: number;
  /** What it says besides its status, for people. */
  told: string;
  /** Whether the request didn't run, for certain. */
  refused: boolean;
  /** Whether it is the session that the server doesn't know. */
  sessionGone: boolean;
  code: ErrorCode;
  hint: string | undefined;
}

/** A message that was answered with something that is no JSON-RPC answer. */
export class HttpSendError extends SendError {
  /** Whether a server of the old transport would answer like that. */
  readonly tellsLegacy: boolean;

  constructor(
    message: string,
    facts: { nothingSent: boolean; tellsLegacy: boolean; cause?: unknown },
  ) {
    super(message, facts.nothingSent, facts.cause);
    this.name = "HttpSendError";
    this.tellsLegacy = facts.tellsLegacy;
  }
}

/** Whose answer it is. */
export interface Refused {
  server: string;
  /** The request carried a session's id. */
  hadSession: boolean;
  /** Takes secrets out of its words before they are cut: half of one couldn't be told afterwards. */
  redact: (text: string) => string;
}

/** Reads a response with an error status. */
export function refusalOf(
  response: Response,
  body: string,
  { server, hadSession, redact }: Refused,
): Refusal {
  const { status } = response;
  const error = errorWithoutId(body);
  const sessionGone = hadSession &&
    (status === 404 || (status === 400 && error !== undefined && /session/i.test(error)));
  const said = error ?? (looksLikeMarkup(body) ? "" : body.replace(/\s+/g, " ").trim());
  const redirect = status >= 300 && status < 400 ? redirectTold(response) : undefined;
  const words = (status === 401 ? challengeOf(response) : undefined) ?? said;
  const told = redirect ?? redact(words).slice(0, TEXT_CHARS_MAX).toWellFormed();
  return {
    status,
    told,
    refused: sessionGone || REFUSED.has(status) || (status === 400 && error !== undefined),
    sessionGone,
    ...meaningOf(status, server, sessionGone, redirect !== undefined),
  };
}

/** `HTTP 503 (Try again later)` */
export function refusalText(refusal: Refusal): string {
  return `HTTP ${refusal.status}${refusal.told === "" ? "" : ` (${refusal.told})`}`;
}

/** The error that a message ends with. */
export function refusalError(refusal: Refusal, server: string, what: string): HttpSendError {
  const message = `Server "${server}" answered ${refusalText(refusal)} to ${what}`;
  return new HttpSendError(message, {
    nothingSent: refusal.refused,
    tellsLegacy: refusal.status >= 400 && refusal.status < 500 &&
      !NOT_OF_THE_TRANSPORT.has(refusal.status),
    cause: new SysError(refusal.code, message, { hint: refusal.hint }),
  });
}

function meaningOf(
  status: number,
  server: string,
  sessionGone: boolean,
  redirected: boolean,
): Pick<Refusal, "code" | "hint"> {
  if (sessionGone) return { code: "SESSION_EXPIRED", hint: undefined };
  if (status === 401) {
    return {
      code: "UNAUTHENTICATED",
      hint:
        `Give what it asks for in headers of server "${server}", such as Authorization: "Bearer \${TOKEN}"`,
    };
  }
  if (status === 403) {
    return { code: "PERMISSION", hint: `Check the headers of server "${server}"` };
  }
  if (redirected) {
    return {
      code: "DRIVER",
      hint:
        `Set the url of server "${server}" to the address it leads to, if you trust that: headers are sent to no other origin`,
    };
  }
  if (status === 407) {
    return {
      code: "DEVICE_DISCONNECTED",
      hint: "A proxy asks for a login: put it into HTTP_PROXY, as http://USER:PASSWORD@HOST:PORT",
    };
  }
  if (status === 413 || status === 429) return { code: "RESOURCE_EXHAUSTED", hint: undefined };
  return { code: "DEVICE_DISCONNECTED", hint: undefined };
}

/** The message of a JSON-RPC error that names no request. */
function errorWithoutId(body: string): string | undefined {
  const value = parsed(body);
  if (!isJsonObject(value) || (value["id"] ?? null) !== null) return undefined;
  const error = value["error"];
  return isJsonObject(error) && typeof error["message"] === "string" ? error["message"] : undefined;
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What WWW-Authenticate asks for; of its parameters those that hold no address and no token. */
function challengeOf(response: Response): string | undefined {
  const header = response.headers.get("www-authenticate");
  if (header === null) return undefined;
  const [scheme = ""] = /^[\w-]+/.exec(header.trim()) ?? [];
  const told = [...header.matchAll(/\b(realm|error|error_description|scope)="([^"]*)"/g)]
    .map(([, name, value]) => `${name} ${JSON.stringify(value)}`);
  return [scheme, ...told].join(", ");
}

function redirectTold(response: Response): string {
  const location = response.headers.get("location");
  const target = location === null ? null : URL.parse(location, response.url || undefined);
  return target === null ? "a redirect to nowhere" : `a redirect to ${target.origin}`;
}

function looksLikeMarkup(body: string): boolean {
  return /^\s*<[!a-z?]/i.test(body);
}
