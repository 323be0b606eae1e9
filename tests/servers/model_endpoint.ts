/**
 * A model endpoint on loopback that validates what it gets: of the shape of chat completions, or of another provider.
 *
 * In a test: `startModelEndpoint((body, number) => ({ text: "hi" }))`. As a process, for benches and whole-system tests:
 * `deno run --allow-net=127.0.0.1 tests/servers/model_endpoint.ts --calls 200 --tool echo --input '{"message":"hi"}'` prints one line `{"url": …}` and answers 200 requests of each conversation with a call, then with text. `--no-check` leaves the validation out.
 */
import { isJsonObject, type Json, type JsonObject } from "../../src/base/json.ts";
import { checkChatRequest } from "./chat_request_check.ts";
import { chatShape } from "./chat_shape.ts";
import type { EndpointReply, WireShape } from "./wire_shape.ts";

export type { EndpointCall, EndpointReply } from "./wire_shape.ts";

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
export function startModelEndpoint(responder: Responder, shape = chatShape): ModelEndpoint {
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
      const { pathname } = new URL(request.url);
      if (!shape.accepts(pathname)) return errorResponse(shape, 404, { message: "no such path" });
      const body: Json = parsed(bytes);
      const violations = shape.check(body, { pathname, headers: request.headers });
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
        const message = violations.join("; ");
        return errorResponse(shape, 400, { message, type: "invalid_request_error" });
      }
      const reply = await responder(known, number);
      const onAbort = () => endpoint.aborted += 1;
      return await respond(shape, { body: known, reply, number, onAbort });
    },
  );
  endpoint.url = `http://127.0.0.1:${server.addr.port}${shape.basePath}`;
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
  shape: WireShape,
  status: number,
  error: Json,
  headers: { [name: string]: string } = {},
): Response {
  const body = typeof error === "string" ? error : JSON.stringify(shape.error(status, error));
  return new Response(body, {
    status,
    headers: { "content-type": "application/json", ...headers },
  });
}

async function respond(
  shape: WireShape,
  { body, reply, number, onAbort }: {
    body: JsonObject;
    reply: EndpointReply;
    number: number;
    onAbort: () => void;
  },
): Promise<Response> {
  if (reply.delayMs !== undefined) await delay(reply.delayMs);
  if (reply.status !== undefined) {
    return errorResponse(
      shape,
      reply.status,
      reply.error ?? { message: `status ${reply.status}` },
      reply.headers,
    );
  }
  const chunks = shape.chunks(body, reply, number);
  if (reply.breakAfter === undefined && reply.hangAfter === undefined) {
    const whole = reply.cutAfter === undefined
      ? `${chunks.join("")}${shape.end}`
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
    if (violations.length > 0) {
      return errorResponse(chatShape, 400, { message: violations.join("; ") });
    }
    const count = assistantCount(text);
    const name = toolName.exec(text)?.[1] ?? options.tool;
    const reply: EndpointReply = count < options.calls
      ? { calls: [{ name, arguments: options.input }] }
      : { text: "All calls are made." };
    const facts = { body: { model: "bench" }, reply, number: count + 1, onAbort: () => {} };
    return await respond(chatShape, facts);
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
