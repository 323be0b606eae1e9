/** Anthropic's Messages API, as a model endpoint speaks it: streaming, and as strict as the real one. */
import { isJsonObject, type Json, type JsonObject } from "../../src/base/json.ts";
import { checkParameters, checkText } from "./chat_request_check.ts";
import {
  asList,
  asObject,
  callId,
  type EndpointReply,
  fullName,
  halves,
  isImage,
  pieces,
  sign,
  thoughts,
  type WireShape,
} from "./wire_shape.ts";

const PLAIN = /^[a-zA-Z0-9_-]{1,64}$/;
const KEYS = ["model", "max_tokens", "system", "messages", "tools", "tool_choice", "stream"];
const CACHE_MARKS_MAX = 4;

/** What is wrong with a request; empty for a sound one. */
function check(body: Json, { headers }: { headers: Headers }): string[] {
  if (!isJsonObject(body)) return ["body isn't an object"];
  const problems: string[] = [];
  const extra = Object.keys(body).filter((key) => !KEYS.includes(key));
  if (extra.length > 0) problems.push(`unknown keys ${extra.join(", ")}`);
  if (headers.get("anthropic-version") === null) problems.push("no anthropic-version");
  if (headers.get("x-api-key") === "") problems.push("an empty key");
  if (typeof body.model !== "string" || body.model === "") problems.push("no model");
  if (typeof body.max_tokens !== "number" || body.max_tokens < 1) problems.push("no max_tokens");
  if (body.stream !== true) problems.push("stream isn't true");
  if (JSON.stringify(body).split('"cache_control"').length - 1 > CACHE_MARKS_MAX) {
    problems.push("too many cache_control");
  }
  checkText(body, "", problems);
  for (const block of asList(body.system)) checkSpeech(asObject(block), "system", problems);
  problems.push(...asList(body.tools).flatMap(checkTool), ...checkMessages(body.messages));
  return problems;
}

function checkTool(tool: Json): string[] {
  const { name, description, input_schema } = asObject(tool);
  const problems = checkParameters(input_schema);
  if (typeof name !== "string" || !PLAIN.test(name)) problems.push("invalid name");
  if (description === "") problems.push("empty description");
  for (const property of Object.keys(asObject(asObject(input_schema).properties))) {
    if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(property)) problems.push(`property ${property}`);
  }
  return problems.map((problem) => `tool ${JSON.stringify(name)}: ${problem}`);
}

function checkMessages(messages: Json | undefined): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  let open: string[] = [];
  const list = asList(messages).map(asObject);
  if (list.length === 0) problems.push("no messages");
  if (list[0]?.role !== "user") problems.push("the first message isn't the user's");
  if (list.at(-1)?.role !== "user") problems.push("the last message isn't the user's");
  for (const [index, message] of list.entries()) {
    const at = `message ${index}`;
    const blocks = asList(message.content).map(asObject);
    if (blocks.length === 0) problems.push(`${at}: no content`);
    if (message.role === "assistant") open = checkAssistant(blocks, seen, at, problems);
    else if (message.role === "user") {
      checkResults(blocks, open, at, problems);
      open = [];
    } else problems.push(`${at}: role ${JSON.stringify(message.role)}`);
  }
  return problems;
}

function checkAssistant(
  blocks: JsonObject[],
  seen: Set<string>,
  at: string,
  problems: string[],
): string[] {
  const calls: string[] = [];
  for (const block of blocks) {
    if (block.type === "tool_use") {
      const id = String(block.id);
      if (!PLAIN.test(id) || seen.has(id)) problems.push(`${at}: call id ${JSON.stringify(id)}`);
      if (!PLAIN.test(String(block.name))) problems.push(`${at}: call of ${block.name}`);
      if (!isJsonObject(block.input)) problems.push(`${at}: input isn't an object`);
      seen.add(id);
      calls.push(id);
    } else if (block.type === "thinking") {
      if (block.signature !== sign("thinking", String(block.thinking))) {
        problems.push(`${at}: invalid signature in thinking block`);
      }
    } else if (block.type === "redacted_thinking") {
      if (!String(block.data).startsWith("sig+")) problems.push(`${at}: invalid redacted data`);
    } else checkSpeech(block, at, problems);
  }
  return calls;
}

