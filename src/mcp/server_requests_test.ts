import assert from "node:assert/strict";
import { MemoryServer, tool } from "../../tests/doubles/mcp_connection.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { isJsonObject, type JsonObject } from "../base/json.ts";
import type { ElicitPolicy } from "../base/server_operations.ts";
import { Channel } from "./channel.ts";
import type { ToolCallOutcome } from "./exchange.ts";
import { INPUT_ROUNDS_MAX, ServerRequests } from "./server_requests.ts";
import { McpSession } from "./session.ts";

const FORM: JsonObject = {
  message: "Who are you?",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", default: "John" },
      age: { type: "integer", default: 30 },
      sure: { type: "boolean", default: false },
      note: { type: "string" },
    },
    required: ["name"],
  },
};

const elicit = (policy: ElicitPolicy, params: JsonObject = FORM) =>
  new ServerRequests(policy).answer("elicitation/create", params);

Deno.test("[B57] a server's requests are answered at once, before there is a client and beside one", () => {
  const server = new MemoryServer();
  const channel = new Channel(server);
  const ask = (id: number, method: string) => server.deliver({ jsonrpc: "2.0", id, method });
  ask(1, "ping");
  const seen: unknown[] = [];
  channel.lend().onmessage = (message) => seen.push(message);
  ask(2, "ping");
  ask(3, "roots/list");
  ask(4, "sampling/createMessage");
  ask(5, "tasks/list");
  assert.deepEqual(server.received, [
    { jsonrpc: "2.0", id: 1, result: {} },
    { jsonrpc: "2.0", id: 2, result: {} },
    { jsonrpc: "2.0", id: 3, result: { roots: [] } },
    {
      jsonrpc: "2.0",
      id: 4,
      error: { code: -1, message: "rnix asks no model on behalf of a server" },
    },
    {
      jsonrpc: "2.0",
      id: 5,
      error: { code: -32601, message: 'Method "tasks/list" is not known to rnix' },
    },
  ]);
  assert.deepEqual(seen, [], "the client never sees them, so it can't leave one open");
});

Deno.test("notifications are told and still reach the client", () => {
  const server = new MemoryServer();
  const channel = new Channel(server);
  const told: unknown[] = [];
  const seen: unknown[] = [];
  channel.onNotification = (method, params) => told.push([method, params]);
  channel.lend().onmessage = (message) => seen.push(message);
  server.deliver({ jsonrpc: "2.0", method: "notifications/message", params: { data: "x" } });
  assert.deepEqual(told, [["notifications/message", { data: "x" }]]);
  assert.equal(seen.length, 1);
});

Deno.test("[B59] a question for a person is declined where nobody can answer", () => {
  assert.deepEqual(elicit({ kind: "decline" }), { result: { action: "decline" } });
  assert.deepEqual(new ServerRequests().capabilities, {}, "nor is it announced that one can");
});

Deno.test("a form is accepted with its defaults, unless a field that it needs has none", () => {
  const policy: ElicitPolicy = { kind: "defaults" };
  assert.deepEqual(elicit(policy), {
    result: { action: "accept", content: { name: "John", age: 30, sure: false } },
  });
  const needy = { ...FORM, requestedSchema: { properties: { a: {} }, required: ["a"] } };
  assert.deepEqual(elicit(policy, needy), { result: { action: "decline" } });
  assert.deepEqual(new ServerRequests(policy).capabilities, { elicitation: { form: {} } });
});

Deno.test("a form is answered with the content given; an address is never opened", () => {
  const policy: ElicitPolicy = { kind: "content", content: { name: "Ann" } };
  assert.deepEqual(elicit(policy), { result: { action: "accept", content: { name: "Ann" } } });
  const url = { mode: "url", url: "https://example.com", message: "Log in", elicitationId: "e" };
  assert.deepEqual(elicit(policy, url), { result: { action: "decline" } });
});

/** A server of 2026-07-28 whose tool answers with these results, one after another. */
class AskingServer {
  readonly calls: JsonObject[] = [];
  readonly memory: MemoryServer;

  constructor(results: JsonObject[]) {
    this.memory = new MemoryServer({
      "server/discover": () => ({
        result: {
          resultType: "complete",
          ttlMs: 0,
          cacheScope: "private",
          supportedVersions: ["2026-07-28"],
          capabilities: { tools: {}, prompts: { listChanged: true }, logging: {} },
          serverInfo: { name: "asking", version: "1" },
        },
      }),
      "tools/list": () => ({
        result: { resultType: "complete", ttlMs: 0, cacheScope: "private", tools: [tool("t")] },
      }),
      "tools/call": (params) => this.#next(params, results),
      "prompts/get": (params) => this.#next(params, results),
      "resources/read": (params) => this.#next(params, results),
    });
  }

