import assert from "node:assert/strict";
import { FakeSystem } from "../../../tests/doubles/fake_system.ts";
import { onMachine, SCRIPT } from "../../../tests/doubles/made_up_machine.ts";
import type { ServerVerdict } from "../../base/server_verdict.ts";

const agent = (name: string, mcp: string) =>
  `name: ${name}\ninstructions: Work.\nmodels: { provider: ollama, preferred: m }\nmcp: ${mcp}\n`;

function verdict(server: string, changes: Partial<ServerVerdict> = {}): ServerVerdict {
  return {
    server,
    transport: "stdio",
    result: "ok",
    era: "legacy",
    protocol_version: "2025-06-18",
    connect_ms: 340,
    eras: {
      modern: { spoken: false, versions: [], outcome: "refused" },
      legacy: { spoken: true, versions: ["2025-06-18"], outcome: "answered" },
    },
    ping: "answered",
    paging: { pages: 1, tools: 2, end: "complete" },
    stdout_noise: { lines: 0 },
    stderr: { lines: 0, bytes: 0 },
    tools: { usable: ["a", "b"], set_aside: [], renamed: [] },
    providers: [],
    findings: [],
    ...changes,
  };
}

const FILES = {
  "bin/npx": SCRIPT,
  "home/.config/rnix/mcp.yaml": "servers:\n  shared: { command: npx }\n  lost: { command: gone }\n",
  "project/agents/one/agent.yaml": agent("one", "[shared]"),
  "project/agents/two/agent.yaml": agent(
    "two",
    "{ servers: { own: { command: npx }, gone: { command: gone }, spare: { command: npx, required: false } } }",
  ),
};

Deno.test("[N7] what could be started is judged once, whoever uses it, and told like all else", async () => {
  await onMachine(FILES, async (machine) => {
    const system = machine.system = new FakeSystem();
    system.verdicts = [
      verdict("own", {
        result: "warnings",
        ping: "silent",
        findings: [
          { severity: "warning", message: "it doesn't answer ping", hint: "It should" },
          { severity: "note", message: "tool 'x' is known to models as 'y'" },
        ],
      }),
      verdict("spare", {
        result: "faults",
        error: { code: "DRIVER", message: "it exited" },
        findings: [{ severity: "fault", message: "it exited" }],
        eras: {
          modern: { spoken: false, versions: [], outcome: "not-tried" },
          legacy: { spoken: false, versions: [], outcome: "not-tried" },
        },
        ping: "not-tried",
      }),
      verdict("shared"),
    ];
    const { code, stdout, stderr } = await machine.rnix(["check", "mcp", "--connect"]);
    assert.deepEqual(system.judged[0]?.servers, [
      { kind: "agent", manifest: "two", server: "own" },
      { kind: "agent", manifest: "two", server: "spare" },
      { kind: "configured", name: "shared" },
    ]);
    assert.equal(system.judged[0]?.trust, false);
    assert.equal(
      stdout,
      `✓ MCP transport layer: OK
✓ Agent MCP configs found: 2 agents with MCP servers
  - one: shared
  - two: own, gone, spare
✓ Servers of mcp.yaml found: 2 servers
  - shared: used by one
  - lost: used by no agent
✓ Server binaries found:
  - npx: /bin/npx
✓ Servers connected:
  - two/own: warnings, 2 tools in 340ms, speaks 2025-06-18 (initialize)
  - two/spare: faults, not mounted
  - shared: ok, 2 tools in 340ms, speaks 2025-06-18 (initialize), answers ping
✗ Warning: agent 'two' MCP server 'gone' — command 'gone' not in PATH
✗ Warning: mcp.yaml MCP server 'lost' — command 'gone' not in PATH
! Warning: agent 'two' MCP server 'own' — it doesn't answer ping
! Warning: agent 'two' MCP server 'spare' — it exited
`,
    );
    assert.equal(code, 1);
    assert.match(stderr, /^hint: two\/own: It should$/m);
    assert.match(stderr, /^1 more note with -v$/m);
    const verbose = await machine.rnix(["check", "mcp", "--connect", "-v"]);
    assert.match(verbose.stdout, /^· Note: agent 'two' MCP server 'own' — tool 'x' is known/m);
  });
});

Deno.test("[N7] warnings are no fault, a fault is, and JSON has all that was found", async () => {
  await onMachine(FILES, async (machine) => {
    const system = machine.system = new FakeSystem();
    const warned = verdict("shared", {
      result: "warnings",
      findings: [{ severity: "warning", message: "it doesn't answer ping" }],
    });
    system.verdicts = [warned];
    const fine = await machine.rnix(["check", "mcp", "shared", "--connect", "--trust", "--json"]);
    assert.equal(system.judged[0]?.trust, true);
    assert.equal(fine.code, 0);
    const { ok, data } = JSON.parse(fine.stdout);
    assert.equal(ok, true);
    assert.deepEqual(data.servers.map(({ verdict }: { verdict: unknown }) => verdict), [warned]);
    assert.deepEqual(data.faults, [{
      severity: "warning",
      server: "shared",
      message: "it doesn't answer ping",
    }]);
    system.verdicts = [
      verdict("shared", { findings: [{ severity: "fault", message: "it is none" }] }),
    ];
    const bad = await machine.rnix(["check", "mcp", "one", "--connect"]);
    assert.deepEqual(system.judged[1]?.servers, [{
      kind: "agent",
      manifest: "one",
      server: "shared",
    }]);
    assert.equal(bad.code, 1);
    assert.match(bad.stdout, /^✗ Warning: agent 'one' MCP server 'shared' — it is none$/m);
  });
});

Deno.test("where nothing could be started no daemon is asked", async () => {
  await onMachine({
    "project/agents/a/agent.yaml": agent("a", "{ servers: { s: { command: gone } } }"),
  }, async (machine) => {
    const { code, stdout } = await machine.rnix(["check", "mcp", "--connect"]);
    assert.equal(code, 1);
    assert.doesNotMatch(stdout, /Servers connected/);
  });
});
