/**
 * A strict provider's view of a chat-completions request: everything that some real provider answers with HTTP 400.
 *
 * Works on parsed JSON of any shape and lists all violations.
 */
import { isJsonObject, type Json, type JsonObject } from "../../src/base/json.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** What is wrong with a request; empty for a sound one. */
export function checkChatRequest(body: Json): string[] {
  const problems: string[] = [];
  if (!isJsonObject(body)) return ["body isn't an object"];
  if (typeof body.model !== "string" || body.model === "") problems.push("no model");
  if (body.stream !== true) problems.push("stream isn't true");
  checkText(body, "", problems);
  problems.push(...checkTools(body.tools), ...checkMessages(body.messages));
  return problems;
}

/** Lone surrogates, wherever they are. */
export function checkText(value: Json, path: string, problems: string[]): void {
  if (typeof value === "string" && !value.isWellFormed()) {
    problems.push(`lone surrogate at ${path}`);
  }
  if (Array.isArray(value)) {
    value.forEach((item, index) => checkText(item, `${path}/${index}`, problems));
  }
  if (!isJsonObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    if (!key.isWellFormed()) problems.push(`lone surrogate in a key at ${path}`);
    checkText(member, `${path}/${key}`, problems);
  }
}

function checkTools(tools: Json | undefined): string[] {
  if (tools === undefined) return [];
  if (!Array.isArray(tools)) return ["tools isn't a list"];
  if (tools.length === 0) return ["tools is an empty list"];
  const problems: string[] = [];
  const names = new Set<string>();
  for (const tool of tools) {
    const known = isJsonObject(tool) && tool.type === "function" && isJsonObject(tool.function)
      ? tool.function
      : undefined;
    if (known === undefined) {
      problems.push("a tool isn't a function");
      continue;
    }
    const name = typeof known.name === "string" ? known.name : "";
    if (!NAME.test(name)) problems.push(`tool name ${JSON.stringify(known.name)} is invalid`);
    if (names.has(name)) problems.push(`tool name "${name}" is there twice`);
    names.add(name);
    if (known.description !== undefined && typeof known.description !== "string") {
      problems.push(`description of "${name}" isn't text`);
    }
    if (String(known.description ?? "").length > 1024) {
      problems.push(`description of "${name}" is too long`);
    }
    problems.push(
      ...checkParameters(known.parameters).map((problem) => `tool "${name}": ${problem}`),
    );
  }
  return problems;
}

/** A tool's schema as OpenAI takes it. */
export function checkParameters(schema: Json | undefined): string[] {
  if (!isJsonObject(schema)) return ["parameters isn't an object"];
  const problems: string[] = [];
  if (schema.type !== "object") problems.push('parameters must have type "object"');
  if (!isJsonObject(schema.properties)) problems.push("parameters has no properties");
  for (const union of ["anyOf", "oneOf", "allOf", "enum", "not"]) {
    if (schema[union] !== undefined) problems.push(`${union} at the top of parameters`);
  }
  checkSchema(schema, "", problems);
  return problems;
}

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];

function checkSchema(schema: Json, path: string, problems: string[]): void {
  if (!isJsonObject(schema)) {
    problems.push(`subschema at "${path}" is ${JSON.stringify(schema)}`);
    return;
  }
  for (
    const key of ["$ref", "$schema", "$defs", "definitions", "$id", "const", "oneOf", "allOf", "if"]
  ) {
    if (schema[key] !== undefined) problems.push(`${key} at "${path}"`);
  }
  if (schema.type !== undefined && !TYPES.includes(String(schema.type))) {
    problems.push(`type ${JSON.stringify(schema.type)} at "${path}"`);
  }
  if (schema.type === "array" && schema.items === undefined) {
    problems.push(`array without items at "${path}"`);
  }
  if (Array.isArray(schema.enum) && schema.enum.length === 0) {
    problems.push(`empty enum at "${path}"`);
  }
  const { properties, items, additionalProperties, anyOf, required } = schema;
  if (isJsonObject(properties)) {
    for (const [name, member] of Object.entries(properties)) {
      checkSchema(member, `${path}/${name}`, problems);
    }
  } else if (properties !== undefined) problems.push(`properties at "${path}" isn't an object`);
  if (items !== undefined) checkSchema(items, `${path}/items`, problems);
  if (isJsonObject(additionalProperties)) checkSchema(additionalProperties, `${path}/*`, problems);
  if (Array.isArray(anyOf)) {
    anyOf.forEach((branch, index) => checkSchema(branch, `${path}/anyOf/${index}`, problems));
  }
  if (
    required !== undefined &&
    !(Array.isArray(required) && required.every((name) => typeof name === "string"))
  ) {
    problems.push(`required at "${path}" isn't a list of names`);
  }
}

