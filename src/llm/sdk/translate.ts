/**
 * Messages and tools in rnix's form → the SDK's prompt, by the rules of a provider.
 *
 * What a strict provider refuses must not get out: lone surrogates, empty content, tool names that the model made up with characters of its own, argument text that isn't JSON. Equal messages give equal prompts.
 */
import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { resultText } from "../../base/content_block.ts";
import {
  isJsonObject,
  type Json,
  type JsonObject,
  sha256Hex,
  wellFormed,
} from "../../base/json.ts";
import type { AssistantPart, Message, ModelTool, ToolResult } from "../model.ts";
import type { TranslationRules } from "./dialect.ts";
import { imagesIn } from "./image.ts";

/** Stands where there is nothing to say: providers refuse empty content. */
const EMPTY = "(empty)";

/** Put before the text of a failed call where the wire has no field for it. */
const ERROR_MARK = "[tool error]\n";

/** Longest function name and call id that the APIs take. */
const NAME_CHARS_MAX = 64;

type AssistantContent = Extract<LanguageModelV4Message, { role: "assistant" }>["content"];
type ToolCall = Extract<AssistantPart, { type: "tool-call" }>;

/** How many messages on the wire of chat completions one of ours becomes. */
export function wireCount(message: Message): number {
  return message.role === "tool" ? message.results.length : 1;
}

/** Translates for one model; what was translated once isn't again. */
export class Translator {
  readonly #rules: TranslationRules;
  readonly #messages = new WeakMap<Message, LanguageModelV4Message>();
  readonly #tools = new WeakMap<readonly ModelTool[], LanguageModelV4FunctionTool[]>();

  constructor(rules: TranslationRules) {
    this.#rules = rules;
  }

  /** Why a tool with this schema can't be offered; undefined when it can. */
  refuses(schema: JsonObject): string | undefined {
    const projection = this.#rules.project(schema);
    return "refused" in projection ? projection.refused : undefined;
  }

  prompt(system: string, messages: readonly Message[]): LanguageModelV4Prompt {
    const first: LanguageModelV4Prompt = system === ""
      ? []
      : [{ role: "system", content: system.toWellFormed() }];
    return [...first, ...messages.map((message) => this.#message(message))];
  }

  /** The tools whose schemas can be projected, in their order; the others are left out. */
  tools(tools: readonly ModelTool[]): LanguageModelV4FunctionTool[] {
    const known = this.#tools.get(tools);
    if (known !== undefined) return known;
    const translated = tools.map((tool) => this.#tool(tool)).filter((tool) => tool !== undefined);
    this.#tools.set(tools, translated);
    return translated;
  }

  #tool(tool: ModelTool): LanguageModelV4FunctionTool | undefined {
    const projection = this.#rules.project(tool.inputSchema);
    if ("refused" in projection) return undefined;
    const whole = [tool.description, projection.note ?? ""].filter((text) => text !== "")
      .join("\n\n").toWellFormed();
    const [description, rest] = splitDescription(whole, this.#rules.descriptionCharsMax);
    const schema = asSchema(wellFormed(projection.schema));
    const own = typeof schema.description === "string" ? [schema.description] : [];
    return {
      type: "function",
      name: tool.name,
      ...(description === "" ? {} : { description }),
      inputSchema: rest === "" ? schema : { ...schema, description: [rest, ...own].join("\n\n") },
    };
  }

  #message(message: Message): LanguageModelV4Message {
    const known = this.#messages.get(message);
    if (known !== undefined) return known;
    const translated = this.#translate(message);
    this.#messages.set(message, translated);
    return translated;
  }

  #translate(message: Message): LanguageModelV4Message {
    switch (message.role) {
      case "user":
        return { role: "user", content: [{ type: "text", text: speech(message.text) }] };
      case "tool":
        return { role: "tool", content: message.results.map((result) => this.#result(result)) };
      case "assistant":
        return { role: "assistant", content: this.#parts(message.parts, message.callIds) };
    }
  }

  #parts(parts: readonly AssistantPart[], callIds: readonly string[]): AssistantContent {
    const content: AssistantContent = [];
    let calls = 0;
    for (const part of parts) {
      if (part.type === "tool-call") {
        content.push(this.#call(part, callIds[calls++] ?? part.provider_id));
      } else if (this.#goesBack(part)) {
        content.push({ type: part.type, text: part.text.toWellFormed(), ...optionsOf(part.meta) });
      }
    }
    const speaks = content.some((part) => part.type === "text" || part.type === "tool-call");
    return speaks ? content : [...content, { type: "text", text: EMPTY }];
  }

  #goesBack(part: Exclude<AssistantPart, ToolCall>): boolean {
    const { metaKey, reasoningNeedsMeta, keepsEmptyText } = this.#rules;
    const isSigned = isJsonObject(part.meta?.[metaKey]);
    if (part.type === "reasoning") return reasoningNeedsMeta ? isSigned : part.text !== "";
    return part.text.trim() !== "" || keepsEmptyText && isSigned;
  }

  #call(part: ToolCall, id: string): LanguageModelV4ToolCallPart {
    // The result of a malformed call tells the model what was wrong; servers that parse history need an object here.
    const input = part.malformed === undefined ? wellFormed(part.input) : {};
    return {
      type: "tool-call",
      toolCallId: this.#callId(id),
      toolName: functionName(part.tool),
      input: isJsonObject(input) ? input : { value: input },
      ...optionsOf(part.meta),
    };
  }

  #result(result: ToolResult): LanguageModelV4ToolResultPart {
    return {
      type: "tool-result",
      toolCallId: this.#callId(result.id),
      toolName: functionName(result.tool),
      output: this.#output(result),
    };
  }

  #output(result: ToolResult): LanguageModelV4ToolResultOutput {
    const { imageTypes, marksErrors } = this.#rules;
    const text = speech(resultText(result));
    const images = imagesIn(result.content, imageTypes);
    if (images.length === 0) {
      if (!result.isError) return { type: "text", value: text };
      return marksErrors
        ? { type: "error-text", value: text }
        : { type: "text", value: ERROR_MARK + text };
    }
    // Images are named in the text, in their places; one text, since some APIs take only one.
    return {
      type: "content",
      value: [
        { type: "text", text: result.isError ? ERROR_MARK + text : text },
        ...images.map(({ mediaType, data }) => ({
          type: "file" as const,
          mediaType,
          data: { type: "data" as const, data },
        })),
      ],
    };
  }

