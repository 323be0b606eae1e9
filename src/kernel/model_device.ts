/** `/dev/llm/{provider}`: what is known of a process's model. It can be looked at; a request to it is the program's alone, so that each is journaled as a turn and counted. */
import { SysError } from "../base/errors.ts";
import type { Device, DeviceFile, NodeFacts } from "../vfs/device.ts";
import type { ModelPort } from "./ports.ts";
import type { PromptHead } from "./program.ts";

/** Path of a provider's model. */
export function modelPath(provider: string): string {
  return `/dev/llm/${provider}`;
}

export class ModelDevice<P extends PromptHead> implements Device {
  readonly #port: ModelPort<P>;

  constructor(port: ModelPort<P>) {
    this.#port = port;
  }

  open(path: string): DeviceFile {
    this.#require(path);
    const { provider, model, requestMsMax, price, toolsMax } = this.#port;
    const facts = {
      provider,
      model,
      request_ms_max: requestMsMax,
      ...(price === undefined ? {} : { price }),
      ...(toolsMax === undefined ? {} : { tools_max: toolsMax }),
    };
    let isClosed = false;
    return {
      write: () => Promise.resolve({ kind: "not-sent", error: notWritable() }),
      read: () =>
        isClosed
          ? Promise.reject(new SysError("INVALID", `"${modelPath(provider)}" is closed`))
          : Promise.resolve(new TextEncoder().encode(JSON.stringify(facts))),
      close: () => void (isClosed = true),
    };
  }

  stat(path: string): NodeFacts {
    this.#require(path);
    return { kind: "model", path: "" };
  }

  list(path: string): Promise<string[]> {
    this.#require(path);
    return Promise.reject(new SysError("INVALID", "It is a model and no folder"));
  }

  #require(path: string): void {
    if (path === "") return;
    throw new SysError("NOT_FOUND", `There is no "${path}" below a model`, {
      hint: `There is: ${modelPath(this.#port.provider)}`,
    });
  }
}

/** What a person is told who writes to a model. */
export function notWritable(): SysError {
  return new SysError("INVALID", "A model can't be written to", {
    hint: 'Its requests are turns of a run: rnix run AGENT "…", or resume one with a new intent',
  });
}
