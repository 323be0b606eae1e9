/**
 * What a model endpoint of some provider's shape is made of: how it checks a request, and how a reply goes over its wire.
 *
 * Thinking is signed with a hash of what it belongs to, so that an endpoint that keeps no state can tell whether it came back as it went out.
 */
import { isJsonObject, type Json, type JsonObject, sha256Hex } from "../../src/base/json.ts";

/** A call in a reply. `name` may be a suffix of an offered tool's name after `__`. */
export interface EndpointCall {
  name: string;
  /** Argument text as it goes over the wire. */
  arguments: string | null;
  /** By default unique; `""`, null or a repeated one are faults of real servers. */
  id?: string | null;
}

/** A block of thinking. It is signed by the endpoint, which checks the signature when it comes back. */
export interface EndpointReasoning {
  text: string;
  /** The text itself is withheld, only its signature is sent. */
  redacted?: boolean;
}

/** What the endpoint does with one request. */
export interface EndpointReply {
  /** One chunk each. */
  text?: string | string[];
  reasoning?: string | EndpointReasoning[];
  calls?: EndpointCall[];
  /** By default `stop` or `tool_calls`; null leaves it out. */
  finish?: string | null;
  /** null: the server reports no usage. */
  usage?: JsonObject | null;
  /** Answers with this HTTP status in place of a stream. */
  status?: number;
  headers?: { [name: string]: string };
  /** Body for `status`; text goes out as it is. */
  error?: Json;
  /** An error event in the stream, after the text. */
  streamError?: Json;
  /** Ends the stream after so many chunks, in good order but without its end. */
  cutAfter?: number;
  /** Breaks the connection after so many chunks. */
  breakAfter?: number;
  /** Waits before the first byte. */
  delayMs?: number;
  /** Goes on sending nothing after so many chunks, until the client leaves. */
  hangAfter?: number;
}

/** A provider's wire. */
export interface WireShape {
  /** After the origin, for `base_url`. */
  basePath: string;
  accepts(pathname: string): boolean;
  /** What a strict provider would refuse. */
  check(body: Json, facts: { pathname: string; headers: Headers }): string[];
  /** Names of the offered tools. */
  toolNames(body: JsonObject): string[];
  /** Pieces of the stream, each a whole event or more. */
  chunks(body: JsonObject, reply: EndpointReply, number: number): string[];
  /** After the last chunk. */
  end: string;
  /** Body of an HTTP error. */
  error(status: number, error: Json): Json;
}

/** The endpoint's signature over something that it sent. */
export function sign(...what: string[]): string {
  return `sig+${sha256Hex(what.join("\n"))}/==`;
}

/** The thinking of a reply. */
export function thoughts({ reasoning }: EndpointReply): EndpointReasoning[] {
  return typeof reasoning === "string" ? [{ text: reasoning }] : reasoning ?? [];
}

/** Text of a reply, one piece each. */
export function pieces({ text }: EndpointReply): string[] {
  return text === undefined ? [] : [text].flat();
}

/** The id of a call: made up where the reply says nothing. */
export function callId({ id }: EndpointCall, number: number, index: number): string | null {
  return id === undefined ? `call_${number}_${index}` : id;
}

/** Argument text in two pieces, so that it must be put together. */
export function halves(text: string): string[] {
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)];
}

/** The offered tool that a suffix means, else the name itself. */
export function fullName(names: readonly string[], name: string): string {
  return names.includes(name) ? name : names.find((known) => known.endsWith(`__${name}`)) ?? name;
}

/** Whether a text is base64 of an image of a media type that it claims to be. */
export function isImage(mediaType: Json | undefined, data: Json | undefined): boolean {
  const starts: { [type: string]: string } = {
    "image/png": "iVBORw0KGgo",
    "image/jpeg": "/9j/",
    "image/gif": "R0lGOD",
    "image/webp": "UklGR",
  };
  const start = typeof mediaType === "string" ? starts[mediaType] : undefined;
  return start !== undefined && typeof data === "string" && data.startsWith(start);
}

/** An object of JSON, empty for anything else. */
export function asObject(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** A list of JSON, empty for anything else. */
export function asList(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
