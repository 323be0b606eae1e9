/**
 * The bytes of requests, made so that the cost of a request doesn't grow with the work already done.
 *
 * Messages are append-only, so each is translated and serialised once; the SDK is given only the new ones and its body holds marks that are replaced by the finished text. Equal requests give equal bytes, whether cached or not.
 */
import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { Message, ModelRequest, ModelTool } from "../model.ts";
import { translateMessage, translateTools, wireCount } from "./translate.ts";

// Between quotes, so that no text inside the body can be taken for one: quotes are escaped there.
const MESSAGES_MARK = "@messages";
const TOOLS_MARK = "@tools";

type Body = Record<string, unknown>;

/** Serialised history and tools of one model's requests. */
export class RequestCache {
  readonly #messages = new WeakMap<Message, string>();
  readonly #tools = new WeakMap<readonly ModelTool[], string>();

  /** Begins a request. */
  begin(request: ModelRequest): RequestBody {
    return new RequestBody(request, this.#messages, this.#tools);
  }
}

/** One request on its way: what goes to the SDK, and what becomes of the body that the SDK makes. */
export class RequestBody {
  readonly #request: ModelRequest;
  readonly #messages: WeakMap<Message, string>;
  readonly #tools: WeakMap<readonly ModelTool[], string>;
  readonly #new: Message[];
  #system = "";
  #chars = 0;

  constructor(
    request: ModelRequest,
    messages: WeakMap<Message, string>,
    tools: WeakMap<readonly ModelTool[], string>,
  ) {
    this.#request = request;
    this.#messages = messages;
    this.#tools = tools;
    this.#new = request.messages.filter((message) => !messages.has(message));
  }

  /** The system text and the messages that aren't serialised yet. */
  get prompt(): LanguageModelV4Prompt {
    const { system } = this.#request;
    const first: LanguageModelV4Prompt = system === ""
      ? []
      : [{ role: "system", content: system.toWellFormed() }];
    return [...first, ...this.#new.map(translateMessage)];
  }

  /** All tools unless they are serialised already. */
  get tools(): LanguageModelV4FunctionTool[] {
    return this.#tools.has(this.#request.tools) ? [] : translateTools(this.#request.tools);
  }

  /** Characters of the finished body. */
  get chars(): number {
    return this.#chars;
  }

  /** Takes the SDK's messages and tools out of its body, serialised, and puts marks in their place. */
  take(body: Body): Body {
    const wire: unknown[] = Array.isArray(body.messages) ? body.messages : [];
    let at = this.#request.system === "" ? 0 : 1;
    this.#system = at === 0 ? "" : JSON.stringify(wire[0]);
    for (const message of this.#new) {
      const count = wireCount(message);
      const texts = wire.slice(at, at + count).map((part) => JSON.stringify(part));
      this.#messages.set(message, texts.join(","));
      at += count;
    }
    if (!this.#tools.has(this.#request.tools)) {
      const tools = Array.isArray(body.tools) && body.tools.length > 0
        ? JSON.stringify(body.tools)
        : "";
      this.#tools.set(this.#request.tools, tools);
    }
    const { messages: _, tools: __, ...rest } = body;
    const marked: Body = { ...rest, messages: MESSAGES_MARK };
    return this.#tools.get(this.#request.tools) === "" ? marked : { ...marked, tools: TOOLS_MARK };
  }

  /** The body as it is sent. */
  finish(serialised: string): string {
    const history = this.#request.messages.map((message) => this.#messages.get(message) ?? "");
    const messages = [this.#system, ...history].filter((text) => text !== "").join(",");
    const tools = this.#tools.get(this.#request.tools) ?? "";
    const body = serialised
      .replace(`"messages":"${MESSAGES_MARK}"`, () => `"messages":[${messages}]`)
      .replace(`"tools":"${TOOLS_MARK}"`, () => `"tools":${tools}`);
    this.#chars = body.length;
    return body;
  }
}
