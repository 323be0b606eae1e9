/**
 * The bytes of requests, made so that the cost of a request hardly grows with the work already done.
 *
 * Messages are never changed, and all but a compacted history only grows, so each is translated, serialised and encoded once; the SDK is given only the new ones, and marks in its body are replaced by the finished bytes. Equal requests give equal bytes, whether cached or not.
 */
import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { SysError } from "../../base/errors.ts";
import type { Message, ModelRequest, ModelTool } from "../model.ts";
import type { Bodies, OutgoingBody } from "./outgoing_body.ts";
import { type Translator, wireCount } from "./translate.ts";

// Between quotes, so that no text inside the body can be taken for one: quotes are escaped there.
const MESSAGES_MARK = "@messages";
const TOOLS_MARK = "@tools";
const COMMA = 0x2c;

type Body = Record<string, unknown>;
type Bytes = Uint8Array<ArrayBuffer>;

const encoder = new TextEncoder();

/** Finished bytes of messages and tools. */
export class SplicedBodies implements Bodies {
  readonly translator: Translator;
  readonly #messages = new WeakMap<Message, Bytes>();
  readonly #tools = new WeakMap<readonly ModelTool[], Bytes>();
  // The history of the last request in one piece: the next one is the same and a little more.
  #joined: Bytes = new Uint8Array(4096);
  #length = 0;
  #pieces: readonly Message[] = [];

  constructor(translator: Translator) {
    this.translator = translator;
  }

  begin(request: ModelRequest): OutgoingBody {
    return new SplicedBody(request, this);
  }

  has(message: Message): boolean {
    return this.#messages.has(message);
  }

  put(message: Message, wire: readonly unknown[]): void {
    this.#messages.set(message, encoder.encode(wire.map((part) => JSON.stringify(part)).join(",")));
  }

  tools(tools: readonly ModelTool[]): Bytes | undefined {
    return this.#tools.get(tools);
  }

  putTools(tools: readonly ModelTool[], wire: unknown): void {
    const text = Array.isArray(wire) && wire.length > 0 ? JSON.stringify(wire) : "";
    this.#tools.set(tools, encoder.encode(text));
  }

  /** All messages of a history, a comma before each. Valid until the next call. */
  history(messages: readonly Message[]): Uint8Array {
    // A history that was compacted is another one, however it ends.
    const goesOn = this.#pieces.length <= messages.length &&
      this.#pieces.every((message, index) => message === messages[index]);
    if (!goesOn) {
      this.#pieces = [];
      this.#length = 0;
    }
    for (const message of messages.slice(this.#pieces.length)) {
      const bytes = this.#messages.get(message);
      if (bytes === undefined) throw new SysError("INTERNAL", "A message was not serialised");
      if (bytes.length === 0) continue;
      this.#reserve(bytes.length + 1);
      this.#joined[this.#length++] = COMMA;
      this.#joined.set(bytes, this.#length);
      this.#length += bytes.length;
    }
    this.#pieces = messages;
    return this.#joined.subarray(0, this.#length);
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#joined.length) return;
    const grown = new Uint8Array(Math.max(this.#joined.length * 2, this.#length + more));
    grown.set(this.#joined.subarray(0, this.#length));
    this.#joined = grown;
  }
}

class SplicedBody implements OutgoingBody {
  readonly #request: ModelRequest;
  readonly #cache: SplicedBodies;
  readonly #new: Message[];
  #system: Bytes = new Uint8Array();
  #bytes = 0;

  constructor(request: ModelRequest, cache: SplicedBodies) {
    // A copy: the owner may append while this request is on its way.
    this.#request = { ...request, messages: [...request.messages] };
    this.#cache = cache;
    this.#new = request.messages.filter((message) => !cache.has(message));
  }

  /** The system text and the messages that aren't serialised yet. */
  get prompt(): LanguageModelV4Prompt {
    const { system } = this.#request;
    return this.#cache.translator.prompt(system, this.#new);
  }

  /** All tools unless they are serialised already. */
  get tools(): LanguageModelV4FunctionTool[] {
    const { tools } = this.#request;
    return this.#cache.tools(tools) === undefined ? this.#cache.translator.tools(tools) : [];
  }

  /** Size of the finished body. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes the SDK's messages and tools out of its body, serialised, and puts marks in their place. */
  take(body: Body): Body {
    const { system, tools } = this.#request;
    const wire: unknown[] = Array.isArray(body.messages) ? body.messages : [];
    let at = system === "" ? 0 : 1;
    if (at === 1) this.#system = encoder.encode(JSON.stringify(wire[0]));
    for (const message of this.#new) {
      const count = wireCount(message);
      this.#cache.put(message, wire.slice(at, at + count));
      at += count;
    }
    if (this.#cache.tools(tools) === undefined) this.#cache.putTools(tools, body.tools);
    const { messages: _, tools: __, ...rest } = body;
    const marked: Body = { ...rest, messages: MESSAGES_MARK };
    return this.#cache.tools(tools)?.length === 0 ? marked : { ...marked, tools: TOOLS_MARK };
  }

  /** The body as it is sent. */
  finish(serialised: string): Bytes {
    const { messages, tools } = this.#request;
    const history = this.#cache.history(messages);
    // Each has its comma; the first of all must not.
    const start = this.#system.length === 0 ? history.subarray(1) : history;
    const [before = "", afterMessages = ""] = split(serialised, MESSAGES_MARK);
    const [between = "", after] = split(afterMessages, TOOLS_MARK);
    const pieces: Uint8Array[] = [encoder.encode(`${before}[`), this.#system, start];
    if (after === undefined) pieces.push(encoder.encode(`]${between}`));
    else {
      const toolBytes = this.#cache.tools(tools) ?? encoder.encode("[]");
      pieces.push(encoder.encode(`]${between}`), toolBytes, encoder.encode(after));
    }
    const body = concat(pieces);
    this.#bytes = body.length;
    return body;
  }
}

/** The text around a mark's string literal; only the whole text without one. */
function split(text: string, mark: string): string[] {
  const literal = `:"${mark}"`;
  const at = text.indexOf(literal);
  return at < 0 ? [text] : [text.slice(0, at + 1), text.slice(at + literal.length)];
}

function concat(pieces: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
