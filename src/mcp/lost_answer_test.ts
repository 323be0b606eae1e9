/** Answers that can't come any more though the connection goes on, failures that prove nothing, versions that are refused: against a server in memory. */
import assert from "node:assert/strict";
import { MemoryServer, type Responder, text } from "../../tests/doubles/mcp_connection.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { SysError } from "../base/errors.ts";
import { SendError, type ServerConnection } from "./connection.ts";
import { McpSession } from "./session.ts";

async function opened(on: { [method: string]: Responder }) {
  const clock = new VirtualClock();
  const server = new MemoryServer(on);
  const connection: ServerConnection = server;
  const session = await clock.run(McpSession.open({
    server: "s",
    startupTimeoutMs: 30_000,
    clock,
    clientInfo: { name: "rnix", version: "0" },
    connect: () => Promise.resolve(connection),
  }));
  const stop = new AbortController();
  const call = () =>
    session.callTool({
      tool: "t",
      arguments: {},
      callId: "t1.0",
      idempotencyKey: "k",
      signal: stop.signal,
      cancelGraceMs: 2_000,
      timeoutMs: 30_000,
      maxTimeoutMs: 600_000,
    });
  /** The server's connection can't bring the last call's answer any more. */
  const lose = (why: string) => {
    const last = server.received.findLast((message) =>
      "method" in message && message.method === "tools/call"
    );
    assert.ok(last !== undefined && "id" in last && last.id !== undefined);
    connection.onlost?.(last.id, why);
  };
  return { clock, server, session, call, lose, stop };
}

Deno.test("[B23] a lost answer makes its call unknown at once, with the reason; the next call works", async () => {
  let silent = true;
  const { clock, session, call, lose } = await opened({
    "tools/call": () => silent ? undefined : text("here"),
  });
  const outcome = call();
  await settle();
  lose("its stream ended");
  const known = await clock.run(outcome);
  assert.ok(known.kind === "unknown" && known.cause === "disconnected");
  assert.equal(
    known.error.message,
    'The answer of server "s" was lost during a call of "t": its stream ended',
  );
  assert.equal(await known.late, undefined);
  assert.deepEqual(session.inFlight, { open: 0, abandoned: 0 });
  silent = false;
  assert.equal((await clock.run(call())).kind, "result");
  await session.close();
  assert.equal(clock.pending, 0);
});

Deno.test("[B23] a listing whose answer is lost fails with the reason and not at its limit", async () => {
  let lists = 0;
  const { clock, server, session } = await opened({
    "tools/list": () => lists++ === 0 ? { result: { tools: [] } } : undefined,
  });
  const listing = session.listTools(30_000).catch((thrown) => thrown);
  await settle();
  const last = server.received.at(-1);
  assert.ok(last !== undefined && "id" in last && last.id !== undefined);
  const connection: ServerConnection = server;
  connection.onlost?.(last.id, "its stream ended");
  await settle();
  const error = await listing;
  assert.ok(error instanceof SysError);
  assert.match(error.message, /lost during tools\/list: its stream ended/);
  await session.close();
  assert.equal(clock.pending, 0);
});

Deno.test("a cancelled call whose stream ends with it is cancelled, not lost", async () => {
  const { clock, session, call, lose, stop } = await opened({ "tools/call": () => undefined });
  const outcome = call();
  await settle();
  stop.abort();
  lose("it was given up");
  const known = await clock.run(outcome);
  assert.ok(known.kind === "unknown" && known.cause === "cancelled");
  await session.close();
});

Deno.test("only a transport that says so makes a call not sent; any other failure is unknown", async () => {
  const failures = [new SendError("no", true), new SendError("no", false), new TypeError("no")];
  const kinds: string[] = [];
  for (const failure of failures) {
    const { clock, server, session, call } = await opened({});
    server.send = () => Promise.reject(failure);
    kinds.push((await clock.run(call())).kind);
    await session.close();
  }
  assert.deepEqual(kinds, ["not-sent", "unknown", "unknown"]);
});

Deno.test("what a refusal means for people is kept: its code and its hint", async () => {
  const { clock, server, session, call } = await opened({});
  const cause = new SysError("UNAUTHENTICATED", "no", { hint: "Log in" });
  server.sendFailure = new SendError("refused", true, cause);
  const outcome = await clock.run(call());
  assert.ok(outcome.kind === "not-sent");
  assert.deepEqual([outcome.error.code, outcome.error.hint], ["UNAUTHENTICATED", "Log in"]);
  await session.close();
});

Deno.test("[B67] a version that is refused with a list is tried again, once, with the newest of the list", async () => {
  const asked: unknown[] = [];
  const { session } = await opened({
    initialize: (params) => {
      asked.push(params["protocolVersion"]);
      return asked.length === 1
        ? { error: { code: -32602, message: "Supported: 2024-11-05, 2025-03-26" } }
        : {
          result: {
            protocolVersion: "2025-03-26",
            capabilities: {},
            serverInfo: { name: "old", version: "1" },
          },
        };
    },
  });
  assert.deepEqual(asked, ["2025-11-25", "2025-03-26"]);
  assert.equal(session.protocolVersion, "2025-03-26");
  await session.close();
});
