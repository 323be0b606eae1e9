/**
 * The open nodes of a mounted server: listings, tools, resources.
 *
 * Reading a listing gives JSON; writing to a tool calls it and reading gives the last answer; a resource is read anew each time.
 */
import { SysError } from "../../base/errors.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import type { ToolCallOutcome } from "../../mcp/exchange.ts";
import type { McpSession } from "../../mcp/session.ts";
import type { CallOptions, DeviceFile, DeviceOutcome, ToolDefinition } from "../../vfs/device.ts";
import { answerText, toOutcome } from "./answers.ts";
import { asArguments, checkFor } from "./schema_check.ts";
import { nothingToRead } from "../nothing_to_read.ts";

/** What a node may ask of its mount. */
export interface NodeHost {
  readonly server: string;
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  /** The tool as it is listed now. */
  tool(name: string): ToolDefinition | undefined;
  /** A live session; rejects with DEVICE_DISCONNECTED, or the signal's reason once it aborts. */
  session(signal?: AbortSignal): Promise<McpSession>;
}

const encoder = new TextEncoder();

function notSent(error: SysError): DeviceOutcome {
  return { kind: "not-sent", error };
}

/** A node that can only be read. */
export class ReadOnlyNode implements DeviceFile {
  readonly #path: string;
  readonly #content: () => Promise<string>;
  #closed = false;

  constructor(path: string, content: () => Promise<string>) {
    this.#path = path;
    this.#content = content;
  }

  write(_input: Json, _options: CallOptions): Promise<DeviceOutcome> {
    if (this.#closed) return Promise.reject(closedError(this.#path));
    return Promise.resolve(notSent(
      new SysError("INVALID", `"${this.#path}" can only be read`, {
        hint: "To call a tool, write its arguments to tools/<name>",
      }),
    ));
  }

  async read(): Promise<Uint8Array> {
    if (this.#closed) throw closedError(this.#path);
    return encoder.encode(await this.#content());
  }

  close(): void {
    this.#closed = true;
  }
}

/** A tool: a write is a call. */
export class ToolNode implements DeviceFile {
  readonly #host: NodeHost;
  readonly #name: string;
  #last: string | undefined;
  #closed = false;

  constructor(host: NodeHost, name: string) {
    this.#host = host;
    this.#name = name;
  }

  async write(input: Json, options: CallOptions): Promise<DeviceOutcome> {
    if (this.#closed) throw closedError(`tools/${this.#name}`);
    const tool = this.#host.tool(this.#name);
    if (tool === undefined) return notSent(this.#withdrawn());
    const args = asArguments(input);
    const fault = args === undefined
      ? "/ must be object"
      : (await checkFor(tool.inputSchema))(args);
    if (args === undefined || fault !== undefined) {
      return notSent(
        new SysError("INVALID", `Arguments of "${tool.name}" don't fit its schema: ${fault}`),
      );
    }
    return this.#keep(await this.#call(tool, args, options));
  }

  read(): Promise<Uint8Array> {
    if (this.#closed) return Promise.reject(closedError(`tools/${this.#name}`));
    if (this.#last === undefined) return Promise.reject(nothingToRead(this.#name));
    return Promise.resolve(encoder.encode(this.#last));
  }

  close(): void {
    this.#closed = true;
    this.#last = undefined;
  }

  /** Sends once; a second time only where it is proven that the first never reached the server. */
  async #call(
    tool: ToolDefinition,
    args: JsonObject,
    options: CallOptions,
  ): Promise<DeviceOutcome> {
    for (let attempt = 1;; attempt += 1) {
      let session: McpSession;
      try {
        session = await this.#host.session(options.signal);
      } catch (thrown) {
        return notSent(thrown instanceof SysError ? thrown : this.#cancelled(options, thrown));
      }
      const outcome = await session.callTool({
        server: this.#host.server,
        tool: tool.name,
        arguments: args,
        callId: options.callId,
        idempotencyKey: options.idempotencyKey,
        traceparent: options.traceparent,
        repeatable: options.repeatable,
        signal: options.signal,
        cancelGraceMs: options.cancelGraceMs,
        timeoutMs: this.#host.timeoutMs,
        maxTimeoutMs: this.#host.maxTimeoutMs,
        onProgress: options.onProgress,
      });
      if (outcome.kind === "not-sent" && outcome.lost && !session.alive && attempt === 1) continue;
      return await toDeviceOutcome(outcome, tool);
    }
  }

  #keep(outcome: DeviceOutcome): DeviceOutcome {
    if (outcome.kind === "answer") this.#last = answerText(outcome);
    return outcome;
  }

  #withdrawn(): SysError {
    return new SysError(
      "NOT_FOUND",
      `Server "${this.#host.server}" doesn't list "${this.#name}" any more`,
    );
  }

  #cancelled(options: CallOptions, cause: unknown): SysError {
    return new SysError("DRIVER", `Call ${options.callId} was cancelled before it was sent`, {
      cause,
    });
  }
}

async function toDeviceOutcome(
  outcome: ToolCallOutcome,
  tool: ToolDefinition,
): Promise<DeviceOutcome> {
  switch (outcome.kind) {
    case "not-sent":
      return notSent(outcome.error);
    case "unknown": {
      const { cause, error, late } = outcome;
      return {
        kind: "unknown",
        cause,
        error,
        late: late.then((answer) => answer === undefined ? undefined : toOutcome(answer, tool)),
      };
    }
    case "result":
    case "rpc-error":
      return await toOutcome(outcome, tool);
  }
}

function closedError(path: string): SysError {
  return new SysError("INVALID", `"${path}" is closed`, { hint: "Open it again" });
}
