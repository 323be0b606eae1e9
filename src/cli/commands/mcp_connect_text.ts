/** Answers and news of a server as lines for people. Everything here is a server's text: it is made fit for a terminal by whoever prints it to one, tables and lines of news are already. */
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ServerFacts, ServerNews } from "../../base/server_operations.ts";
import { bytes, counted, elapsed } from "../amounts.ts";
import { oneLine } from "../plain_text.ts";
import { textTable } from "../table.ts";
import { LINE_COMMANDS } from "./mcp_connect_lines.ts";

/** What a command gave, as text. `width`: of the terminal. */
export function answerText(command: string, data: Json, width: number | undefined): string {
  const object = isJsonObject(data) ? data : {};
  switch (command) {
    case "tools":
      return listing("tools", object["tools"], ["name", "description"], width);
    case "resources":
      return listing("resources", object["resources"], ["uri", "name"], width);
    case "templates":
      return listing("templates", object["resourceTemplates"], ["uriTemplate", "name"], width);
    case "prompts":
      return listing("prompts", object["prompts"], ["name", "description"], width);
    case "call":
      return callText(object);
    case "read":
      return contentsText(object["contents"]);
    case "prompt":
      return messagesText(object);
    case "tool":
      return toolText(object);
    default:
      return pretty(data);
  }
}

/** What the server says of itself. */
export function infoText(facts: ServerFacts): string {
  const { server_info, protocol_version, transport, tools, capabilities, instructions } = facts;
  const name = typeof server_info?.["name"] === "string" ? server_info["name"] : facts.server;
  const version = typeof server_info?.["version"] === "string" ? ` ${server_info["version"]}` : "";
  const offers = Object.keys(capabilities);
  return [
    oneLine(`${name}${version}`),
    oneLine(`MCP ${protocol_version} over ${transport}, connected in ${elapsed(facts.connect_ms)}`),
    oneLine(`offers ${offers.length === 0 ? "nothing" : offers.join(", ")}`),
    counted(tools, "tool"),
    ...(instructions === undefined ? [] : ["", instructions]),
  ].join("\n");
}

/** The commands. */
export function helpText(): string {
  return textTable(
    [{ heading: "COMMAND" }, { heading: "" }],
    LINE_COMMANDS.map(({ name, form, summary }) => [`${name} ${form}`.trim(), summary]),
  ).join("\n");
}

/** News, on one line. */
export function newsText(news: ServerNews): string {
  if (news.kind === "warning") return oneLine(`warning: ${news.message}`);
  const params = isJsonObject(news.params) ? news.params : {};
  if (news.kind === "asked") {
    return oneLine(`${askedText(news.method, params)}: ${told(news.answer)}`);
  }
  if (news.method === "notifications/message") {
    const { level, logger, data } = params;
    const from = typeof logger === "string" ? ` ${logger}` : "";
    return oneLine(`log ${String(level ?? "")}${from}: ${inline(data)}`);
  }
  if (news.method === "notifications/progress") return oneLine(progressText(params));
  const name = news.method.replace(/^notifications\//, "");
  return oneLine(Object.keys(params).length === 0 ? name : `${name}: ${inline(news.params)}`);
}

function askedText(method: string, params: JsonObject): string {
  const { message } = params;
  return typeof message === "string"
    ? `the server asks (${method}) "${message}"`
    : `the server asks (${method})`;
}

function told(answer: JsonObject): string {
  const { result, error } = answer;
  if (isJsonObject(error)) return `refused, ${String(error["message"] ?? "")}`;
  const action = isJsonObject(result) ? result["action"] : undefined;
  if (action === "accept" && isJsonObject(result)) {
    return `answered with ${inline(result["content"])}`;
  }
  return action === undefined ? `answered with ${inline(result)}` : "declined";
}

function progressText({ progress, total, message }: JsonObject): string {
  const of = total === undefined ? "" : ` of ${inline(total)}`;
  return `progress ${inline(progress)}${of}${message === undefined ? "" : `: ${inline(message)}`}`;
}

function inline(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

function listing(
  what: string,
  items: Json | undefined,
  keys: readonly [string, string],
  width: number | undefined,
): string {
  const rows = (Array.isArray(items) ? items : []).map((item) =>
    keys.map((key) => {
      const value = isJsonObject(item) ? item[key] : undefined;
      return typeof value === "string" ? oneLine(firstLine(value)) : "";
    })
  );
  if (rows.length === 0) return `No ${what}.`;
  const columns = keys.map((key) => ({
    heading: key === "uriTemplate" ? "URI" : key.toUpperCase(),
  }));
  return textTable(columns, rows, { width }).join("\n");
}

function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0] ?? "";
}

function callText(result: JsonObject): string {
  const { content, structuredContent } = result;
  const blocks = Array.isArray(content) ? content.map(blockText) : [];
  if (blocks.length > 0) return blocks.join("\n");
  return structuredContent === undefined ? "(empty)" : pretty(structuredContent);
}

/** A block of a result or of a prompt: text as it is, anything else as a line that says what it is. */
function blockText(block: Json): string {
  if (!isJsonObject(block)) return pretty(block);
  const { type, text, data, mimeType, uri, resource } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "resource" && isJsonObject(resource)) return contentText(resource);
  if (type === "resource_link") return `[resource ${String(uri ?? "")}]`;
  if (typeof data === "string") {
    return `[${String(type)} ${String(mimeType ?? "")}, ${bytes(sizeOf(data))}]`;
  }
  return pretty(block);
}

function contentsText(contents: Json | undefined): string {
  if (!Array.isArray(contents) || contents.length === 0) return "(empty)";
  return contents.map((part) => isJsonObject(part) ? contentText(part) : pretty(part)).join("\n");
}

function contentText({ text, blob, mimeType, uri }: JsonObject): string {
  if (typeof text === "string") return text;
  const size = typeof blob === "string" ? `, ${bytes(sizeOf(blob))}` : "";
  return `[${String(uri ?? "resource")} ${String(mimeType ?? "")}${size}]`;
}

/** Bytes that base64 text stands for. */
function sizeOf(base64: string): number {
  return Math.floor(base64.replace(/=+$/, "").length * 3 / 4);
}

function messagesText({ description, messages }: JsonObject): string {
  const told = typeof description === "string" && description !== "" ? [description, ""] : [];
  const lines = (Array.isArray(messages) ? messages : []).map((message) => {
    const { role, content } = isJsonObject(message) ? message : {};
    const blocks = Array.isArray(content) ? content : content === undefined ? [] : [content];
    return `${String(role ?? "")}: ${blocks.map(blockText).join("\n")}`;
  });
  return [...told, ...(lines.length === 0 ? ["(empty)"] : lines)].join("\n");
}

function toolText(tool: JsonObject): string {
  const { name, description, inputSchema, outputSchema } = tool;
  return [
    String(name ?? ""),
    ...(typeof description === "string" ? [description] : []),
    `input: ${pretty(inputSchema ?? null)}`,
    ...(outputSchema === undefined ? [] : [`output: ${pretty(outputSchema)}`]),
  ].join("\n");
}

function pretty(value: Json): string {
  return JSON.stringify(value, undefined, 2);
}