function checkResults(blocks: JsonObject[], open: string[], at: string, problems: string[]): void {
  const results = blocks.filter((block) => block.type === "tool_result");
  if (results.some((result, index) => blocks[index] !== result)) {
    problems.push(`${at}: results don't come first`);
  }
  const ids = results.map((result) => String(result.tool_use_id));
  if (JSON.stringify(ids) !== JSON.stringify(open)) {
    problems.push(`${at}: results for ${ids.join()}, expected ${open.join()}`);
  }
  for (const result of results) {
    if (typeof result.content === "string") {
      if (result.content.trim() === "") problems.push(`${at}: an empty result`);
    } else if (asList(result.content).length === 0) {
      problems.push(`${at}: a result without content`);
    }
    for (const part of asList(result.content).map(asObject)) {
      const source = asObject(part.source);
      if (part.type !== "image") checkSpeech(part, at, problems);
      else if (!isImage(source.media_type, source.data)) problems.push(`${at}: a bad image`);
    }
  }
  for (const block of blocks.slice(results.length)) checkSpeech(block, at, problems);
}

function checkSpeech(block: JsonObject, at: string, problems: string[]): void {
  if (block.type !== "text" || typeof block.text !== "string" || block.text.trim() === "") {
    problems.push(`${at}: block ${JSON.stringify(block).slice(0, 80)}`);
  }
}

function chunks(body: JsonObject, reply: EndpointReply, number: number): string[] {
  const event = (type: string, content: JsonObject) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...content })}\n\n`;
  const usage = reply.usage ?? {
    input_tokens: 60,
    cache_read_input_tokens: 40,
    cache_creation_input_tokens: 0,
    output_tokens: 10,
  };
  const message = {
    id: `msg_${number}`,
    type: "message",
    role: "assistant",
    model: body.model ?? "",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...asObject(usage), output_tokens: 1 },
  };
  const sent = [event("message_start", { message }), event("ping", {})];
  const blocks = blocksOf(body, reply, number);
  for (const [index, { start, deltas }] of blocks.entries()) {
    sent.push(event("content_block_start", { index, content_block: start }));
    sent.push(...deltas.map((delta) => event("content_block_delta", { index, delta })));
    sent.push(event("content_block_stop", { index }));
  }
  if (reply.streamError !== undefined) {
    return [...sent, event("error", { error: reply.streamError })];
  }
  const stop = reply.finish ?? ((reply.calls ?? []).length > 0 ? "tool_use" : "end_turn");
  const output_tokens = asObject(usage).output_tokens ?? 0;
  sent.push(
    event("message_delta", {
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens },
    }),
  );
  return [...sent, event("message_stop", {})];
}

function blocksOf(
  body: JsonObject,
  reply: EndpointReply,
  number: number,
): { start: JsonObject; deltas: JsonObject[] }[] {
  const thinking = thoughts(reply).map(({ text, redacted }) =>
    redacted === true
      ? { start: { type: "redacted_thinking", data: sign("redacted", text) }, deltas: [] }
      : {
        start: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          { type: "thinking_delta", thinking: text },
          { type: "signature_delta", signature: sign("thinking", text) },
        ],
      }
  );
  const texts = pieces(reply);
  const text = texts.length === 0 ? [] : [{
    start: { type: "text", text: "" },
    deltas: texts.map((text) => ({ type: "text_delta", text })),
  }];
  const names = toolNames(body);
  const calls = (reply.calls ?? []).map((call, index) => ({
    start: {
      type: "tool_use",
      id: callId(call, number, index) ?? "",
      name: fullName(names, call.name),
      input: {},
    },
    deltas: call.arguments === null
      ? []
      : halves(call.arguments).map((partial_json) => ({ type: "input_json_delta", partial_json })),
  }));
  return [...thinking, ...text, ...calls];
}

function toolNames(body: JsonObject): string[] {
  return asList(body.tools).map((tool) => String(asObject(tool).name));
}

const TYPES: { [status: number]: string } = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  429: "rate_limit_error",
  529: "overloaded_error",
};

export const anthropicShape: WireShape = {
  basePath: "/v1",
  accepts: (pathname) => pathname === "/v1/messages",
  check,
  toolNames,
  chunks,
  end: "",
  error: (status, error) => ({
    type: "error",
    error: { type: TYPES[status] ?? "api_error", ...asObject(error) },
  }),
};
