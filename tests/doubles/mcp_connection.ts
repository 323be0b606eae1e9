/** An MCP server in memory, as the session's connection to it: what it answers and when it dies is the test's to say. */
import { SendError, type ServerConnection } from "../../src/mcp/connection.ts";
import type { ErrorCode } from "../../src/base/errors.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { loadClient } from "../../src/mcp/handshake.ts";

// Loaded in the middle of a handshake it would take real time, in which a virtual clock may have run through every limit.
await loadClient();

type Message = Parameters<ServerConnection["send"]>[0];

/** Result or error of a request; undefined: no answer. */
export type Answer = { result: JsonObject } | { error: { code: number; message: string } };
export type Responder = (
  params: JsonObject,
  server: MemoryServer,
) => Answer | undefined | Promise<Answer | undefined>;

export const text = (words: string): Answer => ({
  result: { content: [{ type: "text", text: words }] },
});

export const tool = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  inputSchema: { type: "object" },
  ...more,
});

/** A legacy server with the tools given; `on` answers by method. */
export class MemoryServer implements ServerConnection {
  onmessage: ServerConnection["onmessage"];
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  ended: string | undefined;
  endedCode: ErrorCode | undefined;
  retryAfterMs: number | undefined;
  firstNoise: string | undefined;
  /** Every message that reached the server. */
  readonly received: Message[] = [];
  /** When set, `send` fails so. */
  sendFailure: SendError | undefined;
  /** Told when the connection ends, however it does. */
  onEnd: (() => void) | undefined;
  #busy: Promise<unknown> | undefined;
  readonly #on: { [method: string]: Responder };

  constructor(on: { [method: string]: Responder } = {}, tools: JsonObject[] = [tool("t")]) {
    this.#on = {
      initialize: () => ({
        result: {
          protocolVersion: "2025-11-25",
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: "memory", version: "1" },
        },
      }),
      "tools/list": () => ({ result: { tools } }),
      ...on,
    };
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  async send(message: Message): Promise<void> {
    if (this.sendFailure !== undefined) throw this.sendFailure;
    if (this.ended !== undefined) throw new SendError("gone", true);
    this.received.push(message);
    if (!("method" in message) || !("id" in message) || message.id === undefined) return;
    const { id, method } = message;
    const respond = this.#on[method] ??
      (() => ({ error: { code: -32601, message: "Method not found" } }));
    // A copy: what crosses a pipe is never the same object.
    const params: JsonObject = JSON.parse(JSON.stringify(message.params ?? {}));
    await Promise.resolve();
    Promise.resolve(respond(params, this)).then(async (answer) => {
      await this.#busy;
      if (answer !== undefined) this.deliver({ jsonrpc: "2.0", id, ...answer });
    });
  }

  /** A message to the client. */
  deliver(message: Message): void {
    if (this.ended === undefined) this.onmessage?.(message);
  }

  /** Nothing is answered before; what was asked is then. */
  busyUntil(free: Promise<unknown>): void {
    this.#busy = free;
  }

  /** The connection ends. */
  die(reason: string): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    this.onEnd?.();
    this.onclose?.();
  }

  /** Methods received, in order. */
  get methods(): string[] {
    return this.received.map((message) => "method" in message ? message.method : "answer");
  }

  lastLines(): string[] {
    return [];
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.die("rnix closed it");
    return Promise.resolve();
  }
}
