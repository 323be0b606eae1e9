import assert from "node:assert/strict";
import { type Content, onMachine, SCRIPT } from "../../../tests/doubles/made_up_machine.ts";

/** A manifest with these lines under `mcp`. */
const agent = (name: string, mcp: string) =>
  `name: ${name}
instructions: Work.
models: { provider: ollama, preferred: llama }
${mcp}`;

/** The configuration of the page that the form of the output is from; where it shows no manifest, the least that fits. */
const EXAMPLE: { [path: string]: Content } = {
  "bin/npx": SCRIPT,
  "bin/python3": SCRIPT,
  "bin/python": { link: "python3" },
  "project/agents/my-agent/agent.yaml": `name: my-agent
description: "An agent with tools of GitHub and of the file system"
instructions: Work.
models: { provider: ollama, preferred: llama }
mcp:
  servers:
    github:
      command: "npx"
      args: ["-y", "@anthropic/mcp-github"]
      env:
        GITHUB_TOKEN: "\${GITHUB_TOKEN}"
      timeout: 30s
      max_output_tokens: 4096

    filesystem:
      command: "npx"
      args: ["-y", "@anthropic/mcp-filesystem", "/home/user/projects"]
`,
  "project/agents/pr-reviewer/agent.yaml": agent(
    "pr-reviewer",
    `mcp:
  servers:
    github:
      command: "python"
      args: ["./mcp-servers/data-server.py"]
      timeout: 120s
      max_output_tokens: 16384
`,
  ),
  "project/agents/data-analyzer/agent.yaml": agent(
    "data-analyzer",
    "mcp: { servers: { postgres: { command: pg-mcp } } }\n",
  ),
};

const TOKEN = { GITHUB_TOKEN: "ghp_secret_value" };

Deno.test("[A6] check mcp prints the lines that its users know", async () => {
  await onMachine(EXAMPLE, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix(["check", "mcp"], TOKEN);
    assert.equal(
      stdout,
      `✓ MCP transport layer: OK
✓ Agent MCP configs found: 3 agents with MCP servers
  - my-agent: github, filesystem
  - pr-reviewer: github
  - data-analyzer: postgres
✓ Server binaries found:
  - npx: /bin/npx
  - python: /bin/python3
✗ Warning: agent 'data-analyzer' MCP server 'postgres' — command 'pg-mcp' not in PATH
`,
    );
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'hint: data-analyzer/postgres: Command "pg-mcp" not found in PATH (searched /bin). ' +
        "Install it, or give its whole path; PATH is that of the shell that started the run\n",
    );
  });
});

Deno.test("[A6] its JSON and its exit code say the same as its lines", async () => {
  await onMachine(EXAMPLE, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix(["check", "mcp", "--json"], TOKEN);
    assert.equal(code, 1);
    assert.equal(stderr, "");
    const { ok, data, error } = JSON.parse(stdout);
    assert.equal(ok, false);
    assert.deepEqual(error, { code: "INVALID", message: "1 fault found" });
    assert.deepEqual(data.transport, { ok: true });
    assert.deepEqual(
      data.agents.map(({ name, servers, valid }: { [key: string]: unknown }) => [
        name,
        servers,
        valid,
      ]),
      [["my-agent", ["github", "filesystem"], true], ["pr-reviewer", ["github"], true], [
        "data-analyzer",
        ["postgres"],
        true,
      ]],
    );
    assert.deepEqual(data.servers[2], {
      name: "github",
      agent: "pr-reviewer",
      transport: "stdio",
      required: true,
      command: "python",
      program: "/bin/python3",
    });
    assert.equal(data.faults.length, 1);
    assert.equal(data.faults[0].agent, "data-analyzer");
    assert.equal(data.faults[0].severity, "fault");
  });
});

