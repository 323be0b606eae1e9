import assert from "node:assert/strict";
import { SysError } from "../base/errors.ts";
import { isJsonObject, type Json } from "../base/json.ts";
import type { LoadedAgent, ServerConfig } from "./agent_manifest.ts";
import { EMBEDDED_AGENTS } from "./embedded.ts";
import { loadEmbeddedAgent } from "./load_agent.ts";
import { loadSpec, saveSpec } from "./spec.ts";

const AGENT: LoadedAgent = {
  manifest: {
    name: "a",
    description: "",
    instructions: "do",
    models: {
      provider: "scripted",
      preferred: "scripted",
      script: "s.yaml",
      timeoutMs: 1,
      maxTimeoutMs: 2,
    },
    servers: [{
      name: "s",
      transport: "stdio",
      command: "npx",
      args: ["${PKG}"],
      env: { TOKEN: "${TOKEN}" },
      cwd: ".",
      inheritEnv: ["X"],
      startupTimeoutMs: 1,
      timeoutMs: 2,
      maxTimeoutMs: 3,
      outputTokensMax: 4,
      required: false,
      rules: { allow: ["a*"], effects: { a: "read" }, risk: { a: "low" }, sensitive: ["a"] },
    }],
    budget: { turns: 5, tokens: 6, tool_calls: 7, duration_ms: 8 },
    tools: [],
    agents: [],
    onUnknown: "skip",
  },
  path: "/p/agent.yaml",
  folder: "/p",
  scriptText: "turns: []\n",
};

Deno.test("an agent comes back from its spec as it was, through JSON text", () => {
  const blob: Json = JSON.parse(JSON.stringify(saveSpec(AGENT)));
  assert.deepEqual(loadSpec(blob), AGENT);
});

Deno.test("what providers.yaml said is stored with the run, values as references", () => {
  const place = {
    kind: "anthropic",
    baseUrl: "https://${HOST}/v1",
    apiKeyEnv: "KEY",
    keyOptional: true as const,
    headers: { a: "${TOKEN}" },
    price: { input: 3, output: 15, cached: 0.3 },
    contextWindow: 200_000,
  };
  const models = {
    ...AGENT.manifest.models,
    ...place,
    provider: "mine",
    fallback: { ...place, provider: "other", model: "m" },
  };
  const budget = { cost_usd: 0.5 };
  const agent: LoadedAgent = { ...AGENT, manifest: { ...AGENT.manifest, models, budget } };
  assert.deepEqual(loadSpec(JSON.parse(JSON.stringify(saveSpec(agent)))), agent);
});

Deno.test("absent parts stay absent", async () => {
  const { manifest } = AGENT;
  const { servers: _, ...bare } = { ...manifest, budget: {} };
  const small: LoadedAgent = { manifest: bare, path: "/p", folder: "/" };
  assert.deepEqual(loadSpec(saveSpec(small)), small);
  for (const embedded of EMBEDDED_AGENTS) {
    const { ownFiles = [], placeOf, scriptFile = "", ...agent } = await loadEmbeddedAgent(embedded);
    assert.ok(ownFiles.length > 0);
    assert.deepEqual(
      loadSpec(saveSpec({ ...agent, ownFiles, scriptFile, ...placeOf && { placeOf } })),
      agent,
    );
  }
});

Deno.test("a server at an address, one of mcp.yaml and one that isn't shared come back too", () => {
  const [stdio] = AGENT.manifest.servers ?? [];
  assert.ok(stdio?.transport === "stdio");
  const { command: _c, args: _a, env: _e, cwd: _w, inheritEnv: _i, ...terms } = stdio;
  const servers: ServerConfig[] = [
    { ...stdio, file: "/p/.rnix/mcp.yaml" },
    { ...stdio, name: "own", share: false },
    { ...terms, transport: "auto", url: "https://${HOST}/mcp", headers: { a: "${TOKEN}" } },
  ];
  const agent = { ...AGENT, manifest: { ...AGENT.manifest, servers } };
  assert.deepEqual(loadSpec(JSON.parse(JSON.stringify(saveSpec(agent)))), agent);
});

Deno.test("a spec of version 1, whose servers were all on stdio, is still read", () => {
  const saved = saveSpec(AGENT);
  assert.ok(isJsonObject(saved) && isJsonObject(saved["manifest"]));
  const { servers } = saved["manifest"];
  assert.ok(Array.isArray(servers));
  const old = servers.map((server) => {
    assert.ok(isJsonObject(server));
    const { transport, ...rest } = server;
    assert.equal(transport, "stdio");
    return rest;
  });
  const manifest = { ...saved["manifest"], servers: old };
  assert.deepEqual(loadSpec({ ...saved, v: 1, manifest }), AGENT);
  assert.throws(() => loadSpec({ ...saved, manifest }), /at "manifest\.servers\.0/);
  const { servers: _, ...without } = AGENT.manifest;
  const bare = saveSpec({ ...AGENT, manifest: without });
  assert.ok(isJsonObject(bare));
  assert.deepEqual(loadSpec({ ...bare, v: 1 }).manifest, without);
});

Deno.test("variables are stored as references", () => {
  assert.match(JSON.stringify(saveSpec(AGENT)), /"TOKEN":"\$\{TOKEN\}"/);
});

Deno.test("skills and notes are kept with the agent; a spec of version 2, which had none, is still read", () => {
  const skill = {
    name: "s",
    description: "For s",
    body: "Do.",
    tools: ["Read" as const],
    folder: "/skills/s",
    files: { "a.md": "0".repeat(64) },
  };
  const agent = { ...AGENT, skills: [skill], notes: "Use tabs." };
  assert.deepEqual(loadSpec(saveSpec(agent)), agent);
  const saved = saveSpec(AGENT);
  assert.ok(isJsonObject(saved));
  assert.deepEqual(loadSpec({ ...saved, v: 2 }), AGENT);
});

Deno.test("a spec of a newer version is refused by number", () => {
  const saved = saveSpec(AGENT);
  assert.ok(isJsonObject(saved));
  assert.throws(
    () => loadSpec({ ...saved, v: 4, added: true }),
    /The stored manifest has version 4; this rnix reads up to 3/,
  );
});

Deno.test("a spec that isn't one is refused with the place", () => {
  const saved = saveSpec(AGENT);
  assert.ok(isJsonObject(saved));
  const manifest = saved["manifest"];
  assert.ok(isJsonObject(manifest));
  const bad: Json[] = [null, [], {}, { v: 1 }, { v: 2 }, { v: "1" }, { v: 1, manifest: [] }, {
    v: 1,
    manifest: { servers: [7] },
  }, { ...saved, extra: 1 }];
  bad.push({ ...saved, manifest: { ...manifest, tools: [], agents: [], onUnknown: "perhaps" } });
  for (const blob of bad) {
    assert.throws(
      () => loadSpec(blob),
      (thrown) => thrown instanceof SysError && thrown.code === "INVALID",
      JSON.stringify(blob).slice(0, 80),
    );
  }
  assert.throws(
    () =>
      loadSpec({
        ...saved,
        manifest: { ...manifest, tools: [], agents: [], onUnknown: "perhaps" },
      }),
    /at "manifest\.onUnknown"/,
  );
});
