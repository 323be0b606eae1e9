/** `rnix mcp connect` and `mcp test` as they are run, against servers on loopback: what the official conformance suite asks of a client, without the suite. */
import assert from "node:assert/strict";
import type { Fields, Value } from "./servers/rpc_stdio.ts";
import { markedProcesses } from "./servers/marked_processes.ts";
import { ScriptedHttpServer } from "./servers/scripted_http_server.ts";
import type { Scenario } from "./servers/scripted_scenario.ts";
import { removeFolder } from "./doubles/remove_folder.ts";

const root = new URL("../", import.meta.url).pathname;
const LEDGER = new URL("./servers/ledger_server.ts", import.meta.url).pathname;

interface Ended {
  code: number;
  /** stdout, an object a line. */
  answers: { [name: string]: Value }[];
  stdout: string;
  stderr: string;
}

/** A home with a daemon that ends with it. */
class Home implements AsyncDisposable {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-connect-" }));
  readonly env = { RNIX_HOME: `${this.folder}/home`, NO_COLOR: "1" };

  /** Runs the real program, with these lines on its stdin. */
  async rnix(args: string[], typed: string[] = []): Promise<Ended> {
    const child = new Deno.Command(`${root}scripts/rnix`, {
      args,
      cwd: this.folder,
      env: this.env,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const stdin = child.stdin.getWriter();
    stdin.write(new TextEncoder().encode(typed.map((line) => `${line}\n`).join(""))).catch(
      () => {},
    );
    stdin.close().catch(() => {});
    const output = await child.output();
    const stdout = new TextDecoder().decode(output.stdout);
    const lines = args.includes("--json") ? stdout.trimEnd().split("\n") : [];
    return {
      code: output.code,
      answers: lines.filter((line) => line !== "").map((line) => JSON.parse(line)),
      stdout,
      stderr: new TextDecoder().decode(output.stderr),
    };
  }

  /** Looks into a server over HTTP. */
  async connect(server: ScriptedHttpServer, typed: string[], flags: string[] = []) {
    return await this.rnix(["mcp", "connect", "--json", ...flags, server.url], typed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rnix(["daemon", "stop"]);
    await removeFolder(this.folder);
  }
}

async function withServer(
  scenario: Scenario,
  work: (server: ScriptedHttpServer, home: Home) => Promise<void>,
): Promise<void> {
  await using home: Home = new Home();
  const server = await ScriptedHttpServer.start(scenario);
  try {
    await work(server, home);
  } finally {
    await server.stop();
  }
}

const tool = (name: string, properties: Fields = {}): Fields => ({
  name,
  inputSchema: { type: "object", properties },
});

/** Requests of a method, as they came. */
function requestsOf(server: ScriptedHttpServer, method: string) {
  return server.received.filter(({ message }) => message?.["method"] === method);
}

function paramsOf(server: ScriptedHttpServer, method: string): Fields[] {
  return requestsOf(server, method).map(({ message }) => {
    const params = message?.["params"];
    return typeof params === "object" && params !== null && !Array.isArray(params) ? params : {};
  });
}

const FORM: Fields = {
  message: "Who?",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      status: { type: "string", enum: ["active", "inactive"], default: "active" },
      sure: { type: "boolean", default: true },
    },
    required: [],
  },
};
const DEFAULTS = { name: "John Doe", age: 30, status: "active", sure: true };

Deno.test("an older server over HTTP: what it offers, what its tools give, what it asks", async () => {
  const scenario: Scenario = {
    tools: [tool("add_numbers", { a: { type: "number" } }), tool("ask")],
    on: {
      "tools/call:add_numbers": { text: "The sum is 8" },
      "tools/call:ask": { ask: { method: "elicitation/create", params: FORM } },
    },
  };
  await withServer(scenario, async (server, home) => {
    const lines = ["tools", 'call add_numbers {"a": 5}', "call ask", "ping"];
    const { code, answers, stderr } = await home.connect(server, lines, ["--elicit", "defaults"]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(answers.map(({ command, ok }) => [command, ok]), [
      ["tools", true],
      ["call", true],
      ["call", true],
      ["ping", true],
    ]);
    assert.match(JSON.stringify(answers[1]), /The sum is 8/);
    assert.match(JSON.stringify(answers[2]), /accept.*John Doe/);
    assert.match(stderr, /"news":"asked","method":"elicitation\/create"/);
    assert.deepEqual(paramsOf(server, "initialize").map(({ capabilities }) => capabilities), [
      { elicitation: { form: {} } },
    ]);
    assert.deepEqual(paramsOf(server, "tools/call")[0]?.["arguments"], { a: 5 });
    const declining = await home.connect(server, ["call ask"]);
    assert.match(JSON.stringify(declining.answers), /decline/);
    assert.deepEqual(paramsOf(server, "initialize").at(-1)?.["capabilities"], {});
  });
});

Deno.test("a server of 2026-07-28: every request says who asks, state goes back as it came and nowhere else", async () => {
  const input = { confirm: { method: "elicitation/create", params: FORM } };
  const asks = { resultType: "input_required", inputRequests: input };
  const done: Fields = { resultType: "complete", content: [{ type: "text", text: "done" }] };
  const scenario: Scenario = {
    era: "modern",
    tools: [tool("with_state"), tool("without_state"), tool("unrelated")],
    on: {
      "tools/call:with_state": {
        result: { ...asks, requestState: '{"n": 1}' },
        then: { result: done },
      },
      "tools/call:without_state": { result: asks, then: { result: done } },
    },
  };
  await withServer(scenario, async (server, home) => {
    const lines = ["call with_state", "call unrelated", "call without_state"];
    const { code, answers, stderr } = await home.connect(server, lines, ["--elicit", "defaults"]);
    assert.equal(code, 0, stderr);
    assert.match(JSON.stringify(answers[0]), /done/);
    const calls = paramsOf(server, "tools/call");
    assert.deepEqual(calls.map(({ name, requestState }) => [name, requestState]), [
      ["with_state", undefined],
      ["with_state", '{"n": 1}'],
      ["unrelated", undefined],
      ["without_state", undefined],
      ["without_state", undefined],
    ]);
    const given = { confirm: { action: "accept", content: DEFAULTS } };
    assert.deepEqual(calls.map(({ inputResponses }) => inputResponses), [
      undefined,
      given,
      undefined,
      undefined,
      given,
    ]);
    const ids = requestsOf(server, "tools/call").map(({ message }) => message?.["id"]);
    assert.equal(new Set(ids).size, ids.length, "each round has an id of its own");
    for (const { message, headers } of server.received) {
      const text = JSON.stringify(message);
      assert.match(text, /"io\.modelcontextprotocol\/protocolVersion":"2026-07-28"/);
      assert.match(text, /"io\.modelcontextprotocol\/clientInfo":\{"name":"rnix"/);
      assert.match(text, /"io\.modelcontextprotocol\/clientCapabilities":\{"elicitation"/);
      assert.equal(header(headers, "mcp-protocol-version"), "2026-07-28");
      assert.equal(header(headers, "mcp-method"), message?.["method"]);
    }
  });
});

Deno.test("marked arguments are headers too; a tool with a bad mark isn't offered, the others are", async () => {
  const marked = (name: Value, type = "string") => ({ type, "x-mcp-header": name });
  const scenario: Scenario = {
    era: "modern",
    tools: [
      tool("good", { region: marked("Region"), quiet: marked("Quiet", "boolean") }),
      tool("spaced", { region: marked("My Region") }),
      tool("nested", { data: marked("Data", "object") }),
    ],
  };
  await withServer(scenario, async (server, home) => {
    const lines = ["tools", 'call good {"region": "Grüße", "quiet": false}'];
    const { code, answers } = await home.connect(server, lines);
    assert.equal(code, 0);
    assert.match(JSON.stringify(answers[0]), /"good"/);
    assert.doesNotMatch(JSON.stringify(answers[0]), /"spaced"|"nested"/);
    const [call] = requestsOf(server, "tools/call");
    const encoded = `=?base64?${new TextEncoder().encode("Grüße").toBase64()}?=`;
    assert.equal(header(call?.headers, "mcp-param-region"), encoded);
    assert.equal(header(call?.headers, "mcp-param-quiet"), "false");
    assert.equal(header(call?.headers, "mcp-name"), "good");
  });
});

Deno.test("schemas come through as they were sent, and what they refer to is not fetched", async () => {
  let fetched = 0;
  const canary = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, () => {
    fetched += 1;
    return new Response("{}");
  });
  const inputSchema: Fields = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { id: { $anchor: "id", type: "string" } },
    properties: {
      id: { $ref: "#/$defs/id" },
      profile: { $ref: `http://127.0.0.1:${canary.addr.port}/profile.json` },
    },
    allOf: [{ if: { required: ["id"] }, then: { required: ["profile"] } }],
    additionalProperties: false,
  };
  try {
    await withServer({ tools: [{ name: "lookup", inputSchema }] }, async (server, home) => {
      const lines = ["tools", 'call lookup {"id": "a"}', "tool lookup"];
      const { answers } = await home.connect(server, lines);
      const [listed, , shown] = answers;
      assert.deepEqual(listed?.["data"], { tools: [{ name: "lookup", inputSchema }] });
      assert.deepEqual(shown?.["data"], { name: "lookup", inputSchema });
      assert.equal(fetched, 0);
    });
  } finally {
    await canary.shutdown();
  }
});

Deno.test("headers given are sent, and the key in them is in no error", async () => {
  const scenario: Scenario = {
    on: { initialize: { http: { status: 401, body: "no: k-1234567" } } },
  };
  await withServer(scenario, async (server, home) => {
    const args = [
      "mcp",
      "test",
      "--json",
      "--header",
      "Authorization: Bearer k-1234567",
      server.url,
    ];
    const { code, stdout, stderr } = await home.rnix(args);
    assert.equal(code, 1);
    const [initialize] = requestsOf(server, "initialize");
    assert.equal(header(initialize?.headers, "authorization"), "Bearer k-1234567");
    assert.doesNotMatch(stdout + stderr, /k-1234567/);
  });
});

Deno.test("[D19] mcp test: 0 all is well, 1 a step failed, 2 no such server; nothing is left behind", async () => {
  await using home: Home = new Home();
  const ledger = ["--", Deno.execPath(), "run", "--quiet", "-A", LEDGER, `${home.folder}/ledger`];
  const good = await home.rnix(["mcp", "test", ...ledger]);
  assert.equal(good.code, 0, good.stderr);
  assert.match(good.stdout, /^ok +connect +\S+ +ledger 1\.0\.0, MCP 2025-11-25, stdio\n/);
  assert.match(good.stdout, /\nok +tools +\S+ +8 tools\n/);
  const bad = await home.rnix(["mcp", "test", "--json", "--", "sh", "-c", "exit 3"]);
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /"state":"failed"/);
  assert.equal((await home.rnix(["mcp", "test", "nowhere"])).code, 2);
  const folder = `${home.folder}/home/config`;
  Deno.mkdirSync(folder, { recursive: true });
  const config = { servers: { mine: { command: ledger[1] ?? "", args: ledger.slice(2) } } };
  Deno.writeTextFileSync(`${folder}/mcp.yaml`, JSON.stringify(config));
  const completed = await home.rnix(["complete", "mcp", "test", ""]);
  assert.equal(completed.stdout, "mine\tserver of the user\n");
  const named = await home.rnix(["mcp", "test", "mine"]);
  assert.equal(named.code, 0, named.stderr);
  const record = JSON.parse(Deno.readTextFileSync(`${home.folder}/home/state/daemon.json`));
  assert.deepEqual(await markedProcesses(record.instance), []);
});

function header(headers: { [name: string]: string } | undefined, name: string): string | undefined {
  return Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
}