function checkMessages(messages: Json | undefined): string[] {
  if (!Array.isArray(messages) || messages.length === 0) return ["messages isn't a filled list"];
  const problems: string[] = [];
  const seen = new Set<string>();
  let open: string[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `message ${index}`;
    if (!isJsonObject(message)) {
      problems.push(`${at} isn't an object`);
      continue;
    }
    if (message.role !== "tool" && open.length > 0) {
      problems.push(`${at}: results are missing for ${open.join(", ")}`);
      open = [];
    }
    problems.push(...checkContent(message).map((problem) => `${at}: ${problem}`));
    if (message.role === "assistant") open = checkCalls(message, seen, at, problems);
    else if (message.role === "tool") {
      const expected = open.shift();
      if (message.tool_call_id !== expected) {
        problems.push(
          `${at}: result for ${JSON.stringify(message.tool_call_id)}, expected ${
            JSON.stringify(expected)
          }`,
        );
      }
    } else if (message.role === "system") {
      if (index !== 0) problems.push(`${at}: system message isn't the first`);
    } else if (message.role !== "user") {
      problems.push(`${at}: role ${JSON.stringify(message.role)}`);
    }
  }
  if (open.length > 0) problems.push(`results are missing at the end for ${open.join(", ")}`);
  return problems;
}

function checkContent(message: JsonObject): string[] {
  const { content, tool_calls } = message;
  if (typeof content === "string" && content !== "") return [];
  const hasCalls = Array.isArray(tool_calls) && tool_calls.length > 0;
  if (message.role === "assistant" && hasCalls && (content === null || content === undefined)) {
    return [];
  }
  if (Array.isArray(content) && content.length > 0) {
    const empty = content.some((part) => !isJsonObject(part) || part.text === "");
    return empty ? ["an empty content part"] : [];
  }
  return [`content is ${JSON.stringify(content)}`];
}

function checkCalls(
  message: JsonObject,
  seen: Set<string>,
  at: string,
  problems: string[],
): string[] {
  if (message.tool_calls === undefined) return [];
  if (!Array.isArray(message.tool_calls) || message.tool_calls.length === 0) {
    problems.push(`${at}: tool_calls is empty`);
    return [];
  }
  return message.tool_calls.map((call) => {
    const known = isJsonObject(call) ? call : {};
    const id = typeof known.id === "string" ? known.id : "";
    if (id === "") problems.push(`${at}: a call without an id`);
    else if (seen.has(id)) problems.push(`${at}: call id "${id}" is there twice`);
    seen.add(id);
    const named = isJsonObject(known.function) ? known.function : {};
    if (known.type !== "function") problems.push(`${at}: call type ${JSON.stringify(known.type)}`);
    if (typeof named.name !== "string" || !NAME.test(named.name)) {
      problems.push(`${at}: call of ${JSON.stringify(named.name)}`);
    }
    if (!isJsonText(named.arguments)) {
      problems.push(`${at}: arguments ${JSON.stringify(named.arguments)} aren't a JSON object`);
    }
    return id;
  });
}

function isJsonText(text: Json | undefined): boolean {
  try {
    return typeof text === "string" && isJsonObject(JSON.parse(text));
  } catch {
    return false;
  }
}
