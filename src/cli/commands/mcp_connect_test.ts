import assert from "node:assert/strict";
import { FakeServer, SERVER_FACTS } from "../../../tests/doubles/fake_server.ts";
import { FakeSystem } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld, type WorldOptions } from "../../../tests/doubles/fake_world.ts";
import { settle } from "../../../tests/doubles/virtual_clock.ts";
import { SysError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { ServerAnswer } from "../../base/server_operations.ts";

const ok = (result: Json): ServerAnswer => ({ outcome: "ok", result });
const TOOLS = {
  tools: [
    { name: "add", description: "Adds numbers\nand more", inputSchema: { type: "object" } },
    { name: "odd", description: "An \x1b[31mold trick", inputSchema: true },
  ],
};

interface Ran {
  exitCode: number;
  out: string;
  err: string;
  system: FakeSystem;
  server: FakeServer;
}

async function connected(
  typed: string[],
  { args = ["files"], server = new FakeServer(), ...options }: WorldOptions & {
    args?: string[];
    server?: FakeServer;
  } = {},
): Promise<Ran> {
  const system = new FakeSystem();
  system.server = server.connect;
  const lines = [...typed, "quit"].map((line) => `${line}\n`);
  const world = new FakeWorld({ ...options, system, typed: lines });
  const exitCode = await world.run("mcp", "connect", ...args);
  return { exitCode, out: world.out.text, err: world.err.text, system, server };
}

Deno.test("each command is one request, in order, and the server is ended", async () => {
  const { exitCode, server, system } = await connected([
    "tools",
    'call add {"a": 1}',
    'call "a tool" ',
    "read file:///a b.txt",
    'prompt greet {"who": "Ann"}',
    "  # a comment",
    "",
    "templates",
    "ping",
  ], { args: ["--timeout", "2s", "files"] });
  assert.equal(exitCode, 0);
  assert.deepEqual(
    server.asked.map(({ method, params, timeout_ms }) => [method, params, timeout_ms]),
    [
      ["tools/list", {}, 2_000],
      ["tools/call", { name: "add", arguments: { a: 1 } }, 2_000],
      ["tools/call", { name: "a tool", arguments: {} }, 2_000],
      ["resources/read", { uri: "file:///a b.txt" }, 2_000],
      ["prompts/get", { name: "greet", arguments: { who: "Ann" } }, 2_000],
      ["resources/templates/list", {}, 2_000],
      ["ping", {}, 2_000],
    ],
  );
  assert.equal(server.closed, 1);
  const [opened] = system.opened;
  assert.deepEqual(opened?.server, { kind: "configured", name: "files" });
  assert.deepEqual(opened?.elicit, { kind: "decline" });
  assert.equal(opened?.client.cwd, "/project");
});

Deno.test("a modern server has no ping, so it is asked what it is", async () => {
  const server = new FakeServer();
  server.facts = { ...SERVER_FACTS, era: "modern", protocol_version: "2026-07-28" };
  await connected(["ping"], { server });
  assert.deepEqual(server.asked.map(({ method }) => method), ["server/discover"]);
});

Deno.test("[D21] --json: one object a line on stdout and nothing else, errors too", async () => {
  const server = new FakeServer({
    "tools/list": () => ok(TOOLS),
    "tools/call": ({ params }) =>
      params["name"] === "lost"
        ? { outcome: "unknown", error: { code: "TIMEOUT", message: "No answer" } }
        : ok({ content: [], isError: true }),
    "resources/read": () => ({
      outcome: "error",
      error: { code: "DRIVER", message: "MCP error -32002: gone" },
      rpc: { code: -32002 },
    }),
  });
  const ran = await connected(
    ["tools", "call lost", "call bad", "read x", "nonsense", "call add [1]", "info"],
    { args: ["--json", "files"], server },
  );
  const lines = ran.out.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.slice(0, 4), [
    { command: "tools", ok: true, data: TOOLS },
    {
      command: "call",
      ok: false,
      outcome: "unknown",
      error: { code: "TIMEOUT", message: "No answer" },
    },
    {
      command: "call",
      ok: false,
      data: { content: [], isError: true },
      error: { code: "DRIVER", message: 'Tool "bad" reported an error' },
    },
    {
      command: "read",
      ok: false,
      error: { code: "DRIVER", message: "MCP error -32002: gone" },
      rpc: { code: -32002 },
    },
  ]);
  assert.deepEqual(lines.slice(4).map(({ command, ok }) => [command, ok]), [
    ["nonsense", false],
    ["call", false],
    ["info", true],
  ]);
  assert.deepEqual(lines.at(-1).data, SERVER_FACTS);
  assert.deepEqual([ran.exitCode, ran.err], [1, ""]);
});