  /** The last result is given for ever; without any there is no answer. */
  #next(params: JsonObject, results: JsonObject[]) {
    this.calls.push(params);
    const result = results[Math.min(this.calls.length, results.length) - 1];
    return result === undefined ? undefined : { result };
  }

  async open(
    clock: VirtualClock,
    policy?: ElicitPolicy,
    more: { hearsAll?: boolean } = {},
  ): Promise<McpSession> {
    return await McpSession.open({
      server: "asking",
      startupTimeoutMs: 30_000,
      clock,
      connect: () => Promise.resolve(this.memory),
      clientInfo: { name: "test", version: "0" },
      requests: new ServerRequests(policy),
      ...more,
    });
  }
}

const ASKS = (more: JsonObject = {}): JsonObject => ({
  resultType: "input_required",
  inputRequests: {
    who: { method: "elicitation/create", params: FORM },
    where: { method: "roots/list", params: {} },
  },
  ...more,
});

const DONE: JsonObject = { resultType: "complete", content: [{ type: "text", text: "done" }] };

const CALL = {
  tool: "t",
  arguments: { a: 1 },
  callId: "t1.1",
  idempotencyKey: "run/t1.1",
  signal: new AbortController().signal,
  cancelGraceMs: 2_000,
  timeoutMs: 30_000,
  maxTimeoutMs: 60_000,
};

async function called(session: McpSession, clock: VirtualClock): Promise<ToolCallOutcome> {
  const outcome = session.callTool(CALL);
  for (let pauses = 0; pauses <= INPUT_ROUNDS_MAX; pauses += 1) {
    await settle();
    await clock.advance(250);
  }
  return await outcome;
}

Deno.test("[B59] a call that asks for input goes again with it, its state as it came, under the same key", async () => {
  const clock = new VirtualClock();
  const server = new AskingServer([ASKS({ requestState: "s\u0000 =1" }), ASKS(), DONE]);
  const session = await server.open(clock, { kind: "defaults" });
  const outcome = await called(session, clock);
  assert.deepEqual(outcome, { kind: "result", result: DONE });
  const [first, second, third] = server.calls;
  const inputResponses = {
    who: { action: "accept", content: { name: "John", age: 30, sure: false } },
    where: { roots: [] },
  };
  assert.equal(first?.["inputResponses"], undefined);
  assert.deepEqual(second?.["inputResponses"], inputResponses);
  assert.equal(second?.["requestState"], "s\u0000 =1");
  assert.deepEqual(third?.["inputResponses"], inputResponses);
  assert.ok(!Object.hasOwn(third ?? {}, "requestState"), "a state that wasn't given isn't sent");
  for (const call of server.calls) {
    assert.deepEqual([call["name"], call["arguments"]], ["t", { a: 1 }]);
    assert.match(JSON.stringify(call["_meta"]), /"rnix\/idempotencyKey":"run\/t1\.1"/);
  }
  await session.close();
});

Deno.test("a state alone is sent back after a pause", async () => {
  const clock = new VirtualClock();
  const server = new AskingServer([{ resultType: "input_required", requestState: "later" }, DONE]);
  const session = await server.open(clock);
  assert.deepEqual(await called(session, clock), { kind: "result", result: DONE });
  assert.equal(server.calls[1]?.["requestState"], "later");
  await session.close();
});

Deno.test("[B59] input that can't be given ends the call at once: nothing is sent again", async () => {
  const clock = new VirtualClock();
  const asked = ASKS({ inputRequests: { m: { method: "sampling/createMessage", params: {} } } });
  const server = new AskingServer([asked]);
  const session = await server.open(clock, { kind: "defaults" });
  assert.deepEqual(await called(session, clock), { kind: "result", result: asked });
  assert.equal(server.calls.length, 1);
  await session.close();
});

Deno.test("a server that asks for ever is answered only so often", async () => {
  const clock = new VirtualClock();
  const server = new AskingServer([ASKS()]);
  const session = await server.open(clock);
  assert.deepEqual(await called(session, clock), { kind: "result", result: ASKS() });
  assert.equal(server.calls.length, 1 + INPUT_ROUNDS_MAX);
  await session.close();
});

