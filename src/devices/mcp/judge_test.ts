/** The judge against real processes: each misbehaviour is seen and told, and nothing is left of a server. */
import assert from "node:assert/strict";
import {
  launchOf,
  modernServer,
  npmServer,
  scripted,
} from "../../../tests/servers/launch_server.ts";
import type { Scenario } from "../../../tests/servers/scripted_scenario.ts";
import { systemClock } from "../../base/clock.ts";
import type { Json } from "../../base/json.ts";
import { createRedaction } from "../../base/redaction.ts";
import type { ServerVerdict } from "../../base/server_verdict.ts";
import type { StdioLaunch } from "../../mcp/launch.ts";
import { judgeServer } from "./judge.ts";

const TOOL = { name: "t", inputSchema: { type: "object" } };

async function judge(launch: StdioLaunch, secrets: string[] = []): Promise<ServerVerdict> {
  return await judgeServer(launch, {
    clock: systemClock,
    clientInfo: { name: "rnix", version: "0" },
    redaction: createRedaction({ intake: secrets }),
  });
}

const judgeScripted = (scenario: Scenario, changes: Partial<StdioLaunch> = {}) =>
  judge(scripted({ tools: [TOOL], ...scenario }, changes));

/** Findings as `severity: message`. */
function told({ findings }: ServerVerdict): string[] {
  return findings.map(({ severity, message }) => `${severity}: ${message}`);
}

Deno.test("[N7] a plain legacy server is ok: its version, its tools, its answer to ping", async () => {
  const verdict = await judgeScripted({ protocolVersion: "2025-06-18" });
  assert.deepEqual(told(verdict), []);
  assert.equal(verdict.result, "ok");
  assert.equal(verdict.era, "legacy");
  assert.equal(verdict.protocol_version, "2025-06-18");
  assert.equal(verdict.eras.modern.outcome, "refused");
  assert.deepEqual(verdict.eras.legacy, {
    spoken: true,
    versions: ["2025-06-18"],
    outcome: "answered",
  });
  assert.equal(verdict.ping, "answered");
  assert.deepEqual(verdict.paging, { pages: 1, tools: 1, end: "complete" });
  assert.deepEqual(verdict.tools, { usable: ["t"], set_aside: [], renamed: [] });
  assert.deepEqual(
    verdict.providers.map(({ provider }) => provider).sort(),
    ["anthropic", "google", "openai", "openai-compatible"],
  );
});

Deno.test("[N7] a server of 2026-07-28 is tried with initialize too", async () => {
  const verdict = await judge(modernServer());
  assert.equal(verdict.era, "modern");
  assert.equal(verdict.protocol_version, "2026-07-28");
  assert.equal(verdict.eras.modern.spoken, true);
  assert.ok(verdict.eras.modern.versions.includes("2026-07-28"));
  assert.notEqual(verdict.eras.legacy.outcome, "not-tried");
  assert.equal(verdict.paging?.end, "complete");
  assert.notEqual(verdict.result, "faults");
});

