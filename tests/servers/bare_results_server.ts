/**
 * What people write who have only read about MCP: a loop that knows tools/list and tools/call, answers anything else with null, and puts no JSON-RPC around its results.
 *
 * It never answers `initialize`, so it can't be mounted; rnix must say what is missing.
 */
import { parseRequest, readLines, type Value, writeOut } from "./rpc_stdio.ts";

function resultOf(method: string | undefined): Value {
  switch (method) {
    case "tools/list":
      return { tools: [{ name: "look_up", inputSchema: { type: "object" } }] };
    case "tools/call":
      return { content: [{ type: "text", text: "found" }] };
    default:
      return null;
  }
}

await readLines((line) => writeOut(JSON.stringify(resultOf(parseRequest(line)?.method)) + "\n"));
