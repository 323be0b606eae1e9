import assert from "node:assert/strict";
import { onMachine, SCRIPT } from "../../../tests/doubles/made_up_machine.ts";

const agent = (name: string, models: string, mcp = "") =>
  `name: ${name}\ninstructions: Work.\nmodels: ${models}\n${mcp}`;

const LOCAL = "{ provider: ollama, preferred: m }";

Deno.test("check tells of manifests, providers with their keys, and MCP servers", async () => {
  await onMachine({
    "bin/npx": SCRIPT,
    "project/agents/keyed/agent.yaml": agent(
      "keyed",
      "{ provider: anthropic, preferred: m, fallback: n, fallback_provider: openai }",
      "mcp: { servers: { s: { command: npx } } }\n",
    ),
    "project/agents/local/agent.yaml": agent("local", "{ provider: mine, preferred: m }"),
    "home/.config/rnix/providers.yaml": `providers:
  mine: { kind: openai-compatible, base_url: "http://localhost:1/v1" }
  spare: { kind: openai, api_key_env: SPARE_KEY, default_model: m }
`,
  }, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix(["check"], {
      ANTHROPIC_API_KEY: "sk-secret-value",
    });
    assert.equal(
      stdout,
      `✓ Manifests found: 2 agents
  - keyed: agents/keyed/agent.yaml
  - local: agents/local/agent.yaml
✓ Model providers found:
  - mine: needs no key
  - spare: SPARE_KEY is not set
  - anthropic: ANTHROPIC_API_KEY is set
  - openai: OPENAI_API_KEY is not set
✓ MCP transport layer: OK
✓ Agent MCP configs found: 1 agent with MCP servers
  - keyed: s
✓ Server binaries found:
  - npx: /bin/npx
✗ Error: agent 'keyed' — No key for the model: "OPENAI_API_KEY" is not set
`,
    );
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^2 files of this project not trusted yet: .*\nhint: keyed: export OPENAI_API_KEY=…/,
    );
    assert.match(stderr, /^2 more notes with -v$/m);
    assert.doesNotMatch(stdout + stderr, /sk-secret/);
    const json = await machine.rnix(["check", "--json"], { ANTHROPIC_API_KEY: "sk-secret-value" });
    assert.equal(json.code, 1);
    assert.doesNotMatch(json.stdout, /sk-secret/);
    const { data } = JSON.parse(json.stdout);
    assert.deepEqual(data.providers[2], {
      name: "anthropic",
      kind: "anthropic",
      key_variable: "ANTHROPIC_API_KEY",
      key_is_set: true,
    });
    const fine = await machine.rnix(["check"], { ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "b" });
    assert.equal(fine.code, 0);
  });
});

Deno.test("mistakes of providers.yaml are told, and not once more by every agent", async () => {
  await onMachine({
    "home/.config/rnix/providers.yaml": "providers:\n  mine: { kynd: openai }\n",
    "project/agents/a/agent.yaml": agent("a", "{ provider: mine, preferred: m }"),
    "project/agents/b/agent.yaml": "name: b\ninstructions: Work.\n",
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check"]);
    assert.equal(code, 1);
    const faults = stdout.split("\n").filter((line) => line.startsWith("✗"));
    assert.ok(faults.length > 0);
    for (const fault of faults) assert.match(fault, /providers\.yaml:2:\d+: /);
  });
});

Deno.test("what of the project nobody has agreed to is a note, until it is trusted", async () => {
  await onMachine({
    "bin/npx": SCRIPT,
    "project/desktop.json": '{"mcpServers":{"s":{"command":"npx"}}}',
    "project/agents/a/agent.yaml": agent("a", "{ provider: ollama, preferred: m }"),
  }, async (machine) => {
    await machine.rnix(["mcp", "import", "--project", "desktop.json"]);
    const { code, stdout } = await machine.rnix(["check", "-v"]);
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^· Note: .*agents\/a\/agent\.yaml: it is not trusted yet; it decides what runs/m,
    );
    assert.doesNotMatch(stdout, /mcp\.yaml: it/);
    const short = await machine.rnix(["check"]);
    assert.match(short.stderr, /^1 file of this project not trusted yet: a run asks/m);
    machine.put("project/.rnix/mcp.yaml", "servers: { s: { command: other } }\n");
    const changed = await machine.rnix(["check", "-v"]);
    assert.match(changed.stdout, /^· Note: .*mcp\.yaml: it has changed since/m);
    machine.put("home/.local/state/rnix/trust.json", "{");
    const damaged = await machine.rnix(["check"]);
    assert.equal(damaged.code, 1);
    assert.match(damaged.stdout, /^✗ Error: .*trust\.json: /m);
  });
});

Deno.test("skills with mistakes are warned of, once, and notes that nobody has agreed to are a note", async () => {
  await onMachine({
    "home/.config/rnix/skills/named/SKILL.md": "---\nname: other\ndescription: d\n---\nx\n",
    "home/.config/rnix/skills/idle/SKILL.md": "---\nname: idle\n---\nx\n",
    "project/AGENTS.md": "Use tabs.\n",
    "project/agents/a/agent.yaml": agent("a", "{ provider: ollama, preferred: m }") +
      "skills: [named]\n",
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check", "-v"]);
    assert.equal(code, 1, "an agent that names it can't run");
    assert.equal(stdout.match(/named\/SKILL\.md:2:7: /g)?.length, 1, stdout);
    assert.match(stdout, /^! Warning: .*idle\/SKILL\.md:\d+:\d+: Missing key "description"$/m);
    assert.match(stdout, /^· Note: .*AGENTS\.md: it is not trusted yet/m);
  });
});

