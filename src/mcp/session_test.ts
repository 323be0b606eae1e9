/** Sessions and calls against a server in memory, on a virtual clock. */
import assert from "node:assert/strict";
import { MemoryServer, type Responder, text, tool } from "../../tests/doubles/mcp_connection.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { sleep } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { SendError } from "./connection.ts";
import type { ToolCall, ToolCallOutcome } from "./exchange.ts";
import { McpSession, type SessionOptions } from "./session.ts";

const clientInfo = { name: "rnix", version: "0" };

function optionsOf(
  clock: VirtualClock,
  servers: MemoryServer[],
  more: Partial<SessionOptions> = {},
): SessionOptions {
  let next = 0;
  return {
    server: "s",
    startupTimeoutMs: 30_000,
    clock,
    clientInfo,
    connect: () => {
      const server = servers[next++];
      return server === undefined
        ? Promise.reject(new Error("started too often"))
        : Promise.resolve(server);
    },
    ...more,
  };
}

async function opened(on: { [method: string]: Responder } = {}) {
  const clock = new VirtualClock();
  const server = new MemoryServer(on);
  const session = await clock.run(McpSession.open(optionsOf(clock, [server])));
  const call = (more: Partial<ToolCall> = {}) =>
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
  return { clock, server, session, call };
}

async function failure(work: Promise<unknown>): Promise<SysError> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof SysError, String(thrown));
  return thrown;
}

type Unknown = Extract<ToolCallOutcome, { kind: "unknown" }>;

function asUnknown(outcome: ToolCallOutcome): Unknown {
  assert.ok(outcome.kind === "unknown", JSON.stringify(outcome));
  return outcome;
}

const silent: Responder = () => undefined;

Deno.test("a legacy server refuses the probe and is initialised on the same connection", async () => {
  const { server, session } = await opened();
  assert.equal(session.era, "legacy");
  assert.equal(session.protocolVersion, "2025-11-25");
  assert.deepEqual(session.serverInfo, { name: "memory", version: "1" });
  assert.deepEqual(server.methods, [
    "server/discover",
    "initialize",
    "notifications/initialized",
    "tools/list",
  ]);
});

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
  initialize: () => ({ error: { code: -32601, message: "Method not found" } }),
};

