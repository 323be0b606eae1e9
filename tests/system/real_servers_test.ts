/** Real servers of every kind in one whole `rnix run`: the official ones over each transport, ones made with the SDK in both eras, one in Python; and what is said of a program that is no MCP server. */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { StdioLaunch } from "../../src/mcp/launch.ts";
import { modernServer, npmServer, plainServer, pythonServer } from "../servers/launch_server.ts";
import { ScriptedHttpServer } from "../servers/scripted_http_server.ts";
import { TerminalStage } from "./terminal_stage.ts";
import { TextLineStream } from "../doubles/text_lines.ts";

/** Far more than all the servers need to start on a loaded machine. */
const STARTUP = "startup_timeout: 2m";

/** A line below `mcp.servers`. */
function entry(name: string, { command, args }: StdioLaunch, env: { [name: string]: string } = {}) {
  const word = JSON.stringify;
  return `${name}: { command: ${word(command)}, args: ${word(args)}, env: ${
    word(env)
  }, ${STARTUP} }`;
}

/** A server that listens, as a child that is ended with the test. */
class Listening implements AsyncDisposable {
  readonly url: string;
  readonly #child: Deno.ChildProcess;

  private constructor(url: string, child: Deno.ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  /** The official server, which has to be told its port. */
  static async everything(mode: "streamableHttp" | "sse"): Promise<Listening> {
    const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    const { port } = listener.addr;
    listener.close();
    const child = spawned(npmServer("everything", [mode]), { PORT: String(port) }, "null");
    await answering(port);
    return new Listening(
      `http://127.0.0.1:${port}/${mode === "sse" ? "sse" : "mcp"}`,
      child,
    );
  }

  /** One that says where it listens. */
  static async modern(): Promise<Listening> {
    const child = spawned(modernServer({}, "http"), {}, "piped");
    const reader = child.stdout.pipeThrough(new TextLineStream()).getReader();
    const { value: url = "" } = await reader.read();
    await reader.cancel();
    return new Listening(url, child);
  }

  entry(name: string, type: "http" | "sse" | undefined): string {
    const typed = type === undefined ? "" : `transport_type: ${type}, `;
    return `${name}: { url: "${this.url}", ${typed}${STARTUP} }`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
  }
}

function spawned(
  { command, args, env }: StdioLaunch,
  more: { [name: string]: string },
  stdout: "null" | "piped",
): Deno.ChildProcess {
  return new Deno.Command(command, {
    args,
    env: { ...env, ...more },
    clearEnv: true,
    stdin: "null",
    stdout,
    stderr: "null",
  }).spawn();
}

async function answering(port: number): Promise<void> {
  for (let attempts = 0; attempts < 600; attempts += 1) {
    try {
      return (await Deno.connect({ port, hostname: "127.0.0.1" })).close();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error("The server did not come up");
}

interface Entry {
  type: string;
  server?: string;
  era?: string;
  protocol_version?: string;
  outcome?: string;
}

function journalIn(home: string): Entry[] {
  const runs = join(home, "state/runs");
  const [{ name = "" } = {}] = Deno.readDirSync(runs);
  const text = Deno.readTextFileSync(join(runs, name, "journal.jsonl"));
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** Every server, the call that is made of it, and what its answer must hold. */
const CALLS = [
  { server: "stdio", tool: "echo", input: '{ message: "héllo 😀" }', says: /héllo 😀/ },
  { server: "streamable", tool: "get-sum", input: "{ a: 40, b: 2 }", says: /42/ },
  { server: "old", tool: "get-sum", input: "{ a: 20, b: 3 }", says: /23/ },
  { server: "found", tool: "get-sum", input: "{ a: 30, b: 4 }", says: /34/ },
  { server: "files", tool: "list_directory", input: "{ path: . }", says: /agent\.yaml/ },
  {
    server: "memory",
    tool: "create_entities",
    input: '{ entities: [{ name: rnix, entityType: program, observations: ["runs agents"] }] }',
    says: /runs agents/,
  },
  { server: "modern", tool: "add", input: "{ a: 1, b: 2 }", says: /3/ },
  { server: "legacy", tool: "add", input: "{ a: 2, b: 3 }", says: /5/ },
  { server: "remote", tool: "add", input: "{ a: 3, b: 4 }", says: /7/ },
] as const;

const PYTHON = {
  server: "words",
  tool: "count_words",
  input: '{ text: "three small words" }',
  says: /3 words/,
} as const;

Deno.test("one run works with real servers of every kind, transport and era", async () => {
  await using stage = new TerminalStage();
  await using streamable = await Listening.everything("streamableHttp");
  await using old = await Listening.everything("sse");
  await using remote = await Listening.modern();
  const python = pythonServer();
  const calls = [...CALLS, ...python === undefined ? [] : [PYTHON]];
  const folder = join(stage.folder, "agent");
  const made = calls.map(({ server, tool, input }) =>
    `{ tool: mcp__${server}__${tool}, input: ${input} }`
  );
  const said = calls.map((_, index) => `\${{ results.all.${index}.text }}`);
  stage.agent(
    "agent",
    `turns:\n  - { id: all, text: I ask them all., calls: [${made.join(", ")}] }\n` +
      `  - text: ${JSON.stringify(said.join("\n"))}\n`,
    [
      entry("stdio", npmServer("everything", ["stdio"])),
      entry("files", npmServer("filesystem", [folder])),
      entry("memory", npmServer("memory", []), { MEMORY_FILE_PATH: join(stage.folder, "graph") }),
      entry("modern", modernServer()),
      entry("legacy", modernServer({}, "legacy")),
      streamable.entry("streamable", "http"),
      old.entry("old", "sse"),
      old.entry("found", undefined),
      remote.entry("remote", undefined),
      ...python === undefined ? [] : [entry("words", python)],
    ],
  );
  const { code, stdout, stderr } = await stage.rnix("run", folder, "Ask them all");
  assert.equal(code, 0, stderr);
  for (const { server, says } of calls) assert.match(stdout, says, server);
  assert.match(Deno.readTextFileSync(join(stage.folder, "graph")), /runs agents/);
  const entries = journalIn(stage.home);
  const results = entries.filter(({ type }) => type === "call.result");
  assert.deepEqual(new Set(results.map(({ outcome }) => outcome)), new Set(["ok"]));
  assert.equal(results.length, calls.length);
  const eras = entries.filter(({ type }) => type === "mount.ready").map((ready) =>
    `${ready.server} ${ready.era} ${ready.protocol_version}`
  );
  for (const server of ["modern", "remote"]) {
    assert.ok(eras.includes(`${server} modern 2026-07-28`), eras.join("; "));
  }
  for (const server of ["legacy", "stdio", "streamable", "old", "found", "files", "memory"]) {
    assert.ok(eras.includes(`${server} legacy 2025-11-25`), eras.join("; "));
  }
});

Deno.test("[B07] a run with a program that is no MCP server ends with a sentence that says what is missing", async () => {
  await using stage = new TerminalStage();
  const { command, args } = plainServer("bare_results_server.ts");
  const inner = `inner: { command: ${JSON.stringify(command)}, args: ${JSON.stringify(args)}`;
  const programs: [name: string, line: string, sentence: RegExp][] = [
    [
      "bare",
      `${inner}, startup_timeout: 10s }`,
      /"inner" did not answer initialize .*JSON without/,
    ],
    ["echo", "inner: { command: cat }", /"inner" failed .*gives back its input is no MCP server/],
    ["shell", 'inner: { command: "npx -y some-server" }', /inner.*\n.*args/],
  ];
  for (const [name, line, sentence] of programs) {
    stage.agent(name, "turns: [{ text: never }]\n", [line]);
    const { code, stdout, stderr } = await stage.rnix("run", join(stage.folder, name), "Go");
    assert.deepEqual([code, stdout], [3, ""], stderr);
    assert.match(stderr, sentence);
  }
});

Deno.test("[B21] [B25] a resumed run has its servers again before its model goes on, and no session of the old ones", async () => {
  await using stage = new TerminalStage();
  const server = await ScriptedHttpServer.start({
    tools: [{ name: "t", inputSchema: { type: "object" } }],
    on: { "tools/call": { text: "called" } },
  });
  const calls = "calls: [{ tool: mcp__remote__t, input: {} }]";
  stage.agent(
    "agent",
    `turns:\n  - { ${calls} }\n  - { ${calls} }\n  - text: "\${{ results.t2.0.text }}"\n`,
    [`remote: { url: "${server.url}" }`],
  );
  const folder = join(stage.folder, "agent");
  const manifest = Deno.readTextFileSync(join(folder, "agent.yaml"));
  Deno.writeTextFileSync(join(folder, "agent.yaml"), `${manifest}budget: { turns: 1 }\n`);
  assert.equal((await stage.rnix("run", folder, "Call")).code, 6);
  await stage.rnix("daemon", "stop");
  const [run] = [...Deno.readDirSync(join(stage.home, "state/runs"))].map(({ name }) => name);
  const { code, stdout, stderr } = await stage.rnix("resume", run ?? "", "--max-turns", "9");
  await server.stop();
  assert.deepEqual([code, stdout.trim()], [0, "called"], stderr);
  const sessions = server.of("tools/call").map(({ headers }) => headers["mcp-session-id"]);
  assert.equal(new Set(sessions).size, 2, "a call in each process, each in a session of its own");
  for (const { headers } of server.of("initialize")) {
    assert.equal(headers["mcp-session-id"], undefined);
  }
  const types = journalIn(stage.home).map(({ type }) => type);
  const resumed = types.slice(types.indexOf("run.resumed"));
  assert.ok(resumed.indexOf("mount.ready") < resumed.indexOf("model.request"), String(resumed));
});
