/**
 * Messages and tools in rnix's form → the SDK's prompt.
 *
 * What a strict provider refuses must not get out: lone surrogates, empty content, tool names that the model made up with characters of its own, argument text that isn't JSON. Equal messages give equal prompts.
 */
import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { resultText } from "../../base/content_block.ts";
import { isJsonObject, type Json, type JsonObject, wellFormed } from "../../base/json.ts";
import type { AssistantPart, Message, ModelTool, ToolResult } from "../model.ts";
import { projectSchema } from "../schema_projection.ts";

/** Stands where there is nothing to say: providers refuse empty content. */
const EMPTY = "(empty)";

/** Put before the text of a failed call: the wire has no field for it. */
const ERROR_MARK = "[tool error]\n";

/** Longest function name that OpenAI-shaped APIs take. */
const NAME_CHARS_MAX = 64;

/** How many messages on the wire one of ours becomes. */
export function wireCount(message: Message): number {
  return message.role === "tool" ? message.results.length : 1;
}

/** One message as the SDK's. */
export function translateMessage(message: Message): LanguageModelV4Message {
  switch (message.role) {
    case "user":
      return { role: "user", content: [{ type: "text", text: speech(message.text) }] };
    case "tool":
      return { role: "tool", content: message.results.map(translateResult) };
    case "assistant":
      return { role: "assistant", content: translateParts(message.parts, message.callIds) };
  }
}

/** Text that is well formed and not empty. */
function speech(text: string): string {
  return text === "" ? EMPTY : text.toWellFormed();
}

type AssistantContent = Extract<LanguageModelV4Message, { role: "assistant" }>["content"];

function translateParts(
  parts: readonly AssistantPart[],
  callIds: readonly string[],
): AssistantContent {
  const content: AssistantContent = [];
  let calls = 0;
  for (const part of parts) {
    if (part.type === "tool-call") {
      content.push(translateCall(part, callIds[calls++] ?? part.provider_id));
    } else if (part.text !== "") {
      content.push({ type: part.type, text: part.text.toWellFormed(), ...optionsOf(part.meta) });
    }
  }
  const speaks = content.some((part) => part.type === "text" || part.type === "tool-call");
  return speaks ? content : [...content, { type: "text", text: EMPTY }];
}

function translateCall(
  part: Extract<AssistantPart, { type: "tool-call" }>,
  id: string,
): LanguageModelV4ToolCallPart {
  // The result of a malformed call tells the model what was wrong; servers that parse history need JSON here.
  const input = part.malformed === undefined ? wellFormed(part.input) : {};
  return {
    type: "tool-call",
    toolCallId: id,
    toolName: functionName(part.tool),
    // The SDK passes a string on as JSON text.
    input: typeof input === "string" ? JSON.stringify(input) : input,
    ...optionsOf(part.meta),
  };
}

function translateResult(result: ToolResult): LanguageModelV4ToolResultPart {
  const text = resultText(result).toWellFormed();
  return {
    type: "tool-result",
    toolCallId: result.id,
    toolName: functionName(result.tool),
    output: { type: "text", value: result.isError ? ERROR_MARK + text : text },
  };
}

/** A name that the API takes: a model may call a tool that never was. */
function functionName(name: string): string {
  const valid = name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, NAME_CHARS_MAX);
  return valid === "" ? "unnamed" : valid;
}

function optionsOf(meta: JsonObject | undefined): { providerOptions?: SharedV4ProviderOptions } {
  if (meta === undefined) return {};
  const options: SharedV4ProviderOptions = {};
  for (const [provider, facts] of Object.entries(meta)) {
    if (isJsonObject(facts)) options[provider] = facts;
  }
  return { providerOptions: options };
}

/** The tools whose schemas can be projected, in their order; the others are left out (`projectSchema` says why). */
export function translateTools(tools: readonly ModelTool[]): LanguageModelV4FunctionTool[] {
  const translated: LanguageModelV4FunctionTool[] = [];
  for (const tool of tools) {
    const projection = projectSchema(tool.inputSchema);
    if ("refused" in projection) continue;
    const description = [tool.description, projection.note ?? ""].filter((text) => text !== "");
    translated.push({
      type: "function",
      name: tool.name,
      ...(description.length === 0 ? {} : { description: description.join("\n\n").toWellFormed() }),
      inputSchema: asSchema(wellFormed(projection.schema)),
    });
  }
  return translated;
}

function asSchema(schema: Json): LanguageModelV4FunctionTool["inputSchema"] {
  return isJsonObject(schema) ? schema : {};
}
