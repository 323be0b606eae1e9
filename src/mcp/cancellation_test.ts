/** How a server learns that a call isn't wanted any more, in each era and form of connection: that call's end alone, and its answer is still taken if it comes. */
import assert from "node:assert/strict";
import { MemoryServer, type Responder, text } from "../../tests/doubles/mcp_connection.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import type { ServerConnection } from "./connection.ts";
import type { ToolCall, ToolCallOutcome } from "./exchange.ts";
import { McpSession } from "./session.ts";

const modern: { [method: string]: Responder } = {
  "server/discover": () => ({
    result: {
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {} },
      ttlMs: 0,
      cacheScope: "private",
    },
  }),
};

type Send = ServerConnection["send"];

/** Keeps the signal that a request is sent with, as a connection with a stream per request would. */
class StreamedServer extends MemoryServer {
  readonly hasPerRequestStream = true;
  readonly signals: AbortSignal[] = [];

  override send(message: Parameters<Send>[0], options?: Parameters<Send>[1]): Promise<void> {
    const signal = options?.requestSignal;
    if ("method" in message && message.method === "tools/call" && signal !== undefined) {
      this.signals.push(signal);
    }
    return super.send(message);
  }
}

async function sessionOf(server: MemoryServer) {
  const clock = new VirtualClock();
  const session = await clock.run(McpSession.open({
    server: "s",
    startupTimeoutMs: 30_000,
    clock,
    clientInfo: { name: "rnix", version: "0" },
    connect: () => Promise.resolve(server),
  }));
  const call = (more: Partial<ToolCall> = {}): Promise<ToolCallOutcome> =>
    session.callTool({
      tool: "t",
      arguments: {},
      callId: "t1.0",
      idempotencyKey: "run/t1.0",
      signal: new AbortController().signal,
      cancelGraceMs: 2_000,
      timeoutMs: 30_000,
      maxTimeoutMs: 600_000,
      ...more,
    });
  return { clock, session, call };
}

function idsOf(server: MemoryServer, method: string, member?: string): unknown[] {
  return server.received.flatMap((message) => {
    if (!("method" in message) || message.method !== method) return [];
    return [member === undefined && "id" in message ? message.id : message.params?.[member ?? ""]];
  });
}

const answersSecond: Responder = (_, server) =>
  idsOf(server, "tools/call").length === 1 ? undefined : text("fine");

Deno.test("[B63] over one connection for all, a notification names the one call, in either era", async () => {
  for (const era of [{}, modern]) {
    const server = new MemoryServer({ ...era, "tools/call": answersSecond });
    const { clock, session, call } = await sessionOf(server);
    const stop = new AbortController();
    const cancelled = call({ signal: stop.signal });
    await settle();
    stop.abort();
    const other = call();
    const outcome = await clock.run(cancelled);
    assert.ok(outcome.kind === "unknown" && outcome.cause === "cancelled", session.era);
    assert.equal((await clock.run(other)).kind, "result");
    const [first] = idsOf(server, "tools/call");
    assert.deepEqual(idsOf(server, "notifications/cancelled", "requestId"), [first]);
    assert.ok(session.alive);
  }
});

Deno.test("[B63] with a stream per request, only the stream of the cancelled call is ended", async () => {
  const server = new StreamedServer({ ...modern, "tools/call": answersSecond });
  const { clock, call } = await sessionOf(server);
  const stop = new AbortController();
  const cancelled = call({ signal: stop.signal });
  await settle();
  const other = call();
  stop.abort();
  await settle();
  assert.deepEqual(server.signals.map((signal) => signal.aborted), [true, false]);
  assert.equal((await clock.run(other)).kind, "result");
  assert.equal((await clock.run(cancelled)).kind, "unknown");
  assert.deepEqual(idsOf(server, "notifications/cancelled"), []);
});

Deno.test("a call that its time has run out for is cancelled like any other, and its late answer is taken", async () => {
  for (const era of [{}, modern]) {
    const server = new MemoryServer({ ...era, "tools/call": () => undefined });
    const { clock, call } = await sessionOf(server);
    const outcome = await clock.run(call());
    assert.ok(outcome.kind === "unknown" && outcome.cause === "timeout");
    await settle();
    const [id] = idsOf(server, "tools/call");
    assert.deepEqual(idsOf(server, "notifications/cancelled", "requestId"), [id]);
    assert.ok(typeof id === "number" || typeof id === "string");
    server.deliver({ jsonrpc: "2.0", id, result: { content: [] } });
    assert.deepEqual(await outcome.late, { kind: "result", result: { content: [] } });
  }
});
