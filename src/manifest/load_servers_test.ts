import assert from "node:assert/strict";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import type { LoadedAgent } from "./agent_manifest.ts";
import { loadAgentFile } from "./load_agent.ts";
import { loadServers } from "./load_servers.ts";

/** A user's configuration and a project, in a folder that is gone afterwards. */
class Machine {
  readonly root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-servers-" }));
  readonly project = `${this.root}/home/project/.rnix/mcp.yaml`;
  readonly user = `${this.root}/config/mcp.yaml`;

  constructor(files: { user?: string; project?: string }) {
    Deno.mkdirSync(`${this.root}/config`);
    Deno.mkdirSync(`${this.root}/home/project/.rnix`, { recursive: true, mode: 0o700 });
    if (files.user !== undefined) Deno.writeTextFileSync(this.user, files.user);
    if (files.project !== undefined) Deno.writeTextFileSync(this.project, files.project);
  }

  table() {
    return loadServers({
      storage: disk,
      cwd: `${this.root}/home/project`,
      home: `${this.root}/home`,
      uid: Deno.uid() ?? 0,
      config: `${this.root}/config`,
    });
  }

  /** Loads a manifest with this value of `mcp`. */
  async agent(mcp: string): Promise<LoadedAgent> {
    const path = `${this.root}/agent.yaml`;
    const models = "models: { provider: openai, preferred: m }";
    Deno.writeTextFileSync(path, `name: a\ninstructions: do\n${models}\nmcp: ${mcp}\n`);
    return await loadAgentFile(disk, path, { shown: "agent.yaml", servers: await this.table() });
  }

  /** What is told of such a manifest, the folder left out. */
  async told(mcp: string): Promise<string[]> {
    const error = await this.agent(mcp).then(() => undefined, (thrown) => thrown);
    assert.ok(error instanceof SysError, String(error));
    assert.equal(error.exitCode, 2);
    return error.message.replaceAll(this.root, "").split("\n").map((line) => line.trim());
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.root, { recursive: true });
  }
}

const USER = `servers:
  files: { command: npx, args: ["-y", files@1], required: false }
  shared: { command: ./users.sh }
`;
const PROJECT = `servers:
  shared: { command: ./projects.sh, cwd: data }
  remote: { url: "https://\${HOST}/mcp", headers: { Authorization: x }, transport_type: http }
`;

Deno.test("[R7] a manifest takes the servers that it names from mcp.yaml, in its own order", async () => {
  using machine = new Machine({ user: USER, project: PROJECT });
  const { manifest, projectFiles } = await machine.agent("[remote, files]");
  const [remote, files] = manifest.servers ?? [];
  assert.ok(remote?.transport === "http" && files?.transport === "stdio");
  assert.deepEqual([remote.name, remote.url, remote.file], [
    "remote",
    "https://${HOST}/mcp",
    machine.project,
  ]);
  assert.deepEqual([files.name, files.args, files.required, files.file], [
    "files",
    ["-y", "files@1"],
    false,
    machine.user,
  ]);
  assert.deepEqual(projectFiles?.map(({ name, path, effects }) => ({ name, path, effects })), [{
    name: "mcp.yaml",
    path: machine.project,
    effects: [
      "shared: ./projects.sh",
      "remote: connects to https://${HOST}/mcp (sends Authorization)",
    ],
  }]);
});

Deno.test("an entry of the project goes before the user's; only who takes one needs its trust", async () => {
  using machine = new Machine({ user: USER, project: PROJECT });
  const table = await machine.table();
  assert.deepEqual(table.all.map(({ name, scope }) => [name, scope]), [
    ["files", "user"],
    ["shared", "project"],
    ["remote", "project"],
  ]);
  const shared = table.get("shared")?.config;
  assert.ok(shared?.transport === "stdio");
  assert.deepEqual([shared.command, shared.file], ["./projects.sh", machine.project]);
  assert.equal((await machine.agent("[files]")).projectFiles, undefined);
  assert.equal((await machine.agent("{ servers: {} }")).projectFiles, undefined);
});

Deno.test("another text of the project's file is another file to trust", async () => {
  using machine = new Machine({ project: PROJECT });
  const before = (await machine.agent("[remote]")).projectFiles;
  Deno.writeTextFileSync(machine.project, `${PROJECT}# a comment\n`);
  const after = (await machine.agent("[remote]")).projectFiles;
  assert.ok(before !== undefined && after !== undefined);
  assert.notEqual(before[0]?.contentHash, after[0]?.contentHash);
});

