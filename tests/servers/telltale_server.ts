/**
 * An MCP server that tells everyone what it was started with: its secrets stand in results, errors, progress and on stderr, each in several forms.
 *
 * Usage: `deno run -A telltale_server.ts NAME…`: names of the variables to tell; a `NAME=VALUE` tells that value, so that an argument can be told. Tools: `tell`, `fail` (a tool's error), `refuse` (a protocol error). With `--die` it tells on stderr and exits.
 */
import { isFields, parseRequest, readLines, type Request, send, writeOut } from "./rpc_stdio.ts";

const names = Deno.args.filter((name) => !name.startsWith("--"));
const values = names.map((name) => /^\w+=(.*)$/s.exec(name)?.[1] ?? Deno.env.get(name) ?? "");
const told = values.flatMap(formsOf).join(" | ");
const content = [{ type: "text", text: `told: ${told}` }];
const tool = (name: string) => ({ name, description: "", inputSchema: { type: "object" } });

/** What may be made of a value on its way. */
function formsOf(value: string): string[] {
  const percent = (unit: string) => `%${unit.charCodeAt(0).toString(16).padStart(2, "0")}`;
  const partly = value.replace(/./g, (unit, at: number) => at % 3 === 0 ? percent(unit) : unit);
  const basic = btoa(`user:${value}`);
  return [
    value,
    encodeURIComponent(value),
    partly,
    btoa(value),
    basic,
    basic.replaceAll("+", "-").replaceAll("/", "_"),
    JSON.stringify(JSON.stringify(value)),
  ];
}

writeOut(`${told}\n`, 2);
if (Deno.args.includes("--die")) Deno.exit(3);

function handle({ id, method, params = {} }: Request): void {
  if (id === undefined) return;
  if (method === "initialize") {
    const serverInfo = { name: told, version: "1.0.0" };
    const capabilities = { tools: {} };
    return send({ id, result: { protocolVersion: "2025-11-25", capabilities, serverInfo } });
  }
  if (method === "tools/list") {
    return send({ id, result: { tools: ["tell", "fail", "refuse"].map(tool) } });
  }
  if (method !== "tools/call") {
    return send({ id, error: { code: -32601, message: "Method not found" } });
  }
  const meta = params["_meta"];
  const progressToken = isFields(meta) ? meta["progressToken"] : undefined;
  if (progressToken !== undefined) {
    const progress = { progressToken, progress: 1, message: told };
    send({ method: "notifications/progress", params: progress });
  }
  if (params["name"] === "refuse") return send({ id, error: { code: -32000, message: told } });
  send({ id, result: { content, ...(params["name"] === "fail" ? { isError: true } : {}) } });
}

await readLines((line) => {
  const request = parseRequest(line);
  if (request !== undefined) handle(request);
});
