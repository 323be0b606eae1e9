/**
 * One journaled step of an agent against a bare loop: 200 sequential steps, each one model request (streamed, zero-latency endpoint in a process of its own) and one call to a real stdio server.
 *
 * The bare loop does what no agent can do without: fetch and parse the stream, call through the MCP SDK, write two records and sync each. Both send the growing history. Starting and mounting are left out on both sides.
 */
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createSystem } from "../../src/daemon/mod.ts";
import type { RunEvent } from "../../src/base/operations.ts";

const STEPS = 200;
const SERVER = ["run", "--quiet", "-A", "npm:@modelcontextprotocol/server-everything@2026.8.31"];
const folder = await Deno.makeTempDir({ prefix: "rnix-bench-" });

const endpoint = new Deno.Command(Deno.execPath(), {
  args: [
    ...[
      "run",
      "--quiet",
      "--allow-net=127.0.0.1",
      new URL("../servers/model_endpoint.ts", import.meta.url).pathname,
    ],
    ...["--calls", String(STEPS), "--tool", "echo", "--input", '{"message":"hi"}', "--no-check"],
  ],
  stdout: "piped",
}).spawn();
const firstLine =
  (await endpoint.stdout.pipeThrough(new TextDecoderStream()).getReader().read()).value ?? "";
const { url } = JSON.parse(firstLine);

globalThis.addEventListener("unload", () => {
  endpoint.kill();
  Deno.removeSync(folder, { recursive: true });
});

await Deno.writeTextFile(
  `${folder}/agent.yaml`,
  `name: stepper
instructions: Echo.
models: { provider: openai-compatible, preferred: m, base_url: "${url}" }
mcp:
  servers:
    everything:
      command: "${Deno.execPath()}"
      args: ${JSON.stringify(SERVER)}
budget: { turns: 1000 }
`,
);

const { system } = await createSystem({
  env: { ...Deno.env.toObject(), RNIX_HOME: `${folder}/home` },
  uid: Deno.uid() ?? 0,
  osPid: Deno.pid,
});

Deno.bench(
  { name: "bare loop: 200 steps", group: "steps", baseline: true, n: 6, warmup: 1 },
  async (b) => {
    const client = new Client({ name: "bare", version: "0" });
    await client.connect(
      new StdioClientTransport({ command: Deno.execPath(), args: SERVER, stderr: "ignore" }),
    );
    const { tools } = await client.listTools();
    using file = await Deno.open(`${folder}/bare`, { create: true, append: true });
    b.start();
    await bareLoop(client, tools, file);
    b.end();
    await client.close();
  },
);

Deno.bench({ name: "rnix: 200 steps", group: "steps", n: 6, warmup: 1 }, async (b) => {
  const ended = Promise.withResolvers<void>();
  let first = true;
  const handle = await system.run({
    manifest: `${folder}/agent.yaml`,
    intent: "Go",
    trust: false,
    client: { cwd: folder, env: Deno.env.toObject(), interactive: false },
  }, {
    onEvent(event: RunEvent) {
      if (event.type === "model.started" && first) {
        first = false;
        b.start();
      }
      if (event.type !== "run.exited") return;
      b.end();
      ended.resolve();
    },
  });
  await ended.promise;
  const report = await handle.done;
  if (report.exit_code !== 0 || report.turns !== STEPS + 1) throw new Error(JSON.stringify(report));
});

async function bareLoop(client: Client, tools: unknown[], file: Deno.FsFile): Promise<void> {
  const messages: unknown[] = [{ role: "system", content: "Echo." }, {
    role: "user",
    content: "Go",
  }];
  const functions = tools.map((tool) => ({ type: "function", function: tool }));
  const encoder = new TextEncoder();
  for (;;) {
    const response = await fetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", messages, tools: functions, stream: true }),
    });
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
    }
    const call = callIn(text);
    file.writeSync(encoder.encode(`${text}\n`));
    await file.syncData();
    if (call === undefined) return;
    const result = await client.request({
      method: "tools/call",
      params: { name: "echo", arguments: JSON.parse(call.arguments) },
    });
    file.writeSync(encoder.encode(`${JSON.stringify(result)}\n`));
    await file.syncData();
    messages.push({
      role: "assistant",
      content: null,
      tool_calls: [{
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: call.arguments },
      }],
    }, { role: "tool", tool_call_id: call.id, content: JSON.stringify(result) });
  }
}

/** The call that the chunks of a stream add up to. */
function callIn(stream: string): { id: string; name: string; arguments: string } | undefined {
  const call = { id: "", name: "", arguments: "" };
  for (const line of stream.split("\n")) {
    if (!line.startsWith("data: {")) continue;
    const part = JSON.parse(line.slice(6)).choices?.[0]?.delta?.tool_calls?.[0];
    if (part === undefined) continue;
    call.id += part.id ?? "";
    call.name += part.function?.name ?? "";
    call.arguments += part.function?.arguments ?? "";
  }
  return call.name === "" ? undefined : call;
}
