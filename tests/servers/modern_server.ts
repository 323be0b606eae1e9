/**
 * A server made with the official SDK: the tool `add`.
 *
 * Usage: `modern_server.ts [legacy|http]`. On stdio it speaks 2026-07-28 and the versions before, with `legacy` only those before, with `http` all of them at an address on loopback, which is its first line.
 */
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

function createServer(): McpServer {
  const server = new McpServer({ name: "modern", version: "1.0.0" });
  server.registerTool("add", {
    description: "Adds two numbers",
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    outputSchema: z.object({ sum: z.number() }),
  }, ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
    structuredContent: { sum: a + b },
  }));
  return server;
}

switch (Deno.args[0]) {
  case "legacy":
    await createServer().connect(new StdioServerTransport());
    break;
  case "http": {
    const handler = createMcpHandler(createServer);
    Deno.serve({
      port: 0,
      hostname: "127.0.0.1",
      onListen: ({ port }) => console.log(`http://127.0.0.1:${port}/mcp`),
    }, (request) => handler.fetch(request));
    break;
  }
  default:
    serveStdio(createServer);
}