  /** An id that another provider gave may have characters that this one refuses. */
  #callId(id: string): string {
    if (!this.#rules.plainCallIds || /^[A-Za-z0-9_-]{1,64}$/.test(id)) return id;
    const plain = id.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, NAME_CHARS_MAX - 9);
    return `${plain}_${sha256Hex(id).slice(0, 8)}`;
  }
}

/** Ends a description that goes on in the schema's. */
const GOES_ON = " … (goes on in the description of the parameters)";

/** As much as an API takes, cut between words where it can be, and the rest. */
function splitDescription(whole: string, charsMax = Infinity): [head: string, rest: string] {
  if (whole.length <= charsMax) return [whole, ""];
  const end = charsMax - GOES_ON.length;
  const space = whole.slice(0, end).search(/\s\S*$/);
  const border = /[\ud800-\udbff]/.test(whole.charAt(end - 1)) ? end - 1 : end;
  const at = space > end / 2 ? space : border;
  return [whole.slice(0, at) + GOES_ON, whole.slice(at).trim()];
}

/** Text that is well formed and not empty. */
function speech(text: string): string {
  return text.trim() === "" ? EMPTY : text.toWellFormed();
}

/** A name that every API takes: a model may call a tool that never was. */
function functionName(name: string): string {
  const valid = name.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (valid === "") return "unnamed";
  return (/^[A-Za-z_]/.test(valid) ? valid : `_${valid}`).slice(0, NAME_CHARS_MAX);
}

function optionsOf(meta: JsonObject | undefined): { providerOptions?: SharedV4ProviderOptions } {
  if (meta === undefined) return {};
  const options: SharedV4ProviderOptions = {};
  for (const [provider, facts] of Object.entries(meta)) {
    if (isJsonObject(facts)) options[provider] = facts;
  }
  return { providerOptions: options };
}

function asSchema(schema: Json): LanguageModelV4FunctionTool["inputSchema"] {
  return isJsonObject(schema) ? schema : {};
}
