/** What a model and a person get of a real server: a long result in pieces, and the server's log while it works. */
import assert from "node:assert/strict";
import { startModelEndpoint } from "../servers/model_endpoint.ts";
import type { Scenario } from "../servers/scripted_scenario.ts";
import { manifestOf, withModelHome } from "./model_home.ts";

const scriptedServer = new URL("../servers/scripted_server.ts", import.meta.url).pathname;
const ROW = "a row with a 😀 in it\n";
const ROWS = 3_000;
const NEXT = /\{"result":"[0-9a-f]{12}","offset":\d+\}/;

const SCENARIO: Scenario = {
  tools: [{ name: "rows", inputSchema: { type: "object" } }],
  on: { "tools/call": { stderr: "counting rows\n[rnix] not by rnix", text: ROW, textTimes: ROWS } },
};

function mount(): string {
  const args = [
    "run",
    "--quiet",
    "--no-prompt",
    "--allow-all",
    scriptedServer,
    JSON.stringify(SCENARIO),
  ];
  const server = {
    ...{ command: Deno.execPath(), args, startup_timeout: "1m", max_output_tokens: 400 },
    tools: { effects: { rows: "read" } },
  };
  return `mcp: { servers: { world: ${JSON.stringify(server)} } }\n`;
}

Deno.test("[B41] a model reads on in a long result as its mark says, and the log tells who wrote what", async () => {
  const seen: string[] = [];
  const offered: boolean[] = [];
  const endpoint = startModelEndpoint((body, number) => {
    const { messages, tools } = body;
    offered.push(JSON.stringify(tools).includes('"ReadResult"'));
    if (number === 1) return { calls: [{ name: "rows", arguments: "{}" }] };
    const last = Array.isArray(messages) ? messages.at(-1) : undefined;
    const text = String((last as { content: string }).content);
    seen.push(text);
    if (number === 2) {
      return { calls: [{ name: "ReadResult", arguments: NEXT.exec(text)?.[0] ?? "" }] };
    }
    return { text: "done" };
  });
  await withModelHome({}, async (home) => {
    const models = `{ provider: openai-compatible, preferred: m, base_url: "${endpoint.url}" }`;
    home.write("agent.yaml", manifestOf(models, mount()));
    const report = await home.run("./agent.yaml");
    assert.equal(report.result, "done", JSON.stringify(report.error));
    const [cut = "", piece = ""] = seen;
    const head = cut.slice(0, cut.indexOf("\n\n[… cut"));
    const body = piece.slice(0, piece.indexOf("\n[… characters"));
    assert.ok(ROW.repeat(ROWS).startsWith(head + body), `${head}|${body}`);
    assert.ok(body.length > ROW.length);
    assert.deepEqual(offered, [false, true, true]);
    const lines: string[] = [];
    for await (const { source, text } of home.system.mountLogs("world")) {
      lines.push(`[${source}] ${text}`);
    }
    assert.deepEqual(lines, ["[stderr] counting rows", "[stderr] [rnix] not by rnix"]);
  });
  await endpoint.close();
});
