/**
 * An MCP server whose effects can be counted: `pay` appends one line to the file given as argument, syncs it, then answers.
 *
 * Usage: `deno run -A ledger_server.ts LEDGER [--ignore-term] [--ignore-eof] [--trace]`. Speaks 2025-11-25. Tools: `pay` {note, delay_ms?, after_ms?}, `peek` {}, `upsert` {key, value}, `fail` {message?}, `big` {bytes}, `slow` {ms, progress_ms?}, `wait` {path}, `die` {note, code?}. A ledger line is `TOOL NOTE KEY` with the idempotency key (or `-`), with `--trace` and the call's trace context after it.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import {
  type Fields,
  isFields,
  parseRequest,
  pause,
  readLines,
  type Request,
  send,
  type Value,
} from "./rpc_stdio.ts";

const [ledger = "", ...flags] = Deno.args;
const cancelled = new Set<Value>();

const text = { type: "string" };
const number = { type: "number" };
const tool = (name: string, description: string, properties: Fields, required: string[] = []) => ({
  name,
  description,
  inputSchema: { type: "object", properties, required, additionalProperties: false },
});

const TOOLS = [
  tool("pay", "Appends a line to the ledger", { note: text, delay_ms: number, after_ms: number }, [
    "note",
  ]),
  tool("peek", "Reads the ledger", {}),
  tool("upsert", "Sets a key in the ledger", { key: text, value: text }, ["key", "value"]),
  tool("fail", "Always fails", { message: text }),
  tool("big", "Gives a long text", { bytes: number }, ["bytes"]),
  tool("slow", "Takes a while", { ms: number, progress_ms: number }, ["ms"]),
  tool("wait", "Waits until a file is there", { path: text }, ["path"]),
  tool("die", "Appends a line, then exits without an answer", { note: text, code: number }, [
    "note",
  ]),
];

function append(line: string): void {
  const file = openSync(ledger, "a", 0o600);
  writeSync(file, `${line}\n`);
  fsyncSync(file);
  closeSync(file);
}

function readLedger(): string {
  try {
    return readFileSync(ledger, "utf8");
  } catch {
    return "";
  }
}

const number_of = (value: Value | undefined): number => typeof value === "number" ? value : 0;
const text_of = (value: Value | undefined): string => typeof value === "string" ? value : "";
const answer = (reply: string): Fields => ({ content: [{ type: "text", text: reply }] });

async function slow(args: Fields, request: Request): Promise<Fields> {
  const everyMs = number_of(args["progress_ms"]);
  const meta = request.params?.["_meta"];
  const token = isFields(meta) ? meta["progressToken"] : undefined;
  let left = number_of(args["ms"]);
  for (let step = 1; left > 0; step += 1) {
    const nextMs = everyMs > 0 ? Math.min(everyMs, left) : left;
    await pause(nextMs);
    left -= nextMs;
    if (everyMs > 0 && token !== undefined) {
      send({
        method: "notifications/progress",
        params: { progressToken: token, progress: step, message: `step ${step}` },
      });
    }
  }
  return answer(`slept ${number_of(args["ms"])} ms`);
}

async function thereIs(path: string): Promise<Fields> {
  while (!existsSync(path)) await pause(20);
  return answer("it is there");
}

async function call(name: string, args: Fields, key: string, request: Request): Promise<Fields> {
  const note = text_of(args["note"]).replaceAll("\n", " ");
  switch (name) {
    case "pay":
      await pause(number_of(args["delay_ms"]));
      append(`pay ${note} ${key}`);
      await pause(number_of(args["after_ms"]));
      return answer(`paid ${note}`);
    case "peek":
      return answer(readLedger());
    case "upsert":
      append(`upsert ${text_of(args["key"])}=${text_of(args["value"])} ${key}`);
      return answer("ok");
    case "fail":
      return { ...answer(text_of(args["message"]) || "it failed"), isError: true };
    case "big":
      return answer("x".repeat(number_of(args["bytes"])));
    case "slow":
      return await slow(args, request);
    case "wait":
      return await thereIs(text_of(args["path"]));
    case "die":
      append(`die ${note} ${key}`);
      Deno.exit(number_of(args["code"]));
  }
  return { ...answer(`no tool ${name}`), isError: true };
}

async function handle(request: Request): Promise<void> {
  const { id, method, params = {} } = request;
  if (method === "notifications/cancelled" && params["requestId"] !== undefined) {
    cancelled.add(params["requestId"]);
  }
  if (id === undefined) return;
  if (method === "initialize") {
    return send({
      id,
      result: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "ledger", version: "1.0.0" },
      },
    });
  }
  if (method === "ping") return send({ id, result: {} });
  if (method === "tools/list") return send({ id, result: { tools: TOOLS } });
  if (method !== "tools/call") {
    return send({ id, error: { code: -32601, message: "Method not found" } });
  }
  const { arguments: args, _meta: meta, name } = params;
  const key = isFields(meta) ? text_of(meta["rnix/idempotencyKey"]) || "-" : "-";
  const trace = isFields(meta) && flags.includes("--trace")
    ? ` ${text_of(meta["traceparent"]) || "-"}`
    : "";
  const result = await call(text_of(name), isFields(args) ? args : {}, key + trace, request);
  if (!cancelled.has(id)) send({ id, result });
}

if (flags.includes("--ignore-term")) {
  Deno.addSignalListener("SIGTERM", () => {});
  Deno.addSignalListener("SIGINT", () => {});
}
await readLines((line) => {
  const request = parseRequest(line);
  if (request !== undefined) void handle(request);
});
if (flags.includes("--ignore-eof")) await new Promise(() => setInterval(() => {}, 1 << 30));
