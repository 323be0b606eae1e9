/**
 * From a line of a server's output to the JSON-RPC messages in it.
 *
 * Cheap for what is no message, and safe against nesting: containers deeper than any of rnix's recursive functions could follow are replaced by null before the text is parsed. What is left is still deeper than a device takes, so it is refused there and not mistaken for the value that was sent.
 */
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { JSON_DEPTH_MAX } from "../base/json.ts";

/** Levels that a message keeps; some of them are the message's own. */
const PARSED_DEPTH_MAX = 4 * JSON_DEPTH_MAX;

const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;

const decoder = new TextDecoder();
const NULL = new TextEncoder().encode("null");

/** The messages of a line (a batch has several); none when it isn't JSON-RPC. */
export function messagesOf(line: Uint8Array): JSONRPCMessage[] {
  let at = 0;
  while ((line[at] ?? QUOTE) <= SPACE) at += 1;
  const first = line[at];
  if (first !== OPEN_OBJECT && first !== OPEN_LIST) return [];
  try {
    const value: unknown = JSON.parse(decoder.decode(shallow(line, PARSED_DEPTH_MAX)));
    const values = Array.isArray(value) ? value : [value];
    return values.every(isRpcMessage) ? values : [];
  } catch {
    return [];
  }
}

function isRpcMessage(value: unknown): value is JSONRPCMessage {
  return typeof value === "object" && value !== null && "jsonrpc" in value &&
    value.jsonrpc === "2.0" && ("method" in value || "id" in value);
}

/** JSON text with null in place of every container below `depthMax` levels; the same bytes when there is none. */
export function shallow(text: Uint8Array, depthMax: number): Uint8Array {
  if (text.length <= 2 * depthMax) return text;
  const kept: Uint8Array[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at];
    if (byte === QUOTE) at = endOfString(text, at);
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      depth += 1;
      if (depth === depthMax + 1) kept.push(text.subarray(from, at), NULL);
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      depth -= 1;
      if (depth === depthMax) from = at + 1;
    }
  }
  if (kept.length === 0) return text;
  if (depth <= depthMax) kept.push(text.subarray(from));
  return joined(kept);
}

/** Where the string that begins at `start` ends. */
function endOfString(text: Uint8Array, start: number): number {
  for (let end = text.indexOf(QUOTE, start + 1); end >= 0; end = text.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
