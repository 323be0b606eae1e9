import assert from "node:assert/strict";
import type { ServerConfig } from "./agent_manifest.ts";
import { literalSecrets } from "./secret_values.ts";

const TERMS = {
  ...{ startupTimeoutMs: 1, timeoutMs: 1, maxTimeoutMs: 1, required: true },
  rules: { effects: {}, risk: {}, sensitive: [] },
};

Deno.test("what is written out in env, headers and parameters is a manifest's secrets, whoever reads it", () => {
  const place = { provider: "mine", preferred: "m", timeoutMs: 1, maxTimeoutMs: 1 };
  const servers: ServerConfig[] = [
    {
      ...TERMS,
      ...{ name: "a", transport: "stdio", command: "x", args: [], inheritEnv: [] },
      env: { A: "cost$$100", B: "x${TOKEN}", C: "short", D: "${NO:-default}" },
    },
    {
      ...TERMS,
      ...{
        name: "b",
        transport: "auto",
        url: "https://x/?k=query%2Dkey&v=${TOKEN}-y#f?a=fragment",
      },
      headers: { h: "header-key" },
    },
  ];
  const found = literalSecrets({
    name: "a",
    description: "",
    instructions: "",
    models: {
      ...place,
      baseUrl: "https://x/v1?key=address-key",
      headers: { a: "Bearer written-key", b: "${TOKEN}" },
      fallback: { ...place, model: "f", headers: { c: "fallback-key" } },
    },
    servers,
    budget: {},
    tools: [],
    agents: [],
    onUnknown: "ask",
  });
  assert.deepEqual(found, [
    ...["cost$100", "header-key", "query-key"],
    ...["Bearer written-key", "written-key", "address-key", "fallback-key"],
  ]);
});
