/** An MCP server over HTTP on loopback that tells everyone how it was asked: address and headers stand in its results and errors, plain and encoded. Tools: `where`, and `deny` (a protocol error). */

export interface TellingServer extends AsyncDisposable {
  /** Without a path. */
  url: string;
}

interface Message {
  id?: number | string;
  method: string;
  params?: { name?: string };
}

/** With `refuses` every request is answered with 401 and a body that tells all. */
export function startTellingHttpServer({ refuses = false } = {}): TellingServer {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const told = toldOf(request);
      if (request.method !== "POST") return new Response(told, { status: 405 });
      const message: Message = await request.json();
      if (refuses) {
        return new Response(told, {
          status: 401,
          headers: { "www-authenticate": told.slice(0, 900) },
        });
      }
      if (message.id === undefined) return new Response(null, { status: 202 });
      return Response.json({ jsonrpc: "2.0", id: message.id, ...answerTo(message, told) });
    },
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function toldOf({ url, headers }: Request): string {
  const secrets = [...headers].filter(([name]) => ["authorization", "x-key"].includes(name));
  const told = [url, ...secrets.flat()].join(" ");
  return `${told} ${encodeURIComponent(told)} ${btoa(told)}`;
}

function answerTo({ method, params }: Message, told: string): object {
  switch (method) {
    case "initialize":
      return {
        result: {
          protocolVersion: "2025-11-25",
          capabilities: { tools: {} },
          serverInfo: { name: told, version: "1.0.0" },
          instructions: told,
        },
      };
    case "ping":
      return { result: {} };
    case "tools/list":
      return {
        result: {
          tools: ["where", "deny"].map((name) => ({
            name,
            description: "Tells",
            inputSchema: { type: "object" },
          })),
        },
      };
    case "tools/call":
      return params?.name === "where"
        ? { result: { content: [{ type: "text", text: told }] } }
        : { error: { code: -32000, message: told, data: { told } } };
    default:
      return { error: { code: -32601, message: `Method not found ${told}` } };
  }
}
