/** Google's Generative Language API, as a model endpoint speaks it: streaming, and as strict as the real one. */
import { isJsonObject, type Json, type JsonObject } from "../../src/base/json.ts";
import { checkText } from "./chat_request_check.ts";
import {
  asList,
  asObject,
  callId,
  type EndpointReply,
  fullName,
  isImage,
  pieces,
  sign,
  thoughts,
  type WireShape,
} from "./wire_shape.ts";

const PATH = /^\/v1beta\/models\/[^/]+:streamGenerateContent$/;
const NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;
/** What the API's documentation gives for a call that came without a signature. */
const UNSIGNED = "skip_thought_signature_validator";
/** All that a schema may hold. */
const SCHEMA_KEYS = [
  ...["type", "format", "title", "description", "enum", "items", "minItems", "maxItems"],
  ...["minimum", "maximum", "anyOf", "properties", "required"],
];

/** What is wrong with a request; empty for a sound one. */
function check(
  body: Json,
  { pathname, headers }: { pathname: string; headers: Headers },
): string[] {
  if (!isJsonObject(body)) return ["body isn't an object"];
  const problems: string[] = [];
  if (headers.get("x-goog-api-key") === "") problems.push("an empty key");
  checkText(body, "", problems);
  for (const part of asList(asObject(body.systemInstruction).parts).map(asObject)) {
    if (typeof part.text !== "string" || part.text === "") problems.push("an empty instruction");
  }
  for (const tool of asList(body.tools).map(asObject)) {
    problems.push(...asList(tool.functionDeclarations).flatMap(checkTool));
  }
  const isNewer = pathname.includes("/gemini-3");
  return [...problems, ...checkContents(body.contents, isNewer)];
}

function checkTool(tool: Json): string[] {
  const { name, parametersJsonSchema } = asObject(tool);
  const problems: string[] = [];
  if (typeof name !== "string" || !NAME.test(name)) problems.push("invalid name");
  if (asObject(parametersJsonSchema).type !== "object") problems.push("arguments aren't an object");
  checkSchema(parametersJsonSchema, "", problems);
  return problems.map((problem) => `tool ${JSON.stringify(name)}: ${problem}`);
}

function checkSchema(schema: Json | undefined, path: string, problems: string[]): void {
  if (!isJsonObject(schema)) {
    problems.push(`subschema at "${path}" is ${JSON.stringify(schema)}`);
    return;
  }
  const extra = Object.keys(schema).filter((key) => !SCHEMA_KEYS.includes(key));
  if (extra.length > 0) problems.push(`${extra.join(", ")} at "${path}"`);
  if (schema.type === "array" && schema.items === undefined) problems.push(`no items at "${path}"`);
  if (schema.anyOf !== undefined && Object.keys(schema).length > 1) {
    problems.push(`other fields beside anyOf at "${path}"`);
  }
  const choice = asList(schema.enum);
  if (schema.enum !== undefined && (schema.type !== "string" || choice.length === 0)) {
    problems.push(`enum at "${path}"`);
  }
  if (choice.some((value) => typeof value !== "string")) problems.push(`enum at "${path}"`);
  const properties = asObject(schema.properties);
  for (const name of asList(schema.required)) {
    if (!Object.hasOwn(properties, String(name))) problems.push(`required ${name} at "${path}"`);
  }
  for (const [name, member] of Object.entries(properties)) {
    checkSchema(member, `${path}/${name}`, problems);
  }
  if (schema.items !== undefined) checkSchema(schema.items, `${path}/items`, problems);
  for (const branch of asList(schema.anyOf)) checkSchema(branch, `${path}/anyOf`, problems);
}

function checkContents(contents: Json | undefined, isNewer: boolean): string[] {
  const problems: string[] = [];
  const list = asList(contents).map(asObject);
  if (list[0]?.role !== "user") problems.push("the first content isn't the user's");
  let open: string[] = [];
  for (const [index, content] of list.entries()) {
    const at = `content ${index}`;
    const parts = asList(content.parts).map(asObject);
    if (parts.length === 0) problems.push(`${at}: no parts`);
    const responses = parts.filter((part) => part.functionResponse !== undefined);
    if (content.role === "model") open = checkModel(parts, at, { isNewer, problems });
    else {
      const answered = responses.map((part) => callName(asObject(part.functionResponse)));
      if (JSON.stringify(answered) !== JSON.stringify(open)) {
        problems.push(`${at}: results for ${answered.join()}, expected ${open.join()}`);
      }
      open = [];
      for (const part of parts) checkUserPart(part, at, { isNewer, problems });
    }
  }
  if (open.length > 0) problems.push("results are missing at the end");
  return problems;
}

interface Findings {
  isNewer: boolean;
  problems: string[];
}