Deno.test("a modern server is taken at its word, every request carries the era's envelope", async () => {
  const { server, session, call } = await opened({ ...modern, "tools/call": () => text("ok") });
  assert.equal(session.era, "modern");
  assert.deepEqual(await call(), {
    kind: "result",
    result: { content: [{ type: "text", text: "ok" }] },
  });
  const params = server.received.map((message) => "params" in message ? message.params : undefined);
  for (const each of params) {
    assert.equal(each?.["_meta"]?.["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
  }
});

Deno.test("silence on the probe means legacy after a third of the limit at most, and is not remembered", async () => {
  const clock = new VirtualClock();
  const eras = new Map();
  const server = new MemoryServer({ "server/discover": silent });
  const started = clock.monotonic();
  const session = await clock.run(
    McpSession.open(optionsOf(clock, [server], { eras, eraKey: "k", startupTimeoutMs: 6_000 })),
  );
  assert.equal(session.era, "legacy");
  assert.equal(clock.monotonic() - started, 2_000);
  assert.equal(eras.size, 0);
});

Deno.test("a verdict from an answer is remembered and saves the probe next time", async () => {
  const clock = new VirtualClock();
  const eras = new Map();
  const [first, second] = [new MemoryServer(), new MemoryServer()];
  await clock.run(McpSession.open(optionsOf(clock, [first], { eras, eraKey: "k" })));
  await clock.run(McpSession.open(optionsOf(clock, [second], { eras, eraKey: "k" })));
  assert.equal(second.methods[0], "initialize");
});

Deno.test("a remembered verdict that proves wrong is dropped: the server is probed after all", async () => {
  const clock = new VirtualClock();
  const eras = new Map([["k", "legacy" as const]]);
  const servers = [new MemoryServer(modern)];
  const session = await clock.run(
    McpSession.open(optionsOf(clock, servers, { eras, eraKey: "k" })),
  );
  assert.equal(session.era, "modern");
});

Deno.test("a server that dies of the probe is started again without it", async () => {
  const clock = new VirtualClock();
  const first = new MemoryServer({
    "server/discover": (_, server) => {
      server.die("it exited with code 1");
      return undefined;
    },
  });
  const second = new MemoryServer();
  const session = await clock.run(McpSession.open(optionsOf(clock, [first, second])));
  assert.equal(session.era, "legacy");
  assert.ok(!second.methods.includes("server/discover"));
});

Deno.test("a slow modern server, silent at first, is found out by its late answer", async () => {
  const clock = new VirtualClock();
  const { promise, resolve } = Promise.withResolvers<void>();
  const discover = modern["server/discover"] ?? silent;
  const server = new MemoryServer({
    ...modern,
    initialize: silent,
    "server/discover": async (params, self) => {
      await promise;
      return discover(params, self);
    },
  });
  clock.after(8_000, resolve);
  const session = await clock.run(McpSession.open(optionsOf(clock, [server])));
  assert.equal(session.era, "modern");
  assert.equal(clock.monotonic(), 8_000);
});

Deno.test("a modern server that lost the first probe is probed once more when initialize fails", async () => {
  const clock = new VirtualClock();
  let probes = 0;
  const discover = modern["server/discover"] ?? silent;
  const server = new MemoryServer({
    ...modern,
    "server/discover": (params, self) => ++probes === 1 ? undefined : discover(params, self),
  });
  const session = await clock.run(McpSession.open(optionsOf(clock, [server])));
  assert.equal(session.era, "modern");
  assert.equal(probes, 2);
});

Deno.test("[B03] a server that never answers fails at the limit, which the error names with its key", async () => {
  const clock = new VirtualClock();
  const server = new MemoryServer({ "server/discover": silent, initialize: silent });
  const error = await failure(clock.run(McpSession.open(optionsOf(clock, [server]))));
  assert.equal(error.code, "TIMEOUT");
  assert.match(error.message, /within 30s \(startup_timeout\)/);
  assert.match(error.hint ?? "", /may not be an MCP server/);
  assert.equal(clock.monotonic(), 30_000);
  assert.equal(server.ended, "rnix closed it");
});

Deno.test("[B03] the one limit covers the listing of tools too", async () => {
  const clock = new VirtualClock();
  const server = new MemoryServer({ "tools/list": silent });
  const error = await failure(clock.run(McpSession.open(optionsOf(clock, [server]))));
  assert.equal(error.code, "TIMEOUT");
  assert.match(error.message, /listing its tools within 30s/);
  assert.equal(server.ended, "rnix closed it");
});

Deno.test("[B05] a slow start within the limit is no failure", async () => {
  const clock = new VirtualClock();
  const { promise, resolve } = Promise.withResolvers<void>();
  const late: Responder = async () => {
    await promise;
    return { error: { code: -32601, message: "no" } };
  };
  const server = new MemoryServer({
    "server/discover": late,
    initialize: async () => {
      await promise;
      return {
        result: {
          protocolVersion: "2024-11-05",
          capabilities: {},
          serverInfo: { name: "x", version: "1" },
        },
      };
    },
  });
  clock.after(20_000, resolve);
  const session = await clock.run(McpSession.open(optionsOf(clock, [server])));
  assert.equal(session.protocolVersion, "2024-11-05");
});

Deno.test("[B65] a server without tools is not asked for any", async () => {
  const { server, session } = await opened({
    initialize: () => ({
      result: {
        protocolVersion: "2025-11-25",
        capabilities: {},
        serverInfo: { name: "x", version: "1" },
      },
    }),
  });
  assert.deepEqual(session.tools, []);
  assert.ok(!server.methods.includes("tools/list"));
  assert.deepEqual(await session.listResources(1000), []);
  assert.ok(!server.methods.includes("resources/list"));
});

Deno.test("[B65] method not found on the list of tools is an empty list", async () => {
  const { session } = await opened({
    "tools/list": () => ({ error: { code: -32601, message: "Method not found" } }),
  });
  assert.deepEqual(session.tools, []);
});

Deno.test("giving up the start closes the server", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const server = new MemoryServer({ initialize: silent });
  const start = McpSession.open(optionsOf(clock, [server], { signal: stop.signal }));
  start.catch(() => {});
  await settle();
  stop.abort();
  assert.match((await failure(start)).message, /given up/);
  assert.equal(server.ended, "rnix closed it");
  assert.equal(clock.pending, 0);
});

Deno.test("a call carries its idempotency key and a progress token", async () => {
  const { server, call } = await opened({ "tools/call": () => text("ok") });
  await call({ arguments: { a: 1 } });
  const request = server.received.at(-1);
  assert.ok(request !== undefined && "params" in request);
  const { _meta: meta, ...rest } = request.params ?? {};
  assert.deepEqual(rest, { name: "t", arguments: { a: 1 } });
  assert.equal(meta?.["rnix/idempotencyKey"], "run/t1.0");
  assert.equal(typeof meta?.["progressToken"], "number");
});

Deno.test("an error answer is a known outcome", async () => {
  for (const code of [-32601, -32602, -32000]) {
    const { call } = await opened({ "tools/call": () => ({ error: { code, message: "no" } }) });
    assert.deepEqual(await call(), { kind: "rpc-error", code, message: "no" });
  }
});

Deno.test("a result comes through whole, unknown members and blocks included", async () => {
  const result = {
    content: [{ type: "hologram", z: 1 }],
    isError: true,
    extra: { deep: [1] },
    structuredContent: 7,
  };
  const { call } = await opened({ "tools/call": () => ({ result }) });
  assert.deepEqual(await call(), { kind: "result", result });
});

Deno.test("[B01] a call without an answer ends at timeout as unknown, the server is told, both limits are named", async () => {
  const { clock, server, call } = await opened({ "tools/call": silent });
  const outcome = asUnknown(await clock.run(call()));
  assert.equal(outcome.cause, "timeout");
  assert.equal(clock.monotonic(), 30_000);
  assert.match(outcome.error.message, /timeout 30s without progress, max_timeout 10m in all/);
  await settle();
  assert.equal(server.methods.at(-1), "notifications/cancelled");
  assert.equal(clock.pending, 0);
});

function withProgress(everyMs: number, count: number, clockOf: () => VirtualClock): Responder {
  return (params, server) => {
    const meta = params["_meta"];
    const token = typeof meta === "object" && meta !== null && !Array.isArray(meta)
      ? meta["progressToken"]
      : undefined;
    for (let step = 1; step <= count; step += 1) {
      clockOf().after(everyMs * step, () =>
        server.deliver({
          jsonrpc: "2.0",
          method: "notifications/progress",
          params: { progressToken: Number(token), progress: step, message: `step ${step}` },
        }));
    }
    return undefined;
  };
}

Deno.test("progress re-arms the timeout and is told", async () => {
  const seen: string[] = [];
  const peer = await opened({ "tools/call": withProgress(20_000, 5, () => peer.clock) });
  const outcome = asUnknown(
    await peer.clock.run(peer.call({ onProgress: (message) => seen.push(message) })),
  );
  assert.equal(outcome.cause, "timeout");
  assert.equal(peer.clock.monotonic(), 5 * 20_000 + 30_000);
  assert.deepEqual(seen, ["step 1", "step 2", "step 3", "step 4", "step 5"]);
});

Deno.test("[B61] progress without end still stops at max_timeout", async () => {
  const peer = await opened({ "tools/call": withProgress(1_000, 2_000, () => peer.clock) });
  const outcome = asUnknown(await peer.clock.run(peer.call()));
  assert.equal(outcome.cause, "timeout");
  assert.equal(peer.clock.monotonic(), 600_000);
});

Deno.test("an answer after the timeout is still learned", async () => {
  const peer = await opened({
    "tools/call": async () => {
      await new Promise<void>((resolve) => peer.clock.after(45_000, resolve));
      return text("late");
    },
  });
  const outcome = asUnknown(await peer.clock.run(peer.call()));
  assert.deepEqual(await peer.clock.run(outcome.late), {
    kind: "result",
    result: { content: [{ type: "text", text: "late" }] },
  });
});

Deno.test("after the connection's end no late answer can come", async () => {
  const { clock, server, call } = await opened({ "tools/call": silent });
  const outcome = asUnknown(await clock.run(call()));
  server.die("it exited with code 0");
  assert.equal(await outcome.late, undefined);
});

Deno.test("[B63] cancelling one of two calls ends that one alone", async () => {
  const { clock, server, session, call } = await opened({
    "tools/call": (params) => {
      if (params["name"] === "slow") return undefined;
      return new Promise((resolve) => clock.after(1_000, () => resolve(text("fine"))));
    },
  });
  const stop = new AbortController();
  const slow = call({ tool: "slow", signal: stop.signal });
  const other = call();
  await settle();
  stop.abort();
  assert.equal(asUnknown(await clock.run(slow)).cause, "cancelled");
  assert.equal((await clock.run(other)).kind, "result");
  assert.equal(server.methods.filter((method) => method === "notifications/cancelled").length, 1);
  assert.ok(session.alive);
});

Deno.test("an answer within the grace after a cancellation is the outcome", async () => {
  const { clock, call } = await opened({
    "tools/call": () => new Promise((resolve) => clock.after(1_000, () => resolve(text("done")))),
  });
  const stop = new AbortController();
  const outcome = call({ signal: stop.signal });
  await settle();
  stop.abort();
  assert.equal((await clock.run(outcome)).kind, "result");
  assert.equal(clock.pending, 0);
});

Deno.test("a call that is cancelled before it is made is not sent", async () => {
  const { server, call } = await opened();
  const outcome = await call({ signal: AbortSignal.abort() });
  assert.equal(outcome.kind, "not-sent");
  assert.ok(!server.methods.includes("tools/call"));
});

Deno.test("a lost connection makes every pending call unknown, at once", async () => {
  const { clock, server, session, call } = await opened({ "tools/call": silent });
  const calls = [call(), call(), call()];
  await settle();
  server.die("it exited with code 9");
  const before = clock.monotonic();
  for (const outcome of await clock.run(Promise.all(calls))) {
    const { cause, error, late } = asUnknown(outcome);
    assert.equal(cause, "disconnected");
    assert.match(error.message, /lost during a call of "t": it exited with code 9/);
    assert.equal(await late, undefined);
  }
  assert.ok(clock.monotonic() - before <= 1_000);
  assert.equal(session.alive, false);
  assert.equal(await session.ended, "it exited with code 9");
});

Deno.test("[B45] a write that reached nobody is not sent, one that may have is unknown", async () => {
  const { server, call } = await opened();
  server.sendFailure = new SendError("closed its stdin", true);
  assert.deepEqual((await call()).kind, "not-sent");
  server.sendFailure = new SendError("closed its stdin", false);
  assert.equal(asUnknown(await call()).cause, "disconnected");
});

Deno.test("a call on an ended session is not sent and says that the connection is lost", async () => {
  const { server, call } = await opened();
  server.die("it exited with code 0");
  const outcome = await call();
  assert.ok(outcome.kind === "not-sent" && outcome.lost);
  assert.equal(outcome.error.code, "DEVICE_DISCONNECTED");
});

Deno.test("[B55] an id that comes back as text still finds its call", async () => {
  const peer = await opened({
    "tools/call": (_, server) => {
      const request = server.received.at(-1);
      const id = request !== undefined && "id" in request ? String(request.id) : "";
      server.deliver({ jsonrpc: "2.0", id, result: { content: [] } });
      return undefined;
    },
  });
  assert.equal((await peer.call()).kind, "result");
});

Deno.test("[B57] requests of the server are answered at once, none is promised and left open", async () => {
  const { server } = await opened();
  server.deliver({ jsonrpc: "2.0", id: "p", method: "ping" });
  server.deliver({ jsonrpc: "2.0", id: "r", method: "roots/list" });
  server.deliver({ jsonrpc: "2.0", id: "e", method: "elicitation/create", params: {} });
  await settle();
  await settle();
  const answers = server.received.filter((message) => !("method" in message));
  const has = (id: string) =>
    answers.some((answer) => "id" in answer && answer.id === id && "result" in answer);
  assert.deepEqual([answers.length, has("p"), has("r"), has("e")], [3, true, true, true]);
});

Deno.test("a server that asks during the probe is answered too", async () => {
  const clock = new VirtualClock();
  const server = new MemoryServer({
    "server/discover": (_, self) => {
      self.deliver({ jsonrpc: "2.0", id: 1, method: "ping" });
      self.deliver({ jsonrpc: "2.0", id: 2, method: "roots/list" });
      return { error: { code: -32601, message: "no" } };
    },
  });
  await clock.run(McpSession.open(optionsOf(clock, [server])));
  assert.deepEqual(
    server.received.filter((message) => !("method" in message)).map((each) => "result" in each),
    [true, true],
  );
});

Deno.test("news of changed tools are passed on, and the list can be asked again", async () => {
  let tools = [tool("a")];
  const { server, session } = await opened({ "tools/list": () => ({ result: { tools } }) });
  let told = 0;
  session.onToolsChanged = () => told += 1;
  tools = [tool("b")];
  server.deliver({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  await settle();
  assert.equal(told, 1);
  assert.deepEqual(await session.listTools(1_000), [tool("b")]);
});

Deno.test("closing a session twice is fine and leaves no timer", async () => {
  const { clock, session, server } = await opened({ "tools/call": silent });
  await Promise.all([session.close(), session.close()]);
  assert.equal(server.ended, "rnix closed it");
  assert.equal(clock.pending, 0);
});

Deno.test("an answer to initialize that doesn't fit the protocol is told in one line", async () => {
  const clock = new VirtualClock();
  const servers = [new MemoryServer({ initialize: () => ({ result: { x: 1 } }) })];
  const thrown = await clock.run(
    McpSession.open(optionsOf(clock, servers)).catch((reason: unknown) => reason),
  );
  assert.ok(thrown instanceof SysError);
  assert.match(
    thrown.message,
    /^Server "s" failed during the MCP handshake: its answer to initialize doesn't fit the protocol: protocolVersion: expected string.*$/,
  );
});

Deno.test("[B15] any answer to a probe is life, an error too, and any other message; only silence isn't", async () => {
  const { clock, server, session } = await opened({
    ping: () => ({ error: { code: -32601, message: "Method not found" } }),
  });
  assert.equal(await clock.run(session.probe("ping", 5_000)), "alive");
  assert.equal(server.methods.at(-1), "ping");
  assert.equal(await clock.run(session.probe("tools/list", 5_000)), "alive");
  const mute = await opened({ ping: silent });
  const began = mute.clock.monotonic();
  assert.equal(await mute.clock.run(mute.session.probe("ping", 5_000)), "silent");
  assert.equal(mute.clock.monotonic() - began, 5_000);
  const probe = mute.session.probe("ping", 5_000);
  mute.server.deliver({ jsonrpc: "2.0", method: "notifications/message", params: {} });
  assert.equal(await mute.clock.run(probe), "alive");
  mute.server.die("it exited with code 1");
  assert.equal(await mute.clock.run(mute.session.probe("ping", 5_000)), "silent");
});

Deno.test("a modern server is probed with server/discover, in its envelope", async () => {
  const { clock, server, session } = await opened(modern);
  assert.equal(await clock.run(session.probe("ping", 5_000)), "alive");
  const request = server.received.at(-1);
  assert.ok(request !== undefined && "method" in request);
  assert.equal(request.method, "server/discover");
  assert.equal(
    request.params?.["_meta"]?.["io.modelcontextprotocol/protocolVersion"],
    "2026-07-28",
  );
});

Deno.test("a session knows when it last heard of its server and what is on its way", async () => {
  const { clock, server, session, call } = await opened({ "tools/call": silent });
  const sinceMs = session.heardMs;
  await clock.advance(7_000);
  assert.equal(session.heardMs, sinceMs);
  server.deliver({ jsonrpc: "2.0", method: "notifications/message", params: {} });
  assert.equal(session.heardMs, clock.monotonic());
  const outcome = call();
  assert.deepEqual(session.inFlight, { open: 1, abandoned: 0 });
  asUnknown(await clock.run(outcome));
  assert.deepEqual(session.inFlight, { open: 0, abandoned: 1 });
});

Deno.test("[B63] a cancelled call names itself to the server, once, and no other", async () => {
  const { clock, server, call } = await opened({ "tools/call": silent });
  const stop = new AbortController();
  const [first, second] = [call({ signal: stop.signal }), call({ timeoutMs: 60_000 })];
  await settle();
  const ids = server.received.flatMap((message) =>
    "method" in message && message.method === "tools/call" && "id" in message ? [message.id] : []
  );
  stop.abort();
  assert.equal(asUnknown(await clock.run(first)).cause, "cancelled");
  const told = server.received.flatMap((message) =>
    "method" in message && message.method === "notifications/cancelled"
      ? [message.params?.["requestId"]]
      : []
  );
  assert.deepEqual(told, [ids[0]]);
  assert.equal(asUnknown(await clock.run(second)).cause, "timeout");
});

Deno.test("[B51] the limit of a listing holds over all of its pages", async () => {
  const clock = new VirtualClock();
  let page = 0;
  const slowly: Responder = async () => {
    if (page > 0) await sleep(clock, 4_000);
    page += 1;
    return {
      result: { tools: [tool(`t${page}`)], ...(page > 1 ? { nextCursor: `${page}` } : {}) },
    };
  };
  const server = new MemoryServer({ "tools/list": slowly });
  const session = await clock.run(McpSession.open(optionsOf(clock, [server])));
  const startMs = clock.monotonic();
  const error = await failure(clock.run(session.listTools(10_000)));
  assert.equal(error.code, "TIMEOUT");
  assert.equal(clock.monotonic() - startMs, 10_000);
  await clock.advance(60_000);
  assert.equal(server.methods.filter((method) => method === "tools/list").length, 4);
});