Deno.test("mistakes of config.yaml are told with their place", async () => {
  await onMachine({
    "home/.config/rnix/config.yaml": "daemon:\n  idle_timeot: 5m\n",
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check"]);
    assert.equal(code, 1);
    assert.match(stdout, /^✗ Error: .*config\.yaml:2:3: /m);
  });
});

Deno.test("an agent that is named is checked alone, one inside the program too", async () => {
  await onMachine({
    "bin/npx": SCRIPT,
    "project/agents/bad/agent.yaml": "name: bad\n",
    "project/elsewhere/agent.yaml": agent("other", "{ provider: ollama, preferred: m }"),
  }, async (machine) => {
    assert.equal((await machine.rnix(["check"])).code, 1);
    const { code, stdout } = await machine.rnix(["check", "demo", "./elsewhere"]);
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^✓ Manifests found: 2 agents\n {2}- demo: embedded:demo\n {2}- other: elsewhere\/agent\.yaml\n/,
    );
    assert.equal((await machine.rnix(["check", "./nowhere"])).code, 2);
    const bad = await machine.rnix(["check", "mcp", "./agents/bad"]);
    assert.equal(bad.code, 1);
    assert.match(bad.stdout, /^✗ Warning: agents\/bad\/agent\.yaml:1:1: /m);
  });
});

Deno.test("an empty home is no fault for check either", async () => {
  await onMachine({}, async (machine) => {
    const { code, stdout } = await machine.rnix(["check"]);
    assert.equal(code, 0);
    assert.equal(
      stdout,
      "✓ MCP transport layer: OK\nNo agents and no MCP servers are configured here.\n",
    );
  });
});

Deno.test("check tells what is wrong with a workflow, and asks no provider of one", async () => {
  const flow = (name: string, node: string) =>
    `kind: workflow\nname: ${name}\nnodes:\n  a: { ${node}, intent: x }\n`;
  await onMachine({
    "project/agents/whole/agent.yaml": flow("whole", "agent: local"),
    "project/agents/wrong/agent.yaml": flow("wrong", "agent: locl"),
    "project/agents/path/agent.yaml": flow("path", "agent: ./nothing"),
    "project/agents/local/agent.yaml": agent("local", "{ provider: ollama, preferred: m }"),
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check"], {});
    assert.equal(code, 1);
    assert.match(
      stdout,
      /agents\/wrong\/agent\.yaml:4:15.*No agent "locl"; did you mean `local`\?/,
    );
    assert.match(stdout, /agents\/path\/agent\.yaml:4:15.*No agent at "\.\/nothing"/);
    assert.doesNotMatch(stdout, /workflow: needs/);
    assert.equal((await machine.rnix(["check", "whole"], {})).code, 0);
  });
});

Deno.test("check finds what a run would be refused for: scripts, agents below, prices", async () => {
  const scripted = "{ provider: scripted, script: s.yaml }";
  const below = "project/parts";
  await onMachine({
    "project/agents/script/agent.yaml": agent("script", scripted),
    "project/agents/script/s.yaml": "turns: [{ txt: x }]\n",
    "project/agents/nobody/agent.yaml": agent("nobody", LOCAL, "agents: [locl]\n"),
    "project/agents/nowhere/agent.yaml": agent(
      "nowhere",
      LOCAL,
      "agents: [{ name: kid, manifest: ../nowhere-at-all }]\n",
    ),
    "project/agents/costly/agent.yaml": agent("costly", LOCAL, "budget: { cost_usd: 1 }\n"),
    "project/agents/flow/agent.yaml":
      "kind: workflow\nname: flow\nnodes:\n  a: { agent: ../../parts/misspelt, intent: x }\n",
    "project/agents/lead/agent.yaml": agent(
      "lead",
      LOCAL,
      "agents: [{ name: keyed, manifest: ../../parts/keyed }]\n",
    ),
    "project/agents/local/agent.yaml": agent("local", LOCAL),
    [`${below}/misspelt/agent.yaml`]: agent("misspelt", LOCAL, "tols: []\n"),
    [`${below}/keyed/agent.yaml`]: agent("keyed", "{ provider: openai, preferred: m }"),
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check"]);
    assert.equal(code, 1);
    const faults = stdout.split("\n").filter((line) => /^[✗!]/.test(line));
    for (
      const expected of [
        /^✗ Error: agent 'script' — agents\/script\/s\.yaml:1:11: Unknown key "txt"/,
        /^✗ Error: agent 'script' — agents\/script\/s\.yaml:1:9: A turn needs/,
        /^✗ Error: agent 'nobody' — agents\/nobody\/agent\.yaml:4:10: .*No agent "locl"/,
        /^✗ Error: agents\/nowhere\/agent\.yaml:4:33: No agent at "\.\.\/nowhere-at-all"/,
        /^✗ Error: agent 'costly' — The budget "cost_usd" needs a price/,
        /^✗ Error: agent 'flow' — .*parts\/misspelt\/agent\.yaml:4:1: Unknown key "tols"/,
        /^! Warning: agent 'lead' — Agent "keyed", which it may start: No key for the model/,
      ]
    ) {
      assert.equal(faults.filter((line) => expected.test(line)).length, 1, `${expected} ${stdout}`);
    }
    assert.equal(faults.length, 7, stdout);
    assert.equal((await machine.rnix(["check", "local"])).code, 0);
  });
});

Deno.test("a key that the preferred model and its fallback both lack is told once", async () => {
  const both = "{ provider: openai, preferred: m, fallback: n }";
  await onMachine({ "project/agents/a/agent.yaml": agent("a", both) }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check"]);
    assert.equal(code, 1);
    assert.deepEqual(stdout.split("\n").filter((line) => line.startsWith("✗")), [
      "✗ Error: agent 'a' — No key for the model: \"OPENAI_API_KEY\" is not set",
    ]);
  });
});