function checkModel(parts: JsonObject[], at: string, { isNewer, problems }: Findings): string[] {
  const calls = parts.filter((part) => part.functionCall !== undefined);
  for (const part of parts) {
    const { thoughtSignature, functionCall, text } = part;
    if (functionCall !== undefined) {
      const { name, args } = asObject(functionCall);
      if (typeof name !== "string" || !NAME.test(name)) problems.push(`${at}: call of ${name}`);
      if (!isJsonObject(args)) problems.push(`${at}: arguments aren't an object`);
      const signature = sign("call", String(name), JSON.stringify(args));
      const known = [undefined, signature, UNSIGNED];
      if (!known.some((one) => one === thoughtSignature)) {
        problems.push(`${at}: invalid thought signature`);
      }
    } else if (typeof text !== "string" || text === "" && thoughtSignature === undefined) {
      problems.push(`${at}: part ${JSON.stringify(part).slice(0, 80)}`);
    } else if (thoughtSignature !== undefined && !String(thoughtSignature).startsWith("sig+")) {
      problems.push(`${at}: invalid thought signature`);
    }
  }
  if (isNewer && calls[0] !== undefined && calls[0].thoughtSignature === undefined) {
    problems.push(`${at}: function call is missing a thought_signature`);
  }
  return calls.map((part) => callName(asObject(part.functionCall)));
}

function checkUserPart(part: JsonObject, at: string, { isNewer, problems }: Findings): void {
  const { functionResponse, inlineData, text } = part;
  if (functionResponse === undefined) {
    const { mimeType, data } = asObject(inlineData);
    if (
      inlineData === undefined ? typeof text !== "string" || text === "" : !isImage(mimeType, data)
    ) {
      problems.push(`${at}: part ${JSON.stringify(part).slice(0, 80)}`);
    }
    return;
  }
  const { response, parts } = asObject(functionResponse);
  if (!isJsonObject(response)) problems.push(`${at}: a response that isn't an object`);
  if (parts !== undefined && !isNewer) problems.push(`${at}: parts in a response`);
  for (const inner of asList(parts)) {
    const { mimeType, data } = asObject(asObject(inner).inlineData);
    if (!isImage(mimeType, data)) problems.push(`${at}: a bad image`);
  }
}

function callName({ id, name }: JsonObject): string {
  return `${String(name)}(${String(id)})`;
}

function chunks(body: JsonObject, reply: EndpointReply, number: number): string[] {
  const event = (content: JsonObject) => `data: ${JSON.stringify(content)}\n\n`;
  const candidate = (parts: JsonObject[], more: JsonObject = {}) =>
    event({ candidates: [{ index: 0, content: { role: "model", parts }, ...more }] });
  const thinking = thoughts(reply);
  const sent = thinking.filter(({ redacted }) => redacted !== true)
    .map(({ text }) => candidate([{ text, thought: true }]));
  sent.push(...pieces(reply).map((text) => candidate([{ text }])));
  const names = toolNames(body);
  for (const [index, call] of (reply.calls ?? []).entries()) {
    const id = callId(call, number, index);
    const name = fullName(names, call.name);
    const args = parsed(call.arguments);
    const signed = index === 0 && thinking.length > 0
      ? { thoughtSignature: sign("call", name, JSON.stringify(args ?? {})) }
      : {};
    const functionCall = {
      ...(id === null ? {} : { id }),
      name,
      ...(args === undefined ? {} : { args }),
    };
    sent.push(candidate([{ functionCall, ...signed }]));
  }
  if ((reply.calls ?? []).length === 0 && thinking.length > 0) {
    sent.push(candidate([{ text: "", thoughtSignature: sign("text", ...pieces(reply)) }]));
  }
  if (reply.streamError !== undefined) return [...sent, event({ error: reply.streamError })];
  const usageMetadata = reply.usage ?? {
    promptTokenCount: 100,
    cachedContentTokenCount: 40,
    candidatesTokenCount: 10,
    totalTokenCount: 110,
  };
  return [
    ...sent,
    event({
      candidates: [{ index: 0, finishReason: reply.finish ?? "STOP" }],
      usageMetadata,
      modelVersion: "test",
    }),
  ];
}

/** Arguments are no text on this wire; what isn't JSON is a fault that only a broken server makes. */
function parsed(text: string | null): Json | undefined {
  if (text === null || text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function toolNames(body: JsonObject): string[] {
  return asList(body.tools).flatMap((tool) => asList(asObject(tool).functionDeclarations))
    .map((tool) => String(asObject(tool).name));
}

const STATUSES: { [status: number]: string } = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

export const geminiShape: WireShape = {
  basePath: "/v1beta",
  accepts: (pathname) => PATH.test(pathname),
  check,
  toolNames,
  chunks,
  end: "",
  error: (status, error) => {
    const { type: _, ...facts } = asObject(error);
    return { error: { code: status, status: STATUSES[status] ?? "INTERNAL", ...facts } };
  },
};
