/**
 * A model endpoint on loopback: OpenAI-shaped streaming chat completions that validate what they get.
 *
 * In a test: `startModelEndpoint((body, number) => ({ text: "hi" }))`. As a process, for benches and whole-system tests:
 * `deno run --allow-net=127.0.0.1 tests/servers/model_endpoint.ts --calls 200 --tool echo --input '{"message":"hi"}'` prints one line `{"url": …}` and answers 200 requests of each conversation with a call, then with text. `--no-check` leaves the validation out.
 */
import { isJsonObject, type Json, type JsonObject } from "../../src/base/json.ts";
import { checkChatRequest } from "./chat_request_check.ts";

/** A call in a reply. `name` may be a suffix of an offered tool's name after `__`. */
export interface EndpointCall {
  name: string;
  /** Argument text as it goes over the wire. */
  arguments: string | null;
  /** By default unique; `""`, null or a repeated one are faults of real servers. */
  id?: string | null;
}

/** What the endpoint does with one request. */
export interface EndpointReply {
  /** One chunk each. */
  text?: string | string[];
  reasoning?: string;
  calls?: EndpointCall[];
  /** By default `stop` or `tool_calls`; null leaves it out. */
  finish?: string | null;
  /** null: the server reports no usage. */
  usage?: JsonObject | null;
  /** Answers with this HTTP status in place of a stream. */
  status?: number;
  headers?: { [name: string]: string };
  /** Body for `status`; text goes out as it is. */
  error?: Json;
  /** An error event in the stream, after the text. */
  streamError?: Json;
  /** Ends the stream after so many chunks, in good order but without its end. */
  cutAfter?: number;
  /** Breaks the connection after so many chunks. */
  breakAfter?: number;
  /** Waits before the first byte. */
  delayMs?: number;
  /** Goes on sending nothing after so many chunks, until the client leaves. */
  hangAfter?: number;
}

export interface RecordedRequest {
  /** The body's bytes as they came. */
  bytes: Uint8Array;
  body: JsonObject;
  headers: { [name: string]: string };
  violations: string[];
}

/** Gives the reply to request `number` (from 1). */
export type Responder = (
  body: JsonObject,
  number: number,
) => EndpointReply | Promise<EndpointReply>;

export interface ModelEndpoint {
  /** For `base_url`. */
  url: string;
  requests: RecordedRequest[];
  /** Violations of all requests. */
  violations: string[];
  /** Requests whose client left before the end of the answer. */
  aborted: number;
  close(): Promise<void>;
}

/** Starts an endpoint; a request with violations gets HTTP 400, as from a strict provider. */
export function startModelEndpoint(responder: Responder): ModelEndpoint {
  const endpoint: ModelEndpoint = {
    url: "",
    requests: [],
    violations: [],
    aborted: 0,
    close: async () => await server.shutdown(),
  };
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const bytes = await request.bytes();
      if (new URL(request.url).pathname !== "/v1/chat/completions") {
        return errorResponse(404, { message: "no such path" });
      }
      const body: Json = parsed(bytes);
      const violations = checkChatRequest(body);
      const known = isJsonObject(body) ? body : {};
      endpoint.requests.push({
        bytes,
        body: known,
        headers: Object.fromEntries(request.headers),
        violations,
      });
      endpoint.violations.push(...violations);
      const number = endpoint.requests.length;
      if (violations.length > 0) {
        return errorResponse(400, {
          message: violations.join("; "),
          type: "invalid_request_error",
        });
      }
      const reply = await responder(known, number);
      return await respond(known, reply, number, () => endpoint.aborted += 1);
    },
  );
  endpoint.url = `http://127.0.0.1:${server.addr.port}/v1`;
  return endpoint;
}

function parsed(bytes: Uint8Array): Json {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}

function errorResponse(
  status: number,
  error: Json,
  headers: { [name: string]: string } = {},
): Response {
  const body = typeof error === "string" ? error : JSON.stringify({ error });
  return new Response(body, {
    status,
    headers: { "content-type": "application/json", ...headers },
  });
}

async function respond(
  body: JsonObject,
  reply: EndpointReply,
  number: number,
  onAbort: () => void,
): Promise<Response> {
  if (reply.delayMs !== undefined) await delay(reply.delayMs);
  if (reply.status !== undefined) {
    return errorResponse(
      reply.status,
      reply.error ?? { message: `status ${reply.status}` },
      reply.headers,
    );
  }
  const chunks = chunksOf(body, reply, number);
  if (reply.breakAfter === undefined && reply.hangAfter === undefined) {
    const whole = reply.cutAfter === undefined
      ? `${chunks.join("")}data: [DONE]\n\n`
      : chunks.slice(0, reply.cutAfter).join("");
    return eventStream(whole, reply.headers);
  }
  const sent = chunks.slice(0, reply.breakAfter ?? reply.hangAfter);
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const next = sent.shift();
      if (next !== undefined) controller.enqueue(new TextEncoder().encode(next));
      else if (reply.breakAfter !== undefined) controller.close();
      else return new Promise(() => {});
    },
    cancel: onAbort,
  });
  // Ending before the promised length breaks the connection.
  const length = reply.breakAfter === undefined ? {} : { "content-length": "1000000" };
  return eventStream(stream, { ...reply.headers, ...length });
}