Deno.test("[R7] a server that isn't there is told with the nearest one and the files looked into", async () => {
  using machine = new Machine({ user: USER, project: PROJECT });
  assert.deepEqual(await machine.told("[remot, nothing, files, files, { x: y }]"), [
    "4 mistakes",
    'agent.yaml:4:7: Unknown server "remot" (looked into .rnix/mcp.yaml and /config/mcp.yaml); ' +
    'did you mean "remote"?',
    'agent.yaml:4:14: Unknown server "nothing" (looked into .rnix/mcp.yaml and /config/mcp.yaml); ' +
    'there are "files", "shared", "remote"',
    'agent.yaml:4:30: Server "files" is listed twice',
    "agent.yaml:4:37: Expected the name of a server in mcp.yaml, got a mapping",
  ]);
});

Deno.test("without files there is no server, and the places are told", async () => {
  using machine = new Machine({});
  assert.deepEqual(await machine.told("[x]"), [
    'agent.yaml:4:7: Unknown server "x" (looked into .rnix/mcp.yaml (not there) and ' +
    "/config/mcp.yaml (not there)); there are none",
  ]);
  assert.deepEqual((await machine.agent("[]")).manifest.servers, []);
  assert.deepEqual((await machine.agent("{}")).manifest.servers, []);
});

Deno.test("the user's file is told as other commands tell it", async () => {
  using machine = new Machine({});
  const home = `${machine.root}/home`;
  const table = await loadServers({
    storage: disk,
    cwd: `${home}/project`,
    home,
    uid: Deno.uid() ?? 0,
    config: `${home}/.config/rnix`,
  });
  assert.match(
    table.faultOf("x") ?? "",
    / and ~\/\.config\/rnix\/mcp\.yaml \(not there\)\)/,
  );
});

Deno.test("mistakes of mcp.yaml are told with their own place, to who takes servers from it", async () => {
  using machine = new Machine({
    user: "servers:\n  a: { comand: x }\n  b: { command: x, share: maybe }\n",
    project: "server: {}\n",
  });
  assert.deepEqual(await machine.told("[a, unknown]"), [
    "3 mistakes",
    '.rnix/mcp.yaml:1:1: Unknown key "server"; did you mean `servers`?',
    '/config/mcp.yaml:2:8: Unknown key "comand" in servers.a; did you mean `command`?',
    '/config/mcp.yaml:3:27: Expected true or false, got "maybe"',
  ]);
  assert.deepEqual((await machine.agent("{}")).manifest.servers, []);
  const table = await machine.table();
  assert.throws(() => table.requireSound(), /^SysError: 3 mistakes/);
  assert.deepEqual(table.all, []);
});

Deno.test("a file that is no mapping of servers is told as one", async () => {
  const cases: [string, string][] = [
    ["- a", '.rnix/mcp.yaml:1:1: Expected a mapping with "servers", got a list'],
    ["servers: [a]", ".rnix/mcp.yaml:1:10: Expected a mapping, got a list"],
    ["servers: {", ".rnix/mcp.yaml:1:11: Invalid YAML"],
    ["servers: { A: { command: c } }", '.rnix/mcp.yaml:1:12: Invalid server name "A"'],
    [
      "servers: { a: { url: https://x, headers: { Host: b } } }",
      '.rnix/mcp.yaml:1:44: Header "Host" is set by rnix itself; remove it',
    ],
    ["servers: { a: {} }", '.rnix/mcp.yaml:1:12: Missing key "command" (or "url") in servers.a'],
  ];
  for (const [text, told] of cases) {
    using machine = new Machine({ project: text });
    const [first] = await machine.told("[a]");
    assert.ok(first?.startsWith(told), `${text}: ${first}`);
  }
  for (const text of ["", "# only a comment\n", "servers:\n", "servers: {}\n"]) {
    using machine = new Machine({ project: text });
    const table = await machine.table();
    assert.equal(table.all.length, 0, text);
    assert.ok(table.problems.length <= 1, text);
  }
});

Deno.test("the file of a project folder that others may write isn't read, and that is told", async () => {
  using machine = new Machine({ project: PROJECT });
  Deno.chmodSync(`${machine.root}/home/project/.rnix`, 0o777);
  const [told] = await machine.told("[remote]");
  assert.match(told ?? "", /looked into nothing of the project: ".*" is ignored: other users may/);
});
