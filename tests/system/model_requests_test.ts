/** What a model endpoint gets to see over a long run on real servers: pairing, names, schemas, order, and the same bytes again in a second run. */
import assert from "node:assert/strict";
import type { RunReport } from "../../src/base/operations.ts";
import { createSystem } from "../../src/daemon/mod.ts";
import { type RecordedRequest, startModelEndpoint } from "../servers/model_endpoint.ts";
import { removeFolder } from "../doubles/remove_folder.ts";

const SEQUENTIAL = 200;
const PARALLEL = 8;
const NPM = (
  name: string,
) => ["run", "--quiet", "-A", `npm:@modelcontextprotocol/${name}@2026.8.31`];

function manifest(url: string, folder: string): string {
  return `name: busy
instructions: Call what you are told to call.
models: { provider: openai-compatible, preferred: test-model, base_url: "${url}" }
mcp:
  servers:
    everything:
      command: "${Deno.execPath()}"
      args: ${JSON.stringify(NPM("server-everything"))}
      startup_timeout: 1m
    files:
      command: "${Deno.execPath()}"
      args: ${JSON.stringify([...NPM("server-filesystem"), folder])}
      startup_timeout: 1m
      tools: { effects: { read_text_file: read } }
budget: { turns: 300 }
`;
}

function echo(index: number) {
  return { name: "echo", arguments: JSON.stringify({ message: `no. ${index}` }), id: `e${index}` };
}

function read(index: number, folder: string) {
  const path = `${folder}/note.txt`;
  return { name: "read_text_file", arguments: JSON.stringify({ path }), id: `r${index}` };
}

async function runOnce(
  folder: string,
): Promise<{ requests: RecordedRequest[]; report: RunReport }> {
  const endpoint = startModelEndpoint((_, number) => {
    if (number <= SEQUENTIAL) return { calls: [echo(number)] };
    if (number > SEQUENTIAL + 1) return { text: "All called." };
    const parallel = Array.from(
      { length: PARALLEL },
      (_, index) => index % 2 === 0 ? echo(1000 + index) : read(index, folder),
    );
    return { calls: parallel };
  });
  const home = Deno.makeTempDirSync({ prefix: "rnix-requests-home-" });
  const env = { ...Deno.env.toObject(), RNIX_HOME: home };
  const { system, close } = await createSystem({ env, uid: Deno.uid() ?? 0, osPid: Deno.pid });
  try {
    Deno.writeTextFileSync(`${home}/agent.yaml`, manifest(endpoint.url, folder));
    const handle = await system.run({
      manifest: `${home}/agent.yaml`,
      intent: "Call them all",
      trust: false,
      client: { cwd: folder, env, interactive: false },
    }, { onEvent: () => {} });
    const report = await handle.done;
    assert.deepEqual(endpoint.violations, []);
    return { requests: endpoint.requests, report };
  } finally {
    await close();
    await endpoint.close();
    Deno.removeSync(home, { recursive: true });
  }
}

function toolNames(request: RecordedRequest): string {
  const tools = request.body["tools"];
  assert.ok(Array.isArray(tools));
  return JSON.stringify(tools);
}

Deno.test("200 sequential and 8 parallel calls on real servers give valid, repeatable requests", async () => {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-requests-" }));
  try {
    Deno.writeTextFileSync(`${folder}/note.txt`, "a note");
    const first = await runOnce(folder);
    assert.equal(first.report.exit_code, 0, JSON.stringify(first.report));
    assert.equal(first.report.result, "All called.");
    assert.equal(first.requests.length, SEQUENTIAL + 2);
    const last = first.requests.at(-1)?.body["messages"];
    assert.ok(Array.isArray(last));
    const results = last.filter((message) => JSON.stringify(message).includes('"role":"tool"'));
    assert.equal(results.length, SEQUENTIAL + PARALLEL);
    const names = first.requests.map(toolNames);
    assert.equal(new Set(names).size, 1, "the tools differ between requests");
    const second = await runOnce(folder);
    const decode = (request: RecordedRequest) => new TextDecoder().decode(request.bytes);
    assert.deepEqual(second.requests.map(decode), first.requests.map(decode));
  } finally {
    await removeFolder(folder);
  }
});
