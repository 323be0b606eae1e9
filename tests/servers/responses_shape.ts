/** OpenAI's Responses API, as a model endpoint speaks it: streaming, storing nothing, and as strict as the real one. */
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
const DATA_URL = /^data:(image\/[a-z]+);base64,(.+)$/;

/** What is wrong with a request; empty for a sound one. */
function check(body: Json, { headers }: { headers: Headers }): string[] {
  if (!isJsonObject(body)) return ["body isn't an object"];
  const problems: string[] = [];
  if (/^Bearer ?$/.test(headers.get("authorization") ?? "")) problems.push("an empty key");
  if (typeof body.model !== "string" || body.model === "") problems.push("no model");
  if (body.stream !== true) problems.push("stream isn't true");
  if (body.store !== false) problems.push("store isn't false");
  const asked = asList(body.include).includes("reasoning.encrypted_content");
  if (String(body.model).startsWith("gpt-5") && !asked) {
    problems.push("no encrypted reasoning asked for");
  }
  checkText(body, "", problems);
  problems.push(...asList(body.tools).flatMap(checkTool), ...checkInput(body.input));
  return problems;
}

function checkTool(tool: Json): string[] {
  const { type, name, parameters, strict } = asObject(tool);
  const problems = checkParameters(parameters);
  if (type !== "function") problems.push(`type ${JSON.stringify(type)}`);
  if (typeof name !== "string" || !PLAIN.test(name)) problems.push("invalid name");
  if (strict !== false) problems.push("a schema that isn't strict under strict");
  return problems.map((problem) => `tool ${JSON.stringify(name)}: ${problem}`);
}

function checkInput(input: Json | undefined): string[] {
  const problems: string[] = [];
  const items = asList(input).map(asObject);
  if (items.length === 0) problems.push("no input");
  const seen = new Set<string>();
  const open = new Set<string>();
  for (const [index, item] of items.entries()) {
    const at = `item ${index}`;
    if (typeof item.role === "string") checkMessage(item, at, problems);
    else if (item.type === "reasoning") {
      checkReasoning(item, at, problems);
      const next = items[index + 1];
      const follows = next?.type === "function_call" || next?.type === "reasoning" ||
        next?.role === "assistant";
      if (!follows) problems.push(`${at}: reasoning without its following item`);
    } else if (item.type === "function_call") {
      const id = String(item.call_id);
      if (!PLAIN.test(id) || seen.has(id)) problems.push(`${at}: call id ${JSON.stringify(id)}`);
      if (!PLAIN.test(String(item.name))) problems.push(`${at}: call of ${item.name}`);
      if (!isObjectText(item.arguments)) problems.push(`${at}: arguments ${item.arguments}`);
      seen.add(id);
      open.add(id);
    } else if (item.type === "function_call_output") {
      if (!open.delete(String(item.call_id))) problems.push(`${at}: result of no open call`);
      checkOutput(item.output, at, problems);
    } else problems.push(`${at}: type ${JSON.stringify(item.type)}`);
    if (item.role === "user" && open.size > 0) problems.push(`${at}: results are missing`);
  }
  if (open.size > 0) problems.push(`results are missing at the end for ${[...open].join(", ")}`);
  return problems;
}

function checkMessage({ role, content }: JsonObject, at: string, problems: string[]): void {
  const known = ["system", "developer", "user", "assistant"].includes(String(role));
  if (!known) problems.push(`${at}: role ${JSON.stringify(role)}`);
  const filled = typeof content === "string"
    ? content !== ""
    : asList(content).length > 0 && asList(content).every((part) => asObject(part).text !== "");
  if (!filled) problems.push(`${at}: content ${JSON.stringify(content)}`);
}

function checkReasoning(item: JsonObject, at: string, problems: string[]): void {
  const texts = asList(item.summary).map((part) => String(asObject(part).text));
  if (item.encrypted_content !== sign("reasoning", String(item.id), ...texts)) {
    problems.push(`${at}: encrypted content could not be verified`);
  }
}

function checkOutput(output: Json | undefined, at: string, problems: string[]): void {
  if (typeof output === "string" ? output === "" : asList(output).length === 0) {
    problems.push(`${at}: an empty result`);
  }
  for (const part of asList(output).map(asObject)) {
    if (part.type === "input_text" && part.text !== "") continue;
    const [, type, data] = DATA_URL.exec(String(part.image_url)) ?? [];
    if (part.type !== "input_image" || !isImage(type, data)) problems.push(`${at}: a bad part`);
  }
}

