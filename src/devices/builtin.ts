/**
 * Tools that rnix has itself, as a device: a node per tool under `tools/`, where a write is a call and a read gives its last answer.
 *
 * **Contract.** `run` gives exactly one answer for whatever it is given and throws only a `SysError` for what did not happen; what has happened in part is an answer with `isError`. It ends soon after its signal aborts.
 */
import { SysError } from "../base/errors.ts";
import type { EffectClass } from "../base/effect.ts";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type {
  CallOptions,
  Device,
  DeviceFile,
  DeviceOutcome,
  NodeFacts,
  ToolDefinition,
} from "../vfs/device.ts";
import { nothingToRead } from "./nothing_to_read.ts";

export type BuiltinAnswer = Extract<DeviceOutcome, { kind: "answer" | "unknown" }>;

export interface BuiltinTool {
  readonly definition: ToolDefinition;
  readonly effect: EffectClass;
  /** Arguments that fit `definition.inputSchema`. */
  run(input: JsonObject, options: CallOptions): Promise<BuiltinAnswer>;
}

/** What is wrong with arguments, or nothing. */
export type CheckArguments = (schema: JsonObject, input: Json) => Promise<string | undefined>;

/** An answer that is only text. */
export function textAnswer(text: string, isError = false): BuiltinAnswer {
  return { kind: "answer", isError, content: text === "" ? [] : [{ type: "text", text }] };
}

const NODE = /^tools\/([^/]+)$/;
const encoder = new TextEncoder();

export class BuiltinDevice implements Device {
  readonly #tools: Map<string, BuiltinTool>;
  readonly #check: CheckArguments;

  constructor(tools: readonly BuiltinTool[], check: CheckArguments) {
    this.#tools = new Map(tools.map((tool) => [tool.definition.name, tool]));
    this.#check = check;
  }

  open(path: string): DeviceFile {
    const tool = this.#tool(path);
    if (tool !== undefined) return new BuiltinFile(tool, this.#check);
    if (path === "") return new Listing(JSON.stringify(["tools"]));
    if (path === "tools") return new Listing(JSON.stringify(this.#definitions()));
    throw this.#notFound(path);
  }

  stat(path: string): NodeFacts {
    const tool = this.#tool(path);
    if (tool !== undefined) return { kind: "tool", path: `tools/${tool.definition.name}` };
    if (path === "" || path === "tools") return { kind: "folder", path };
    throw this.#notFound(path);
  }

  list(path: string): Promise<string[]> {
    try {
      if (this.stat(path).kind === "folder") {
        return Promise.resolve(path === "" ? ["tools"] : [...this.#tools.keys()]);
      }
      return Promise.reject(new SysError("INVALID", "It is a tool and no folder"));
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }

  #tool(path: string): BuiltinTool | undefined {
    const name = NODE.exec(path)?.[1];
    if (name === undefined) return undefined;
    return [...this.#tools.values()].find(({ definition }) =>
      definition.name === name || encodeURIComponent(definition.name) === name
    );
  }

  #notFound(path: string): SysError {
    const names = [...this.#tools.keys()];
    return new SysError("NOT_FOUND", `There is no "${path}" here`, {
      syscall: "Open",
      hint: `There is: ${["tools", ...names.map((each) => `tools/${each}`)].join(", ")}`,
    });
  }

  #definitions(): ToolDefinition[] {
    return [...this.#tools.values()].map(({ definition }) => definition);
  }
}

class Listing implements DeviceFile {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  write(): Promise<DeviceOutcome> {
    return Promise.resolve({
      kind: "not-sent",
      error: new SysError("INVALID", "A listing can only be read", { syscall: "Write" }),
    });
  }

  read(): Promise<Uint8Array> {
    return Promise.resolve(encoder.encode(this.#text));
  }

  close(): void {}
}

class BuiltinFile implements DeviceFile {
  readonly #tool: BuiltinTool;
  readonly #check: CheckArguments;
  #last: string | undefined;
  #closed = false;

  constructor(tool: BuiltinTool, check: CheckArguments) {
    this.#tool = tool;
    this.#check = check;
  }

  async write(input: Json, options: CallOptions): Promise<DeviceOutcome> {
    const { definition } = this.#tool;
    if (this.#closed) throw new SysError("INVALID", `"${definition.name}" is closed`);
    const args = input === null || input === "" ? {} : input;
    const fault = await this.#check(definition.inputSchema, args);
    if (fault !== undefined || !isJsonObject(args)) {
      return notSent(
        new SysError(
          "INVALID",
          `Arguments of "${definition.name}" don't fit its schema: ${fault ?? "/ must be object"}`,
        ),
      );
    }
    if (options.signal.aborted) {
      return notSent(new SysError("DRIVER", `Call ${options.callId} was cancelled`));
    }
    try {
      const outcome = await this.#tool.run(args, options);
      if (outcome.kind === "answer") this.#last = JSON.stringify(outcome.content);
      return outcome;
    } catch (thrown) {
      if (thrown instanceof SysError) return notSent(thrown);
      throw thrown;
    }
  }

  read(): Promise<Uint8Array> {
    if (this.#closed || this.#last === undefined) {
      return Promise.reject(nothingToRead(this.#tool.definition.name));
    }
    return Promise.resolve(encoder.encode(this.#last));
  }

  close(): void {
    this.#closed = true;
    this.#last = undefined;
  }
}

function notSent(error: SysError): DeviceOutcome {
  return { kind: "not-sent", error };
}
