/** Which transport a server at an address turns out to speak, and that it is remembered. */
import assert from "node:assert/strict";
import { ScriptedHttpServer } from "../../tests/servers/scripted_http_server.ts";
import type { Scenario } from "../../tests/servers/scripted_scenario.ts";
import { systemClock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { connectHttp, type TransportMemory } from "./http_connect.ts";
import type { HttpLaunch } from "./launch.ts";
import { McpSession } from "./session.ts";
import { StderrLog } from "./stderr_log.ts";

function launchOf(url: string, changes: Partial<HttpLaunch> = {}): HttpLaunch {
  return {
    server: "s",
    transport: "auto",
    url,
    headers: {},
    env: {},
    startupTimeoutMs: 20_000,
    timeoutMs: 10_000,
    maxTimeoutMs: 10_000,
    ...changes,
  };
}

async function withServer(
  scenario: Scenario,
  work: (server: ScriptedHttpServer) => Promise<void>,
): Promise<void> {
  const server = await ScriptedHttpServer.start(scenario);
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

async function openAndClose(launch: HttpLaunch, memory: TransportMemory): Promise<string> {
  const session = await McpSession.open({
    server: launch.server,
    startupTimeoutMs: launch.startupTimeoutMs,
    clock: systemClock,
    connect: () => connectHttp(launch, memory, { clock: systemClock, log: new StderrLog() }),
    clientInfo: { name: "rnix", version: "0" },
  });
  await session.close();
  return session.protocolVersion;
}

async function failure(work: Promise<unknown>): Promise<SysError> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof SysError, String(thrown));
  return thrown;
}

Deno.test("Streamable HTTP is taken where the server speaks it, in either era", async () => {
  const memory: TransportMemory = new Map();
  for (const era of ["legacy", "modern"] as const) {
    await withServer({ era }, async (server) => {
      await openAndClose(launchOf(server.url), memory);
      assert.equal(server.count("GET"), era === "legacy" ? 1 : 0);
      assert.equal(memory.get(server.url), era === "legacy" ? "http" : undefined);
    });
  }
});

for (const postStatus of [400, 404, 405, 200, 202]) {
  Deno.test(`[D27] a POST that is answered ${postStatus} without a message, and a stream that names an address: the old transport, also the next time`, async () => {
    await withServer(
      { protocolVersion: "2024-11-05", http: { kind: "legacy", postStatus } },
      async (server) => {
        const memory: TransportMemory = new Map();
        assert.equal(await openAndClose(launchOf(server.url), memory), "2024-11-05");
        assert.equal(memory.get(server.url), "sse");
        const probes = server.count("server/discover");
        const posts = () => server.of("POST").filter(({ target }) => target === "/mcp").length;
        const before = posts();
        await openAndClose(launchOf(server.url), memory);
        assert.equal(posts(), before);
        assert.equal(server.count("server/discover"), probes);
      },
    );
  });
}

Deno.test("where a GET names no address either, the error is that of the POST", async () => {
  await withServer(
    { on: { initialize: { http: { status: 404, body: "no such page" } } } },
    async (server) => {
      const error = await failure(openAndClose(launchOf(server.url), new Map()));
      assert.match(error.message, /HTTP 404 \(no such page\) to initialize/);
      assert.match(error.hint ?? "", /url of server "s"/);
    },
  );
});

Deno.test("a login that is missing, or a server that is busy, is no sign of the old transport", async () => {
  for (const status of [401, 403, 429, 503]) {
    await withServer(
      { on: { initialize: { http: { status } } }, http: { session: false } },
      async (server) => {
        const error = await failure(openAndClose(launchOf(server.url), new Map()));
        assert.equal(
          error.code,
          { 401: "UNAUTHENTICATED", 403: "PERMISSION", 429: "RESOURCE_EXHAUSTED" }[status] ??
            "DRIVER",
        );
        assert.equal(server.count("GET"), 0);
      },
    );
  }
});

Deno.test("a probe that is refused, answered oddly or cut off leads to initialize", async () => {
  const steps = [
    ...[400, 401, 404, 405, 500, 503].map((status) => ({ http: { status } })),
    { http: { socket: "reset" as const } },
    { http: { socket: "close" as const } },
    { http: { cut: "end" as const } },
    { http: { status: 200, body: "<html>" } },
    { http: { status: 202 } },
  ];
  for (const step of steps) {
    await withServer({ on: { "server/discover": step } }, async (server) => {
      assert.equal(
        await openAndClose(launchOf(server.url), new Map()),
        "2025-11-25",
        JSON.stringify(step),
      );
    });
  }
});

Deno.test("an address, a header or a proxy that can't be used is refused before anything is sent, unquoted", async () => {
  for (
    const [changes, message] of [
      [{ url: "ftp://a.test/" }, /no http or https address/],
      [{ headers: { "X-Key": "hidden\r\nX: y" } }, /header "X-Key"/],
      [{ env: { HTTP_PROXY: "ftp://hidden" } }, /proxy in the environment/],
    ] as const
  ) {
    const error = await failure(openAndClose(launchOf("http://127.0.0.1:9/", changes), new Map()));
    assert.equal(error.code, "INVALID");
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /hidden/);
  }
});