Deno.test("[N7] silence and death on server/discover are told with what they cost", async () => {
  const [silent, dead] = await Promise.all([
    judgeScripted({ on: { "server/discover": { silent: true } } }, { startupTimeoutMs: 15_000 }),
    judgeScripted({ on: { "server/discover": { exit: 3 } } }),
  ]);
  assert.equal(silent.eras.modern.outcome, "silent");
  assert.deepEqual(told(silent), [
    "warning: it doesn't answer server/discover: every mount waits 5s for nothing",
  ]);
  assert.equal(silent.result, "warnings");
  assert.equal(dead.eras.modern.outcome, "exited");
  assert.match(told(dead).join("\n"), /^warning: it doesn't survive server\/discover: .*code 3/);
  assert.equal(dead.era, "legacy");
});

Deno.test("[N7] a ping may be answered with an error, with nothing, or by an end", async () => {
  const [unknown, silent, dead] = await Promise.all([
    judgeScripted({ on: { ping: { error: { code: -32601, message: "no" } } } }),
    judgeScripted({ on: { ping: { silent: true } } }),
    judgeScripted({ on: { ping: { exit: 1 } } }),
  ]);
  assert.equal(unknown.ping, "unknown-method");
  assert.equal(unknown.result, "ok");
  assert.deepEqual(told(unknown), [
    "note: it answers ping with an error, which counts as life",
  ]);
  assert.equal(silent.ping, "silent");
  assert.equal(silent.result, "warnings");
  assert.equal(silent.paging?.end, "complete");
  assert.equal(dead.ping, "exited");
  assert.equal(dead.result, "warnings");
});

Deno.test("[N7] noise on stdout is counted with its first line, a flood on stderr with its size, secrets in neither", async () => {
  const verdict = await judge(
    scripted({
      tools: [TOOL],
      start: { noise: "Listening with key-12345678" },
      on: { initialize: { noise: "more", stderrBytes: 2 * 1024 * 1024 } },
    }),
    ["key-12345678"],
  );
  assert.equal(verdict.stdout_noise.lines, 2);
  assert.equal(verdict.stdout_noise.first, "Listening with [redacted]");
  assert.ok(verdict.stderr.bytes > 2 * 1024 * 1024);
  assert.deepEqual(told(verdict).map((line) => line.replace(/\d{5,}/, "N")), [
    'warning: it wrote 2 lines to stdout that are no MCP messages; the first is "Listening with [redacted]"',
    "warning: it floods its stderr: N bytes while it was mounted",
  ]);
});

Deno.test("[B51] pages that repeat themselves or don't end are told apart", async () => {
  const [same, cursor, endless] = await Promise.all([
    judgeScripted({ endlessPages: "same-tools" }),
    judgeScripted({ pages: [{ tools: [TOOL], nextCursor: "" }] }),
    judgeScripted({ endlessPages: "new-tools" }),
  ]);
  assert.deepEqual(same.paging, { pages: 2, tools: 1, end: "repeated" });
  assert.equal(same.result, "warnings");
  assert.deepEqual(cursor.paging, { pages: 2, tools: 1, end: "repeated" });
  assert.equal(endless.paging?.end, "endless");
  assert.equal(endless.result, "faults");
  assert.equal(endless.error?.code, "RESOURCE_EXHAUSTED");
  assert.match(told(endless)[0] ?? "", /^fault: Server "s" lists tools without end/);
});

Deno.test("[B27] [B31] [B33] [B37] tools set aside, refused or altered are told with their reason, for each provider", async () => {
  const tools: Json[] = [
    TOOL,
    { name: "broken", inputSchema: { type: "string" } },
    { name: "odd", inputSchema: { type: "object", properties: { "a b": { type: "string" } } } },
    {
      name: "strict",
      inputSchema: {
        type: "object",
        properties: { data: true, when: { type: "string", pattern: "^x" } },
        additionalProperties: false,
      },
    },
    { name: "n".repeat(70), inputSchema: { type: "object" } },
    { ...TOOL, name: "wordy", description: "word ".repeat(300) },
  ];
  const verdict = await judge(scripted({ tools }));
  assert.deepEqual(verdict.tools.usable, ["n".repeat(70), "odd", "strict", "t", "wordy"]);
  assert.deepEqual(verdict.tools.set_aside.map(({ tool }) => tool), ["broken"]);
  assert.deepEqual(verdict.tools.renamed.map(({ tool }) => tool), ["n".repeat(70)]);
  const of = (name: string) => verdict.providers.find(({ provider }) => provider === name);
  assert.deepEqual(of("anthropic")?.refused, [{
    tool: "odd",
    reason: 'Input schema has a property "a b", which the API refuses',
  }]);
  assert.deepEqual(of("openai")?.refused, []);
  assert.deepEqual(of("google")?.altered, [{
    tool: "strict",
    reason: "told otherwise or left out: additionalProperties, pattern",
  }]);
  assert.deepEqual(of("openai")?.altered, []);
  assert.deepEqual(of("openai-compatible")?.altered.map(({ tool }) => tool), ["wordy"]);
  const lines = told(verdict).join("\n");
  assert.match(lines, /^warning: tool 'broken' is set aside: Its inputSchema has type "string"/m);
  assert.match(lines, /^warning: anthropic can't be offered tool 'odd': /m);
  assert.match(lines, /^note: tool 'n{70}' is known to models as 'mcp__s__n+_[0-9a-f]{8}'$/m);
  assert.match(lines, /^note: google: tool 'strict' can't be passed on as it is/m);
  assert.equal(verdict.result, "warnings");
});

Deno.test("[N7] more tools than a provider takes in one request are told for that provider", async () => {
  const tools = Array.from({ length: 130 }, (_, index) => ({ ...TOOL, name: `t${index}` }));
  const verdict = await judge(scripted({ tools }));
  assert.deepEqual(
    verdict.providers.map(({ provider, tools_max }) => [provider, tools_max]).sort(),
    [["anthropic", undefined], ["google", undefined], ["openai", 128], ["openai-compatible", 128]],
  );
  assert.match(
    told(verdict)[0] ?? "",
    /^warning: openai takes 128 tools in one request, and there are 130$/,
  );
});

Deno.test("a server that can't be mounted is diagnosed in a sentence, and tried no further", async () => {
  const [missing, chatty, dead] = await Promise.all([
    judge(launchOf("not-there-at-all", [])),
    judge(launchOf("sh", ["-c", "echo hello; exit 7"])),
    judgeScripted({ on: { initialize: { silent: true }, "server/discover": { silent: true } } }, {
      startupTimeoutMs: 2_000,
    }),
  ]);
  assert.equal(missing.result, "faults");
  assert.equal(missing.error?.code, "NOT_FOUND");
  assert.equal(missing.eras.legacy.outcome, "not-tried");
  assert.match(
    told(chatty)[0] ?? "",
    /^fault: Server "s" exited with code 7 before it answered; it wrote "hello" to stdout/,
  );
  assert.equal(chatty.stdout_noise.first, "hello");
  assert.equal(dead.error?.code, "TIMEOUT");
  assert.match(dead.findings[0]?.message ?? "", /startup_timeout/);
});

Deno.test("[N7] the reference server is judged in both eras", async () => {
  const verdict = await judge(npmServer("everything", ["stdio"]));
  assert.notEqual(verdict.result, "faults");
  assert.equal(verdict.eras.legacy.spoken, true);
  assert.equal(verdict.ping, "answered");
  assert.equal(verdict.paging?.end, "complete");
  assert.ok(verdict.tools.usable.includes("echo"));
  assert.deepEqual(verdict.providers.map(({ refused }) => refused), [[], [], [], []]);
});
