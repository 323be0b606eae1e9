/** JSON-RPC over stdio by hand, for test servers: no SDK, so that they start fast and can misbehave. Runs under Deno, node: APIs only. */
import { writeSync } from "node:fs";

export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };
export type Fields = { [key: string]: Value };

export interface Request {
  id?: Value;
  method?: string;
  params?: Fields;
}

export function isFields(value: Value | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Writes all of it; a reader that is gone ends the server. */
export function writeOut(text: string | Uint8Array, fd = 1): void {
  let bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(fd, bytes));
    } catch (thrown) {
      if (thrown instanceof Error && "code" in thrown && thrown.code === "EAGAIN") continue;
      throw thrown;
    }
  }
}

export function send(message: Fields): void {
  writeOut(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

/** Calls `take` with each line of stdin, in order. Resolves at its end. */
export async function readLines(take: (line: string) => void): Promise<void> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of Deno.stdin.readable) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") take(line);
  }
}

/** A request; undefined for what isn't one. */
export function parseRequest(line: string): Request | undefined {
  const value: Value = JSON.parse(line);
  if (!isFields(value)) return undefined;
  const { id, method, params } = value;
  return {
    ...(id === undefined ? {} : { id }),
    ...(typeof method === "string" ? { method } : {}),
    ...(isFields(params) ? { params } : {}),
  };
}

/** Blocks for a moment: a server that does nothing else meanwhile. */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Waits without blocking. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