Deno.test("[D19] check mcp exits 0 without a fault, 1 with one, 2 for a name that doesn't exist", async () => {
  await onMachine(EXAMPLE, async (machine) => {
    const whole = await machine.rnix(["check", "mcp", "my-agent", "pr-reviewer"], TOKEN);
    assert.equal(whole.code, 0);
    assert.equal(whole.stderr, "");
    assert.equal((await machine.rnix(["check", "mcp", "data-analyzer"])).code, 1);
    const unknown = await machine.rnix(["check", "mcp", "my-agnt", "pr-reviewer"]);
    assert.equal(unknown.code, 2);
    assert.equal(unknown.stdout, "");
    assert.match(
      unknown.stderr,
      /^\[NOT_FOUND\] No agent "my-agnt"; there are .*\nhint: did you mean "my-agent"\?\n$/,
    );
    const json = await machine.rnix(["check", "mcp", "nosuch", "--json"]);
    assert.equal(json.code, 2);
    assert.equal(JSON.parse(json.stdout).error.code, "NOT_FOUND");
  });
});

Deno.test("every variable that is not set is told with its key, and none of the others' values", async () => {
  await onMachine({
    "bin/npx": SCRIPT,
    "project/agents/a/agent.yaml": agent(
      "a",
      `mcp:
  servers:
    one:
      command: "\${TOOLS}/serve"
      args: ["--key=\${KEY}", "\${WITH:-default}"]
      env: { KEY: "\${KEY}", OTHER: "\${SET}" }
    two:
      url: "https://\${HOST}/mcp?key=\${KEY}"
      headers: { Authorization: "Bearer \${TOKEN}" }
    three: { command: "\${SET}" }
`,
    ),
  }, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix(["check", "mcp"], { SET: "hidden-value" });
    assert.equal(code, 1);
    assert.equal(
      stdout,
      `✓ MCP transport layer: OK
✓ Agent MCP configs found: 1 agent with MCP servers
  - a: one, two, three
✓ Server addresses found (not asked):
  - https://\${HOST}/mcp
✗ Warning: agent 'a' MCP server 'one' — variable 'TOOLS' is not set (command)
✗ Warning: agent 'a' MCP server 'one' — variable 'KEY' is not set (args[0], env.KEY)
✗ Warning: agent 'a' MCP server 'two' — variable 'HOST' is not set (url)
✗ Warning: agent 'a' MCP server 'two' — variable 'KEY' is not set (url)
✗ Warning: agent 'a' MCP server 'two' — variable 'TOKEN' is not set (headers.Authorization)
✗ Warning: agent 'a' MCP server 'three' — command '\${SET}' not in PATH
`,
    );
    assert.match(stderr, /^hint: a\/one, a\/two: export KEY=…, or give it a default/m);
    assert.doesNotMatch(stdout + stderr, /hidden-value/);
    const json = await machine.rnix(["check", "mcp", "--json"], { SET: "hidden-value" });
    assert.doesNotMatch(json.stdout, /hidden-value/);
    assert.equal(JSON.parse(json.stdout).data.servers[1].url, "https://${HOST}/mcp");
  });
});

Deno.test("[B07] a command line given as one string is told how to be written", async () => {
  await onMachine({
    "bin/npx": SCRIPT,
    "project/agents/a/agent.yaml": agent(
      "a",
      'mcp: { servers: { s: { command: "npx -y pkg" } } }\n',
    ),
  }, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix(["check", "mcp"]);
    assert.equal(code, 1);
    assert.match(stdout, /command 'npx -y pkg' not in PATH/);
    assert.match(stderr, /write command: npx and args: \["-y","pkg"\]/);
  });
});

