/** From the wire's answers to a device's outcome: every answer is a known outcome, an error included. */
import {
  isJsonObject,
  type Json,
  JSON_DEPTH_MAX,
  type JsonObject,
  nestsDeeper,
  wellFormed,
} from "../../base/json.ts";
import type { RawAnswer } from "../../mcp/channel.ts";
import { unanswerable } from "../../mcp/server_requests.ts";
import type { DeviceOutcome, ToolDefinition } from "../../vfs/device.ts";
import { checkFor } from "./schema_check.ts";

type Answer = Extract<DeviceOutcome, { kind: "answer" }>;

const textBlock = (text: string): JsonObject => ({ type: "text", text });

/**
 * The outcome that an answer is. Never throws: the effect has happened, so what is odd about the answer becomes a warning.
 */
export async function toOutcome(answer: RawAnswer, tool: ToolDefinition): Promise<Answer> {
  if (answer.kind === "rpc-error") {
    const message = `MCP error ${answer.code}: ${answer.message}`;
    return { kind: "answer", isError: true, content: [wellFormed(textBlock(message))] };
  }
  if (nestsDeeper(answer.result)) return tooDeep(tool);
  const result = wellFormed(answer.result);
  if (!isJsonObject(result)) {
    return {
      kind: "answer",
      isError: false,
      content: [textBlock(JSON.stringify(result))],
      warnings: [`Result of "${tool.name}" is no object`],
    };
  }
  if (result["resultType"] === "input_required") return inputRequired(result, tool);
  return await fromResult(result, tool);
}

async function fromResult(result: JsonObject, tool: ToolDefinition): Promise<Answer> {
  const { content, structuredContent, isError } = result;
  const warnings: string[] = [];
  let blocks: Json[] = [];
  if (Array.isArray(content)) blocks = content;
  else if (content !== undefined) {
    blocks = [
      typeof content === "string" ? textBlock(content) : textBlock(JSON.stringify(content)),
    ];
    warnings.push(`Content of "${tool.name}" is no list`);
  } else if (structuredContent === undefined) {
    warnings.push(`Result of "${tool.name}" has no content`);
  }
  if (isError !== true && tool.outputSchema !== undefined) {
    const fault = structuredContent === undefined
      ? "is missing"
      : (await checkFor(tool.outputSchema))(structuredContent);
    if (fault !== undefined) {
      warnings.push(`Structured output of "${tool.name}" doesn't fit its schema: ${fault}`);
    }
  }
  return {
    kind: "answer",
    isError: isError === true,
    content: blocks,
    ...(structuredContent === undefined ? {} : { structured: structuredContent }),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}

/** Nothing behind this place could handle such a value; that the call has run is known all the same. */
function tooDeep(tool: ToolDefinition): Answer {
  return {
    kind: "answer",
    isError: true,
    content: [
      textBlock(
        `Tool "${tool.name}" has run, but its answer is nested too deep to be read (more than ${JSON_DEPTH_MAX} levels)`,
      ),
    ],
  };
}

/** What the server wants in the middle of a call can't be given, or not as often as it asks; the call has failed. */
function inputRequired(result: JsonObject, tool: ToolDefinition): Answer {
  const kinds = unanswerable(result);
  const why = kinds.length > 0
    ? `asks in the middle of the call for what rnix doesn't offer (${kinds.join(", ")})`
    : "goes on asking for input in the middle of the call";
  const content = wellFormed(textBlock(`Tool "${tool.name}" ${why}; the call was not completed`));
  return { kind: "answer", isError: true, content: [content] };
}

/** What `read` gives after a call: text blocks as text, anything else as the JSON of the whole answer. */
export function answerText(answer: Answer): string {
  const texts = answer.content.map((block) =>
    isJsonObject(block) && block["type"] === "text" && typeof block["text"] === "string"
      ? block["text"]
      : undefined
  );
  if (texts.length > 0 && texts.every((text) => text !== undefined)) return texts.join("\n");
  if (texts.length === 0 && answer.structured !== undefined) {
    return JSON.stringify(answer.structured);
  }
  if (texts.length === 0) return "(empty)";
  return JSON.stringify({
    content: answer.content,
    ...(answer.structured === undefined ? {} : { structuredContent: answer.structured }),
    ...(answer.isError ? { isError: true } : {}),
  });
}
