/** The judge over HTTP: what a connection answers with a status or an end of its own is no exit of the server. */
import assert from "node:assert/strict";
import { addressed } from "../../../tests/servers/launch_server.ts";
import { ScriptedHttpServer } from "../../../tests/servers/scripted_http_server.ts";
import type { Scenario } from "../../../tests/servers/scripted_scenario.ts";
import { systemClock } from "../../base/clock.ts";
import { createRedaction } from "../../base/redaction.ts";
import type { ServerVerdict } from "../../base/server_verdict.ts";
import type { HttpLaunch } from "../../mcp/launch.ts";
import { judgeServer } from "./judge.ts";

const TOOLS = [{ name: "t", inputSchema: { type: "object" } }];

async function judge(
  scenario: Scenario,
  changes: Partial<HttpLaunch> = {},
): Promise<ServerVerdict> {
  const server = await ScriptedHttpServer.start({ tools: TOOLS, ...scenario });
  try {
    return await judgeServer(addressed(server.url, changes), {
      clock: systemClock,
      clientInfo: { name: "rnix", version: "0" },
      redaction: createRedaction({ intake: [] }),
    });
  } finally {
    await server.stop();
  }
}

const told = ({ findings }: ServerVerdict) =>
  findings.map(({ severity, message }) => `${severity}: ${message}`);

Deno.test("[N7] a server at an address is judged in the era that it speaks", async () => {
  const [legacy, modern] = await Promise.all([judge({}), judge({ era: "modern" })]);
  assert.deepEqual(told(legacy), []);
  assert.equal(legacy.transport, "http");
  assert.equal(legacy.era, "legacy");
  assert.equal(legacy.eras.legacy.spoken, true);
  assert.equal(legacy.ping, "answered");
  assert.deepEqual(legacy.paging, { pages: 1, tools: 1, end: "complete" });
  assert.equal(modern.era, "modern");
  assert.equal(modern.eras.modern.spoken, true);
  assert.equal(modern.eras.legacy.spoken, false);
  assert.deepEqual(modern.paging, { pages: 1, tools: 1, end: "complete" });
  assert.notEqual(modern.result, "faults");
});

Deno.test("[N7] how an address is spoken to is found out, legacy HTTP+SSE too", async () => {
  const verdict = await judge({ http: { kind: "legacy" } }, { transport: "auto" });
  assert.deepEqual(told(verdict), []);
  assert.equal(verdict.eras.legacy.spoken, true);
  assert.equal(verdict.ping, "answered");
});

Deno.test("[N7] a status in place of an answer is a refusal, not an exit", async () => {
  const verdict = await judge({
    on: {
      "server/discover": { http: { status: 400 } },
      ping: { http: { status: 500 } },
    },
  });
  assert.equal(verdict.era, "legacy");
  assert.equal(verdict.eras.modern.outcome, "refused");
  assert.match(verdict.eras.modern.detail ?? "", /400/);
  assert.equal(verdict.ping, "refused");
  assert.equal(verdict.paging?.end, "complete");
  assert.equal(verdict.result, "ok");
});

Deno.test("an address where nobody listens is told in a sentence", async () => {
  const verdict = await judgeServer(
    addressed("http://127.0.0.1:1/mcp", { startupTimeoutMs: 5_000 }),
    {
      clock: systemClock,
      clientInfo: { name: "rnix", version: "0" },
      redaction: createRedaction({ intake: [] }),
    },
  );
  assert.equal(verdict.result, "faults");
  assert.match(told(verdict)[0] ?? "", /^fault: .*"s"/);
  assert.equal(verdict.eras.legacy.outcome, "not-tried");
});