Deno.test("mistakes of manifests are told all at once with their places, their whole servers looked at too", async () => {
  await onMachine({
    "project/agents/a/agent.yaml": agent(
      "a",
      `mcp:
  servers:
    good: { command: nowhere-to-be-found }
    bad: { comand: npx }
skills: [x]
`,
    ),
    "project/agents/b/agent.yaml": "name: b\nmcp: {servers: {s: {command: [x]}}}\n",
    "project/agents/c/agent.yaml": "name: 'c\n",
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check", "mcp"]);
    assert.equal(code, 1);
    const lines = stdout.split("\n");
    assert.deepEqual(lines.slice(0, 4), [
      "✓ MCP transport layer: OK",
      "✓ Agent MCP configs found: 2 agents with MCP servers",
      "  - a: good, bad",
      "  - b: s",
    ]);
    assert.match(
      stdout,
      /^✗ Warning: agents\/a\/agent\.yaml:7:12: Unknown key "comand" in mcp\.servers\.bad; did you mean `command`\?$/m,
    );
    assert.match(
      stdout,
      /^✗ Warning: agents\/a\/agent\.yaml:8:10: Unknown skill "x" .*; there are none$/m,
    );
    assert.match(
      stdout,
      /^✗ Warning: agent 'a' MCP server 'good' — command 'nowhere-to-be-found' not in PATH$/m,
    );
    assert.match(
      stdout,
      /^✗ Warning: agents\/b\/agent\.yaml:1:1: Missing key "models", and providers\.yaml/m,
    );
    assert.match(stdout, /^✗ Warning: agents\/b\/agent\.yaml:2:30: /m);
    assert.match(stdout, /^✗ Warning: agents\/c\/agent\.yaml:\d+:\d+: Invalid YAML/m);
    const json = JSON.parse((await machine.rnix(["check", "mcp", "a", "--json"])).stdout);
    const [fault] = json.data.faults;
    assert.deepEqual([fault.agent, fault.file, fault.line, fault.column], [
      "a",
      "agents/a/agent.yaml",
      7,
      12,
    ]);
  });
});

Deno.test("a program is looked for where a run would: from its file, in the PATH that the server gets", async () => {
  await onMachine({
    "bin/npx": SCRIPT,
    "more/own": SCRIPT,
    "project/agents/a/run.sh": SCRIPT,
    "project/agents/a/agent.yaml": agent(
      "a",
      `mcp:
  servers:
    beside: { command: ./run.sh }
    path: { command: own, env: { PATH: "\${MORE}" } }
    folder: { command: npx, cwd: not-there }
    secret: { command: "\${TOOLS}/own" }
`,
    ),
    "home/.config/rnix/run.sh": SCRIPT,
    "home/.config/rnix/mcp.yaml": "servers: { shared: { command: ./run.sh, cwd: . } }\n",
  }, async (machine) => {
    Deno.chmodSync(`${machine.folder}/more/own`, 0o755);
    for (const path of ["project/agents/a/run.sh", "home/.config/rnix/run.sh"]) {
      Deno.chmodSync(`${machine.folder}/${path}`, 0o755);
    }
    const more = `${machine.folder}/more`;
    const { code, stdout } = await machine.rnix(["check", "mcp"], { MORE: more, TOOLS: more });
    assert.equal(code, 1);
    assert.equal(
      stdout.slice(stdout.indexOf("✓ Server binaries")),
      `✓ Server binaries found:
  - ./run.sh: /project/agents/a/run.sh
  - own: [redacted]/own
  - npx: /bin/npx
  - \${TOOLS}/own: [redacted]/own
  - ./run.sh: /home/.config/rnix/run.sh
✗ Warning: agent 'a' MCP server 'folder' — its folder 'not-there' does not exist (cwd)
`,
    );
  });
});

Deno.test("an agent with `mcp: {}` is kept in the list, one without `mcp` isn't in it", async () => {
  await onMachine({
    "bin/npx": SCRIPT,
    "project/agents/marked/agent.yaml": agent("marked", "mcp: {}\n"),
    "project/agents/plain/agent.yaml": agent("plain", ""),
    "project/agents/with/agent.yaml": agent("with", "mcp: { servers: { s: { command: npx } } }\n"),
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check", "mcp"]);
    assert.equal(code, 0);
    assert.equal(
      stdout,
      `✓ MCP transport layer: OK
✓ Agent MCP configs found: 1 agent with MCP servers, 1 without any (mcp: {})
  - marked: (no servers)
  - with: s
✓ Server binaries found:
  - npx: /bin/npx
`,
    );
  });
});