Deno.test("what a server tells by itself goes to stderr, as JSON where that is wanted", async () => {
  const server = new FakeServer({
    ping: () => {
      const params = { level: "info", data: "half \x1b]0;way" };
      server.observer?.onNews({ kind: "notification", method: "notifications/message", params });
      server.observer?.onNews({
        kind: "asked",
        method: "elicitation/create",
        params: { message: "Sure?" },
        answer: { result: { action: "decline" } },
      });
      server.observer?.onMissed?.(3);
      return ok({});
    },
  });
  const told = await connected(["ping"], { server });
  assert.equal(
    told.err,
    'log info: half \\x1b]0;way\nthe server asks (elicitation/create) "Sure?": declined\n' +
      "warning: 3 messages of the server were missed\n",
  );
  const json = await connected(["ping"], { server, args: ["--json", "files"] });
  const [first] = json.err.split("\n").map((line) => line === "" ? undefined : JSON.parse(line));
  assert.deepEqual(first, {
    news: "notification",
    method: "notifications/message",
    params: { level: "info", data: "half \x1b]0;way" },
  });
  assert.ok(!json.err.includes("\x1b"));
  const quiet = await connected(["ping"], { server, args: ["-q", "files"] });
  assert.equal(quiet.err, "");
});

Deno.test("results for people: lists as tables, text as text, the rest as lines; nothing raw on a terminal", async () => {
  const server = new FakeServer({
    "tools/list": () => ok(TOOLS),
    "tools/call": () =>
      ok({
        content: [
          { type: "text", text: "evil \x1b[2J text" },
          { type: "image", mimeType: "image/png", data: "AAAA" },
          { type: "resource_link", uri: "file:///x" },
        ],
      }),
  });
  const terminal = await connected(["tools", "call add"], { server, terminal: true, columns: 60 });
  assert.equal(
    terminal.out,
    `NAME  DESCRIPTION
add   Adds numbers
odd   An \\x1b[31mold trick
evil \\x1b[2J text
[image image/png, 3 B]
[resource file:///x]
`,
  );
  assert.match(terminal.err, /^files> files> files> /);
  const piped = await connected(["call add"], { server });
  assert.ok(piped.out.startsWith("evil \x1b[2J text\n"), "a program gets the text as it is");
  const shown = await connected(["tool add", "tool nope", "info"], { server });
  assert.match(shown.out, /^add\nAdds numbers\nand more\ninput: {\n/);
  assert.match(shown.out, /\nfiles 1\.2\.0\nMCP 2025-11-25 over stdio, connected in 120ms\n/);
  assert.match(shown.err, /The server has no tool "nope"/);
  assert.equal(shown.exitCode, 1);
});

Deno.test("an error of the tool is visible beside what it said", async () => {
  const content = [{ type: "text", text: "disk full" }];
  const server = new FakeServer({ "tools/call": () => ok({ content, isError: true }) });
  const { out, err, exitCode } = await connected(["call save"], { server });
  assert.deepEqual([out, exitCode], ["disk full\n", 1]);
  assert.equal(err, '[DRIVER] Tool "save" reported an error\n');
});

Deno.test("a server that can't be connected is exit 3, one that isn't known exit 2, in JSON one line", async () => {
  for (const exitCode of [2, 3]) {
    const system = new FakeSystem();
    system.failure = new SysError("NOT_FOUND", 'Unknown server "files"', { exitCode });
    const world = new FakeWorld({ system });
    assert.equal(await world.run("mcp", "connect", "--json", "files"), exitCode);
    assert.deepEqual(JSON.parse(world.out.text), {
      command: "connect",
      ok: false,
      error: { code: "NOT_FOUND", message: 'Unknown server "files"' },
    });
    const plain = new FakeWorld({ system });
    assert.equal(await plain.run("mcp", "connect", "files"), exitCode);
    assert.deepEqual([plain.out.text, plain.err.text], [
      "",
      '[NOT_FOUND] Unknown server "files"\n',
    ]);
  }
});

Deno.test("a server that goes ends the session with its reason", async () => {
  const server = new FakeServer();
  const system = new FakeSystem();
  system.server = server.connect;
  const world = new FakeWorld({ system, typed: ["ping\n"] });
  const running = world.run("mcp", "connect", "files");
  await settle();
  server.die('Server "files" has gone: it exited with code 1');
  assert.equal(await running, 1);
  assert.equal(
    world.err.text,
    '[DEVICE_DISCONNECTED] Server "files" has gone: it exited with code 1\n',
  );
  assert.equal(server.closed, 1);
  assert.deepEqual(world.listening, []);
});

/** A call that ends only when it is cancelled. */
function waiting(): FakeServer {
  return new FakeServer({
    "tools/call": (_, signal) =>
      new Promise((resolve) =>
        signal?.addEventListener("abort", () => {
          const error = { code: "UNKNOWN_OUTCOME", message: "It was cancelled" };
          resolve({ outcome: "unknown", error });
        })
      ),
  });
}

Deno.test("Ctrl-C cancels the call in flight and no more; at the prompt it leaves", async () => {
  const server = waiting();
  const system = new FakeSystem();
  system.server = server.connect;
  const world = new FakeWorld({ system, terminal: true, typed: ["call slow\n"] });
  const running = world.run("mcp", "connect", "files");
  await settle();
  world.signal("SIGINT");
  await settle();
  assert.match(world.err.text, /\[UNKNOWN_OUTCOME\] It was cancelled\nfiles> $/);
  world.signal("SIGINT");
  assert.equal(await running, 130);
  assert.equal(server.closed, 1);
});

Deno.test("a second Ctrl-C leaves a call that doesn't end", async () => {
  const server = new FakeServer({ "tools/call": () => new Promise(() => {}) });
  const system = new FakeSystem();
  system.server = server.connect;
  const world = new FakeWorld({ system, terminal: true, typed: ["call slow\n"] });
  const running = world.run("mcp", "connect", "files");
  await settle();
  world.signal("SIGINT");
  await settle();
  world.signal("SIGINT");
  assert.equal(await running, 130);
  assert.match(world.err.text, /Left before an answer came: a call may have happened/);
  assert.equal(server.closed, 1);
});

Deno.test("a script is ended by Ctrl-C, once what is in flight was cancelled", async () => {
  const server = waiting();
  const system = new FakeSystem();
  system.server = server.connect;
  const world = new FakeWorld({ system, typed: ["call slow\n", "ping\n"] });
  const running = world.run("mcp", "connect", "--json", "files");
  await settle();
  world.signal("SIGINT");
  assert.equal(await running, 130);
  assert.match(world.out.text, /"outcome":"unknown"/);
  assert.deepEqual(server.asked.map(({ method }) => method), ["tools/call"]);
});

Deno.test("a server is named by a URL with headers, by an agent, or by a command", async () => {
  const reference = async (...args: string[]) =>
    (await connected([], { args })).system.opened[0]?.server;
  assert.deepEqual(
    await reference(
      "https://a.example/mcp",
      "--header",
      "Authorization: Bearer x",
      "--header=X-A:b",
    ),
    {
      kind: "url",
      url: "https://a.example/mcp",
      headers: { Authorization: "Bearer x", "X-A": "b" },
    },
  );
  assert.deepEqual(await reference("--transport", "sse", "http://a.example/sse"), {
    kind: "url",
    url: "http://a.example/sse",
    headers: {},
    transport: "sse",
  });
  assert.deepEqual(await reference("--agent", "./reviewer", "github"), {
    kind: "agent",
    manifest: "./reviewer",
    server: "github",
  });
  assert.deepEqual(await reference("--", "npx", "-y", "--json", "server"), {
    kind: "command",
    command: "npx",
    args: ["-y", "--json", "server"],
  });
  assert.deepEqual(await reference("--", "server"), {
    kind: "command",
    command: "server",
    args: [],
  });
});

Deno.test("--elicit says what a server gets that asks", async () => {
  const elicit = async (value: string) =>
    (await connected([], { args: ["--elicit", value, "files"] })).system.opened[0]?.elicit;
  assert.deepEqual(await elicit("defaults"), { kind: "defaults" });
  assert.deepEqual(await elicit('{"name":"Ann"}'), { kind: "content", content: { name: "Ann" } });
});

Deno.test("what doesn't go together is a usage error and starts nothing", async () => {
  const lines = [
    ["files", "more"],
    ["--header", "X-A: b", "files"],
    ["--transport", "carrier", "http://a.example"],
    ["--header", "no colon", "http://a.example"],
    ["http://user:pass@a.example/"],
    ["--agent", "a", "--", "npx"],
    ["--elicit", "perhaps", "files"],
    ["--timeout", "soon", "files"],
    [],
  ];
  for (const args of lines) {
    const { exitCode, system, err } = await connected([], { args });
    assert.deepEqual([exitCode, system.opened.length], [2, 0], args.join(" "));
    assert.match(err, /^\[INVALID\] .*\nhint: /, args.join(" "));
    assert.doesNotMatch(err, /user:pass/);
  }
});

Deno.test("a server that is slow to end is left to the daemon at the next Ctrl-C", async () => {
  const server = new FakeServer();
  server.close = () => new Promise(() => {});
  const system = new FakeSystem();
  system.server = server.connect;
  const world = new FakeWorld({ system, typed: ["quit\n"] });
  const running = world.run("mcp", "connect", "files");
  await settle();
  world.signal("SIGINT");
  assert.equal(await running, 0, "all that was asked was done");
});

Deno.test("arguments may stand in single quotes, as the hint has them and a shell wants them", async () => {
  const asked: unknown[] = [];
  const server = new FakeServer({
    "tools/call": ({ params }) => {
      asked.push(params["arguments"]);
      return ok({ content: [] });
    },
  });
  const { exitCode } = await connected([`call add '{"name": "it''s"}'`, `call add {"b":2}`], {
    server,
  });
  assert.deepEqual([asked, exitCode], [[{ name: "it''s" }, { b: 2 }], 0]);
});
