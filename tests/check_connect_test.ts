/** `check mcp --connect` as people run it: the real program, a real daemon, real servers. */
import assert from "node:assert/strict";
import { npmServer, scripted } from "./servers/launch_server.ts";
import { processesNaming } from "./servers/marked_processes.ts";
import { removeFolder } from "./doubles/remove_folder.ts";

const LAUNCHER = new URL("../scripts/rnix", import.meta.url).pathname;

async function rnix(folder: string, ...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(LAUNCHER, {
    args,
    cwd: folder,
    env: { RNIX_HOME: `${folder}/home`, NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

Deno.test("[N7] check mcp --connect judges real servers at once and leaves none behind", async () => {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-judged-" }));
  const mark = `${folder}/mark`;
  const tools = [{ name: "t", inputSchema: { type: "object" } }];
  const noisy = scripted({ tools, start: { noise: "Hello" } });
  const everything = npmServer("everything", ["stdio"]);
  const entry = ({ command, args, env }: typeof noisy) => ({
    command,
    args: [...args, mark],
    env,
    startup_timeout: "60s",
  });
  try {
    Deno.mkdirSync(`${folder}/home/config`, { recursive: true });
    Deno.writeTextFileSync(
      `${folder}/home/config/mcp.yaml`,
      JSON.stringify({
        servers: {
          everything: entry(everything),
          noisy: { ...entry(noisy), tools: { effects: { gone: "read" } } },
          dead: { command: "sh", args: ["-c", "exit 3"] },
        },
      }),
    );
    const { code, stdout, stderr } = await rnix(folder, "check", "mcp", "--connect");
    assert.equal(code, 1, stderr);
    assert.match(stdout, /^✓ Servers connected:$/m);
    assert.match(
      stdout,
      /^ {2}- everything: warnings, \d+ tools in .*, speaks [-0-9, ]+\(initialize\), answers ping$/m,
    );
    assert.match(stdout, /'simulate-research-query' is set aside: It can only be called as a task/);
    assert.match(stdout, /^ {2}- noisy: warnings, 1 tool in /m);
    assert.match(stdout, /^ {2}- dead: faults, not mounted$/m);
    assert.match(
      stdout,
      /^! Warning: mcp\.yaml MCP server 'noisy' — it wrote 1 line to stdout .*"Hello"$/m,
    );
    assert.match(
      stdout,
      /^✗ Warning: mcp\.yaml MCP server 'dead' — Server "dead" exited with code 3 before it answered$/m,
    );
    assert.match(
      stdout,
      /server 'noisy' — tools\.effects names 'gone', and there is no such tool$/m,
    );
    assert.deepEqual(await processesNaming(mark), []);
    const json = await rnix(folder, "check", "mcp", "noisy", "--connect", "--json");
    assert.equal(json.code, 0, json.stdout);
    const { ok, data } = JSON.parse(json.stdout);
    assert.equal(ok, true);
    assert.equal(data.servers[0].verdict.result, "warnings");
    assert.equal(data.servers[0].verdict.providers.length, 4);
  } finally {
    await rnix(folder, "daemon", "stop");
    await removeFolder(folder);
  }
});
