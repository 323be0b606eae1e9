/**
 * An MCP server that does what a scenario says, misbehaviour included.
 *
 * Usage: `deno run -A scripted_server.ts '<scenario as JSON>'`. The types below are the scenario's language; a method or tool without a step is answered as a plain server would. An answer is sent whether or not the call was cancelled.
 */
import {
  block,
  type Fields,
  isFields,
  parseRequest,
  pause,
  readLines,
  type Request,
  send,
  type Value,
  writeOut,
} from "./rpc_stdio.ts";

export interface Step {
  /** Before anything else; `blockMs` holds up the whole server. */
  delayMs?: number;
  blockMs?: number;
  /** Lines on stderr, bytes on stderr, a line on stdout that is no message. */
  stderr?: string;
  stderrBytes?: number;
  noise?: string;
  /** Bytes on stdout without a newline. */
  floodBytes?: number;
  /** Progress notifications, `everyMs` apart. */
  progress?: { everyMs: number; count: number };
  /** A request to the client; its answer is the text of the result. */
  ask?: { method: string; params?: Fields };
  /** A notification before the answer. */
  notify?: string;
  /** The last thing done: the first of these that is there. */
  exit?: number;
  silent?: boolean;
  result?: Value;
  error?: { code: number; message: string; data?: Value };
  /** Text of a plain result. */
  text?: string;
  /** Shuts stdin: later writes of the client find a closed pipe. */
  closeStdin?: boolean;
  /** The n-th use takes the n-th; the last one stays. */
  then?: Step;
}

export interface Scenario {
  /** `legacy` knows no server/discover, `modern` no initialize. */
  era?: "legacy" | "modern";
  protocolVersion?: string;
  capabilities?: Fields;
  tools?: Value[];
  /** Pages of tools/list; past the end the last one comes again. */
  pages?: { tools: Value[]; nextCursor?: string }[];
  start?: Step;
  /** By method, or `tools/call:NAME`. */
  on?: { [method: string]: Step };
  ignoreTerm?: boolean;
  ignoreEof?: boolean;
  /** Shape of stdout: pieces of so many bytes, `\r\n`, ids as text, all messages of a moment in one write. */
  chunkBytes?: number;
  crlf?: boolean;
  idsAsText?: boolean;
}

const parsed: Scenario = JSON.parse(Deno.args[0] ?? "{}");
const scenario = parsed;
const uses = new Map<string, number>();
const asked = new Map<string, (answer: Fields) => void>();
let page = 0;

function reply(message: Fields): void {
  const id = message["id"];
  const shaped = scenario.idsAsText && typeof id === "number"
    ? { ...message, id: String(id) }
    : message;
  if (scenario.chunkBytes === undefined && !scenario.crlf) return send(shaped);
  const text = JSON.stringify({ jsonrpc: "2.0", ...shaped }) + (scenario.crlf ? "\r\n" : "\n");
  const size = scenario.chunkBytes ?? text.length;
  for (let start = 0; start < text.length; start += size) {
    writeOut(text.slice(start, start + size));
  }
}

function stepFor(key: string): Step | undefined {
  let step = scenario.on?.[key];
  const used = uses.get(key) ?? 0;
  uses.set(key, used + 1);
  for (let skip = used; skip > 0 && step?.then !== undefined; skip -= 1) step = step.then;
  return step;
}

async function act(step: Step, request?: Request): Promise<Fields | undefined> {
  if (step.delayMs !== undefined) await pause(step.delayMs);
  if (step.blockMs !== undefined) block(step.blockMs);
  if (step.stderr !== undefined) writeOut(`${step.stderr}\n`, 2);
  if (step.stderrBytes !== undefined) writeOut("e".repeat(step.stderrBytes) + "\n", 2);
  if (step.noise !== undefined) writeOut(`${step.noise}\n`);
  if (step.floodBytes !== undefined) {
    const piece = "f".repeat(1 << 20);
    for (let left = step.floodBytes; left > 0; left -= piece.length) writeOut(piece);
  }
  if (step.progress !== undefined) await progress(step.progress, request);
  if (step.notify !== undefined) reply({ method: step.notify });
  if (step.closeStdin) closeStdin();
  if (step.exit !== undefined) Deno.exit(step.exit);
  if (step.ask !== undefined) {
    const answer = await new Promise<Fields>((resolve) => {
      asked.set("ask-1", resolve);
      reply({ id: "ask-1", ...step.ask });
    });
    return textResult(JSON.stringify(answer));
  }
  if (step.result !== undefined) return { result: step.result };
  if (step.error !== undefined) return { error: { ...step.error } };
  return step.text === undefined ? undefined : textResult(step.text);
}