function isObjectText(text: Json | undefined): boolean {
  try {
    return typeof text === "string" && isJsonObject(JSON.parse(text));
  } catch {
    return false;
  }
}

function chunks(body: JsonObject, reply: EndpointReply, number: number): string[] {
  let sequence_number = 0;
  const event = (type: string, content: JsonObject) =>
    `event: ${type}\ndata: ${
      JSON.stringify({ type, sequence_number: sequence_number++, ...content })
    }\n\n`;
  const response = { id: `resp_${number}`, created_at: 0, model: body.model ?? "" };
  const sent = [
    event("response.created", { response }),
    event("response.in_progress", { response }),
  ];
  for (const [output_index, { added, between, done }] of itemsOf(body, reply, number).entries()) {
    sent.push(event("response.output_item.added", { output_index, item: added }));
    for (const [type, content] of between) sent.push(event(type, { output_index, ...content }));
    sent.push(event("response.output_item.done", { output_index, item: done }));
  }
  if (reply.streamError !== undefined) {
    const { message = "failed", code = "server_error" } = asObject(reply.streamError);
    return [...sent, event("error", { code: String(code), message, param: null })];
  }
  const usage = reply.usage ?? {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 40 },
    output_tokens: 10,
    output_tokens_details: { reasoning_tokens: 5 },
  };
  const incomplete = reply.finish === undefined ? null : { reason: reply.finish };
  const type = incomplete === null ? "response.completed" : "response.incomplete";
  return [
    ...sent,
    event(type, { response: { ...response, usage, incomplete_details: incomplete } }),
  ];
}

/** An output item: as it begins, the events in its course, as it is in the end. */
interface Item {
  added: JsonObject;
  between: [type: string, content: JsonObject][];
  done: JsonObject;
}

function itemsOf(body: JsonObject, reply: EndpointReply, number: number): Item[] {
  const items = thoughts(reply).map((thought, index): Item => {
    const id = `rs_${number}_${index}`;
    const texts = thought.redacted === true ? [] : [thought.text];
    const encrypted_content = sign("reasoning", id, ...texts);
    return {
      added: { type: "reasoning", id, encrypted_content: "early", summary: [] },
      between: texts.flatMap((text, summary_index): Item["between"] => [
        ["response.reasoning_summary_part.added", { item_id: id, summary_index }],
        ["response.reasoning_summary_text.delta", { item_id: id, summary_index, delta: text }],
        ["response.reasoning_summary_part.done", { item_id: id, summary_index }],
      ]),
      done: {
        type: "reasoning",
        id,
        encrypted_content,
        summary: texts.map((text) => ({ type: "summary_text", text })),
      },
    };
  });
  const texts = pieces(reply);
  if (texts.length > 0) {
    const id = `msg_${number}`;
    const item = { type: "message", id, role: "assistant" };
    items.push({
      added: { ...item, content: [] },
      between: texts.map((delta) => ["response.output_text.delta", { item_id: id, delta }]),
      done: { ...item, content: [{ type: "output_text", text: texts.join(""), annotations: [] }] },
    });
  }
  const names = toolNames(body);
  const calls = (reply.calls ?? []).map((call, index): Item => {
    const id = `fc_${number}_${index}`;
    const item = {
      type: "function_call",
      id,
      call_id: callId(call, number, index) ?? "",
      name: fullName(names, call.name),
    };
    return {
      added: { ...item, arguments: "" },
      between: halves(call.arguments ?? "").map((
        delta,
      ) => ["response.function_call_arguments.delta", { item_id: id, delta }]),
      done: { ...item, arguments: call.arguments ?? "", status: "completed" },
    };
  });
  return [...items, ...calls];
}

function toolNames(body: JsonObject): string[] {
  return asList(body.tools).map((tool) => String(asObject(tool).name));
}

export const responsesShape: WireShape = {
  basePath: "/v1",
  accepts: (pathname) => pathname === "/v1/responses",
  check,
  toolNames,
  chunks,
  end: "",
  error: (_status, error) => ({ error }),
};