Deno.test("servers of mcp.yaml are listed with who uses them, what is wrong told once", async () => {
  await onMachine({
    "bin/npx": SCRIPT,
    "home/.config/rnix/mcp.yaml": `servers:
  github: { command: npx }
  spare: { command: not-there }
  used: { command: not-there-either }
`,
    "project/agents/a/agent.yaml": agent("a", "mcp: [github, used]\n"),
    "project/agents/b/agent.yaml": agent("b", "mcp: [github, nosuch]\n"),
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check", "mcp"]);
    assert.equal(code, 1);
    assert.equal(
      stdout,
      `✓ MCP transport layer: OK
✓ Agent MCP configs found: 2 agents with MCP servers
  - a: github, used
  - b: github, nosuch
✓ Servers of mcp.yaml found: 3 servers
  - github: used by a, b
  - spare: used by no agent
  - used: used by a
✓ Server binaries found:
  - npx: /bin/npx
✗ Warning: agent 'a' MCP server 'used' — command 'not-there-either' not in PATH
✗ Warning: agents/b/agent.yaml:4:15: Unknown server "nosuch" (looked into ~/.config/rnix/mcp.yaml); there are "github", "spare", "used"
✗ Warning: mcp.yaml MCP server 'spare' — command 'not-there' not in PATH
`,
    );
    const one = await machine.rnix(["check", "mcp", "spare"]);
    assert.equal(one.code, 1);
    assert.match(one.stdout, /^ {2}- spare: used by no agent$/m);
    const none = await machine.rnix(["check", "mcp", "sparse"]);
    assert.equal(none.code, 2);
    assert.match(none.stderr, /Servers of mcp\.yaml: github, spare, used/);
  });
});

Deno.test("mistakes of mcp.yaml are told once, however many agents name its servers", async () => {
  await onMachine({
    "project/.rnix/mcp.yaml": "servers:\n  s: { comand: npx }\n",
    "project/agents/a/agent.yaml": agent("a", "mcp: [s]\n"),
    "project/agents/b/agent.yaml": agent("b", "mcp: [s]\n"),
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check", "mcp"]);
    assert.equal(code, 1);
    assert.equal(stdout.match(/Unknown key "comand"/g)?.length, 1);
    assert.match(stdout, /^✗ Warning: \.rnix\/mcp\.yaml:2:8: Unknown key/m);
  });
});

Deno.test("what a run would do without is told and is no fault", async () => {
  await onMachine({
    "project/agents/a/agent.yaml": agent(
      "a",
      "mcp: { servers: { s: { command: not-there, required: false } } }\n",
    ),
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check", "mcp"]);
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^! Warning: agent 'a' MCP server 's' — command 'not-there' not in PATH$/m,
    );
    const json = JSON.parse((await machine.rnix(["check", "mcp", "--json"])).stdout);
    assert.equal(json.ok, true);
    assert.equal(json.data.faults[0].severity, "warning");
  });
});

Deno.test("an empty home is no fault", async () => {
  await onMachine({}, async (machine) => {
    assert.deepEqual(await machine.rnix(["check", "mcp"]), {
      code: 0,
      stdout: "✓ MCP transport layer: OK\nNo agents and no MCP servers are configured here.\n",
      stderr: "hint: rnix init --with-mcp-examples adds two agents with MCP servers\n",
    });
    assert.deepEqual(Deno.readDirSync(`${machine.folder}/home`).toArray(), []);
  });
});

Deno.test("a state folder that others may write is told: nothing could be started", async () => {
  await onMachine({}, async (machine) => {
    const state = `${machine.folder}/home/.local/state/rnix`;
    Deno.mkdirSync(state, { recursive: true });
    Deno.chmodSync(state, 0o777);
    const { code, stdout } = await machine.rnix(["check", "mcp"]);
    assert.equal(code, 1);
    assert.match(stdout, /^✗ MCP transport layer: .*others may write it/m);
    assert.equal(stdout.match(/others may write it/g)?.length, 1);
    const json = JSON.parse((await machine.rnix(["check", "mcp", "--json"])).stdout);
    assert.deepEqual(json.data.transport, { ok: false });
    assert.equal(json.data.faults.length, 1);
  });
});