Deno.test("a connection lost between two rounds leaves the outcome unknown, though nothing of the second was sent", async () => {
  const clock = new VirtualClock();
  const server = new AskingServer([{ resultType: "input_required", requestState: "later" }]);
  const session = await server.open(clock);
  const outcome = session.callTool(CALL);
  await settle();
  server.memory.die("it exited with code 1");
  await clock.advance(250);
  const { kind, ...rest } = await outcome;
  assert.equal(kind, "unknown");
  assert.equal("cause" in rest && rest.cause, "disconnected");
  await session.close();
});

Deno.test("a cancelled call isn't sent again, whatever the server asks for then", async () => {
  const clock = new VirtualClock();
  const server = new AskingServer([]);
  const session = await server.open(clock);
  const cancel = new AbortController();
  const outcome = session.callTool({ ...CALL, signal: cancel.signal });
  await settle();
  const before = server.memory.methods.filter((method) => method === "tools/call").length;
  const id =
    server.memory.received.flatMap((message) =>
      "method" in message && message.method === "tools/call" && "id" in message ? message.id : []
    ).at(0) ?? 0;
  cancel.abort();
  server.memory.deliver({ jsonrpc: "2.0", id, result: ASKS() });
  assert.deepEqual(await outcome, { kind: "result", result: ASKS() }, "the call was not completed");
  await clock.advance(10_000);
  const after = server.memory.methods.filter((method) => method === "tools/call").length;
  assert.deepEqual([before, after], [1, 1]);
  await session.close();
});

Deno.test("other requests go on the same way", async () => {
  const clock = new VirtualClock();
  const messages = { resultType: "complete", messages: [] };
  const server = new AskingServer([ASKS({ requestState: "p" }), messages]);
  const session = await server.open(clock);
  const answer = await session.request({
    method: "prompts/get",
    params: { name: "p" },
    limitMs: 1_000,
  });
  assert.deepEqual(answer, { kind: "result", result: messages });
  assert.deepEqual(server.calls[1]?.["inputResponses"], {
    who: { action: "decline" },
    where: { roots: [] },
  });
  await session.close();
});

Deno.test("a resource that asks for input gets what there is, else reading it fails with the reason", async () => {
  const clock = new VirtualClock();
  const contents: JsonObject = { resultType: "complete", contents: [{ uri: "x:", text: "hello" }] };
  const server = new AskingServer([ASKS({ requestState: "r" }), contents]);
  const session = await server.open(clock);
  assert.deepEqual(await session.readResource("x:", 1_000), contents);
  assert.equal(server.calls[1]?.["requestState"], "r");
  const other = new AskingServer([
    ASKS({ inputRequests: { m: { method: "sampling/createMessage", params: {} } } }),
  ]);
  const second = await other.open(clock);
  await assert.rejects(second.readResource("x:", 1_000), /asks for input before it gives "x:"/);
  await Promise.all([session.close(), second.close()]);
});

Deno.test("a server that refuses the probe by its version is asked once more and is a modern one", async () => {
  const clock = new VirtualClock();
  const server = new AskingServer([DONE]);
  let refused = 0;
  const send = server.memory.send.bind(server.memory);
  server.memory.send = async (message) => {
    if (!("method" in message) || message.method !== "server/discover" || refused++ > 0) {
      return await send(message);
    }
    const id = "id" in message ? message.id ?? 0 : 0;
    const data = { supported: ["2026-07-28"], requested: "x" };
    const error = { code: -32022, message: "Unsupported protocol version", data };
    queueMicrotask(() => server.memory.deliver({ jsonrpc: "2.0", id, error }));
  };
  const session = await server.open(clock);
  assert.deepEqual([session.era, refused], ["modern", 2]);
  assert.equal(server.memory.methods.includes("initialize"), false);
  await session.close();
});

Deno.test("who hears all is told of every list and of the log, else a modern server keeps them to itself", async () => {
  for (const hearsAll of [true, false]) {
    const clock = new VirtualClock();
    const server = new AskingServer([DONE]);
    const session = await server.open(clock, undefined, { hearsAll });
    await called(session, clock);
    await session.request({ method: "prompts/get", params: { name: "p" }, limitMs: 1_000 });
    const level = server.calls.map(({ _meta }) =>
      isJsonObject(_meta) ? _meta["io.modelcontextprotocol/logLevel"] : undefined
    );
    assert.deepEqual(level, hearsAll ? ["info", "info"] : [undefined, undefined]);
    const listened = JSON.stringify(server.memory.received).includes("promptsListChanged");
    assert.equal(listened, hearsAll);
    await session.close();
  }
});