function closeStdin(): void {
  stdinClosed = true;
  Deno.stdin.close();
}
let stdinClosed = false;

async function progress(
  { everyMs, count }: { everyMs: number; count: number },
  request: Request | undefined,
): Promise<void> {
  const meta = request?.params?.["_meta"];
  const progressToken = isFields(meta) ? meta["progressToken"] : undefined;
  for (let step = 1; step <= count && progressToken !== undefined; step += 1) {
    await pause(everyMs);
    reply({
      method: "notifications/progress",
      params: { progressToken, progress: step, message: `step ${step}` },
    });
  }
}

function textResult(text: string): Fields {
  return { result: typed({ content: [{ type: "text", text }] }) };
}

/** Results of 2026-07-28 name their type. */
function typed(result: Fields): Fields {
  return scenario.era === "modern" ? { resultType: "complete", ...result } : result;
}

function usual(method: string, params: Fields): Fields {
  const notFound = { error: { code: -32601, message: "Method not found" } };
  const capabilities = scenario.capabilities ?? { tools: {} };
  switch (method) {
    case "server/discover":
      if (scenario.era !== "modern") return notFound;
      return {
        result: typed({
          supportedVersions: ["2026-07-28"],
          capabilities,
          ttlMs: 0,
          cacheScope: "private",
        }),
      };
    case "initialize":
      if (scenario.era === "modern") return notFound;
      return {
        result: {
          protocolVersion: scenario.protocolVersion ?? "2025-11-25",
          capabilities,
          serverInfo: { name: "scripted", version: "1.0.0" },
        },
      };
    case "ping":
      return scenario.era === "modern" ? notFound : { result: {} };
    case "tools/list":
      return { result: typed({ ttlMs: 0, cacheScope: "private", ...listing() }) };
    case "tools/call":
      return textResult(`called ${String(params["name"])}`);
    default:
      return notFound;
  }
}

function listing(): Fields {
  if (scenario.pages === undefined) return { tools: scenario.tools ?? [] };
  const current = scenario.pages[Math.min(page, scenario.pages.length - 1)];
  page += 1;
  return current === undefined ? { tools: [] } : { ...current };
}

async function handle(request: Request): Promise<void> {
  const { id, method, params = {} } = request;
  if (method === undefined || id === undefined) return;
  const name = method === "tools/call" ? `tools/call:${String(params["name"])}` : method;
  const step = stepFor(name) ?? (name === method ? undefined : stepFor(method));
  if (step !== undefined) {
    const answer = await act(step, request);
    if (step.silent) return;
    if (answer !== undefined) return reply({ id, ...answer });
  }
  reply({ id, ...usual(method, params) });
}

function takeAnswer(line: string): boolean {
  const message: Fields = JSON.parse(line);
  const { id } = message;
  if (typeof id !== "string" || "method" in message) return false;
  asked.get(id)?.(message);
  return true;
}

if (scenario.ignoreTerm) {
  Deno.addSignalListener("SIGTERM", () => {});
  Deno.addSignalListener("SIGINT", () => {});
}
if (scenario.start !== undefined) await act(scenario.start);
await readLines((line) => {
  if (takeAnswer(line)) return;
  const request = parseRequest(line);
  if (request !== undefined) void handle(request);
}).catch((thrown) => {
  if (!stdinClosed) throw thrown;
});
if (scenario.ignoreEof || stdinClosed) await new Promise(() => setInterval(() => {}, 1 << 30));
