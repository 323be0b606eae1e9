/**
 * MCP content blocks as text: what a model that takes only text is given, and what counts against a result's limit.
 *
 * Binary content is named with its type and size and never printed: base64 as text would cost hundreds of thousands of tokens.
 */
import { isJsonObject, type Json, type JsonObject } from "./json.ts";

/** Base64 from this length on is binary content, wherever it stands. UTF-16 units. */
const BINARY_CHARS_MIN = 1024;
const BASE64 = /^(?:data:[^,]{0,200};base64,)?[A-Za-z0-9+/]+={0,2}$/;

/** Whether a block's payload is binary: an image, audio, or a resource given as a blob. */
export function isBinaryBlock(block: Json): boolean {
  if (!isJsonObject(block)) return false;
  if (block.type === "image" || block.type === "audio") return true;
  return block.type === "resource" && isJsonObject(block.resource) &&
    typeof block.resource.blob === "string";
}

/** A block as text; `""` for an empty text block. Kinds that are not known become their JSON. */
export function blockText(block: Json): string {
  if (!isJsonObject(block)) return typeof block === "string" ? block : jsonWithoutBinary(block);
  switch (block.type) {
    case "text":
      return textOf(block.text);
    case "image":
    case "audio":
      return `[${block.type} ${textOf(block.mimeType)}, ${payloadSize(block.data)}]`;
    case "resource":
      return isJsonObject(block.resource) ? resourceText(block.resource) : jsonWithoutBinary(block);
    case "resource_link":
      return `[resource ${
        [block.uri, block.name, block.mimeType].map(textOf).filter(Boolean).join(", ")
      }]`;
    default:
      return jsonWithoutBinary(block);
  }
}

/** A value as JSON for a model, binary content in it named by its size. */
export function jsonWithoutBinary(value: Json): string {
  return JSON.stringify(
    value,
    (_, member: Json) =>
      typeof member === "string" && isBinaryText(member)
        ? `[binary, ${payloadSize(member.slice(member.indexOf(",") + 1))}]`
        : member,
  );
}

/** Whether a text is the base64 of bytes: all its kinds of letters are in it, as in no text of people or of programs that is that long. */
function isBinaryText(text: string): boolean {
  return text.length >= BINARY_CHARS_MIN && BASE64.test(text) &&
    [/[a-z]/, /[A-Z]/, /[0-9]/, /[+/]/].every((kind) => kind.test(text.slice(-BINARY_CHARS_MIN)));
}

function resourceText(resource: JsonObject): string {
  const uri = textOf(resource.uri);
  if (typeof resource.text === "string") return `[resource ${uri}]\n${resource.text}`;
  const facts = [uri, textOf(resource.mimeType), payloadSize(resource.blob)].filter(Boolean);
  return `[resource ${facts.join(", ")}]`;
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Size of base64 text's content, in words. */
function payloadSize(data: Json | undefined): string {
  const bytes = Math.floor(textOf(data).replace(/=+$/, "").length * 3 / 4);
  return bytes < 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024)} KB`;
}

/** All that a result says in text, blocks apart by a line end: structured content counts where there are no blocks, and nothing at all is `(empty)`. */
export function resultText(result: { content: readonly Json[]; structured?: Json }): string {
  const text = result.content.map(blockText).filter((part) => part !== "").join("\n");
  if (text !== "") return text;
  return result.structured === undefined ? "(empty)" : jsonWithoutBinary(result.structured);
}