function eventStream(
  body: string | ReadableStream,
  headers: { [name: string]: string } = {},
): Response {
  return new Response(body, { headers: { "content-type": "text/event-stream", ...headers } });
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function chunksOf(body: JsonObject, reply: EndpointReply, number: number): string[] {
  const event = (content: JsonObject) =>
    `data: ${
      JSON.stringify({
        id: `chatcmpl-${number}`,
        object: "chat.completion.chunk",
        created: 0,
        model: body.model ?? "",
        ...content,
      })
    }\n\n`;
  const delta = (content: JsonObject, finish: string | null = null) =>
    event({ choices: [{ index: 0, delta: content, finish_reason: finish }] });
  const texts = reply.text === undefined ? [] : [reply.text].flat();
  const calls = reply.calls ?? [];
  const chunks = [delta({ role: "assistant", content: "" })];
  if (reply.reasoning !== undefined) chunks.push(delta({ reasoning_content: reply.reasoning }));
  chunks.push(...texts.map((text) => delta({ content: text })));
  for (const [index, call] of calls.entries()) {
    const id = call.id === undefined ? `call_${number}_${index}` : call.id;
    const name = fullName(body, call.name);
    chunks.push(
      delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
    );
    const text = call.arguments;
    const half = text === null ? 0 : Math.ceil(text.length / 2);
    const pieces = text === null ? [null] : [text.slice(0, half), text.slice(half)];
    chunks.push(
      ...pieces.map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    );
  }
  if (reply.streamError !== undefined) {
    return [...chunks, `data: ${JSON.stringify({ error: reply.streamError })}\n\n`];
  }
  const finish = reply.finish === undefined
    ? (calls.length > 0 ? "tool_calls" : "stop")
    : reply.finish;
  if (finish !== null) chunks.push(delta({}, finish));
  if (reply.usage !== null) {
    chunks.push(
      event({
        choices: [],
        usage: reply.usage ?? { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
      }),
    );
  }
  return chunks;
}

/** The offered tool that a suffix means, else the name itself. */
function fullName(body: JsonObject, name: string): string {
  const tools = Array.isArray(body.tools) ? body.tools : [];
  const names = tools.map((tool) =>
    isJsonObject(tool) && isJsonObject(tool.function) ? String(tool.function.name) : ""
  );
  return names.includes(name) ? name : names.find((known) => known.endsWith(`__${name}`)) ?? name;
}

/** Replies already in a conversation, counted in its text: quotes inside strings are escaped there. */
function assistantCount(text: string): number {
  let count = 0;
  for (
    let at = text.indexOf('"role":"assistant"');
    at >= 0;
    at = text.indexOf('"role":"assistant"', at + 1)
  ) count += 1;
  return count;
}

/** A process of its own: `calls` calls of one tool, then text. */
function serveAlone(options: { calls: number; tool: string; input: string; check: boolean }): void {
  const decoder = new TextDecoder();
  const toolName = new RegExp(`"name":"([A-Za-z0-9_-]*${options.tool})"`);
  const onListen = ({ port }: { port: number }) => {
    Deno.stdout.writeSync(new TextEncoder().encode(`{"url":"http://127.0.0.1:${port}/v1"}\n`));
  };
  Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, async (request) => {
    const text = decoder.decode(await request.bytes());
    const violations = options.check ? checkChatRequest(JSON.parse(text)) : [];
    if (violations.length > 0) return errorResponse(400, { message: violations.join("; ") });
    const count = assistantCount(text);
    const name = toolName.exec(text)?.[1] ?? options.tool;
    const reply: EndpointReply = count < options.calls
      ? { calls: [{ name, arguments: options.input }] }
      : { text: "All calls are made." };
    return await respond({ model: "bench" }, reply, count + 1, () => {});
  });
}

/** The value after a flag. */
function flag(name: string, fallback: string): string {
  const at = Deno.args.indexOf(name);
  return at < 0 ? fallback : Deno.args[at + 1] ?? fallback;
}

if (import.meta.main) {
  serveAlone({
    calls: Number(flag("--calls", "0")),
    tool: flag("--tool", "echo"),
    input: flag("--input", "{}"),
    check: !Deno.args.includes("--no-check"),
  });
}
