import assert from "node:assert/strict";
import { MemoryServer } from "../../tests/doubles/mcp_connection.ts";
import { settle } from "../../tests/doubles/virtual_clock.ts";
import { Channel } from "./channel.ts";
import { SendError } from "./connection.ts";

const silent = { ask: () => undefined };

Deno.test("an answer without a sense is still an answer", async () => {
  const server = new MemoryServer(silent);
  const channel = new Channel(server);
  const odd = channel.request("ask", {});
  server.onmessage?.(JSON.parse('{"jsonrpc":"2.0","id":"rnix-1","error":null}'));
  assert.deepEqual(await odd.answer, { kind: "rpc-error", code: 0, message: "no message" });
});

Deno.test("an abandoned request's answer goes to its waiter, not to the client", async () => {
  const server = new MemoryServer(silent);
  const channel = new Channel(server);
  const seen: unknown[] = [];
  channel.lend().onmessage = (message) => seen.push(message);
  const request = channel.request("ask", {});
  request.abandon();
  request.abandon();
  server.deliver({ jsonrpc: "2.0", id: "rnix-1", result: { a: 1 } });
  assert.deepEqual(await request.answer, { kind: "result", result: { a: 1 } });
  assert.deepEqual(seen, []);
  server.deliver({ jsonrpc: "2.0", id: "rnix-1", result: { a: 2 } });
  assert.deepEqual(seen, [], "a second answer is nobody's");
});

Deno.test("only so many abandoned requests are remembered; the oldest give way", async () => {
  const server = new MemoryServer(silent);
  const channel = new Channel(server);
  const requests = Array.from({ length: 1_001 }, () => channel.request("ask", {}));
  for (const request of requests) request.abandon();
  assert.equal(await requests[0]?.answer, undefined);
  server.deliver({ jsonrpc: "2.0", id: "rnix-1001", result: {} });
  assert.deepEqual(await requests[1_000]?.answer, { kind: "result", result: {} });
});

Deno.test("the end of the connection ends every wait, those begun later too, and is told once", async () => {
  const server = new MemoryServer(silent);
  const channel = new Channel(server);
  let ends = 0;
  let closes = 0;
  channel.onEnd = () => ends += 1;
  channel.lend().onclose = () => closes += 1;
  const request = channel.request("ask", {});
  server.die("gone");
  assert.equal(await request.answer, undefined);
  const late = channel.request("ask", {});
  assert.equal(await late.answer, undefined);
  await assert.rejects(() => late.sent);
  assert.deepEqual([ends, closes], [1, 1]);
});

Deno.test("a request that the client refuses to make was not sent", async () => {
  const channel = new Channel(new MemoryServer());
  const tracked = channel.track(() => Promise.reject(new Error("not connected")));
  await assert.rejects(() => tracked.sent, /not connected/);
  assert.equal(await tracked.answer, undefined);
});

Deno.test("text that only looks like a number finds no call", async () => {
  const server = new MemoryServer(silent);
  const channel = new Channel(server);
  const lent = channel.lend();
  const tracked = channel.track(() => lent.send({ jsonrpc: "2.0", id: 7, method: "ask" }));
  let answered = false;
  tracked.answer.then(() => answered = true);
  for (const id of ["07", "7.0", " 7", "0x7"]) server.deliver({ jsonrpc: "2.0", id, result: {} });
  await settle();
  assert.equal(answered, false);
  server.deliver({ jsonrpc: "2.0", id: "7", result: {} });
  await settle();
  assert.equal(answered, true);
});

Deno.test("what nobody waits for is told to the connection; an answer of that kind goes no further", async () => {
  const told: (string | undefined)[] = [];
  const server = Object.assign(new MemoryServer(silent), {
    unwanted: (note?: string) => void told.push(note),
  });
  const channel = new Channel(server);
  const seen: unknown[] = [];
  const client = channel.lend();
  client.onmessage = (message) => seen.push(message);
  await client.send({ jsonrpc: "2.0", id: 7, method: "ask" });
  const tracked = channel.request("ask", {});
  const progress = (progressToken: string | number) => {
    server.deliver({
      jsonrpc: "2.0",
      method: "notifications/progress",
      params: { progressToken, progress: 1 },
    });
  };
  server.deliver({ jsonrpc: "2.0", id: "7", result: {} });
  progress("rnix-1");
  server.deliver({ jsonrpc: "2.0", id: "rnix-1", result: {} });
  await tracked.answer;
  assert.deepEqual([told, seen.length], [[], 2], "all of this was wanted");
  progress("rnix-1");
  server.deliver({ jsonrpc: "2.0", method: "notifications/message", params: {} });
  server.deliver({ jsonrpc: "2.0", id: "s1", method: "ping" });
  assert.deepEqual([told, seen.length], [[undefined, undefined, undefined], 4]);
  server.deliver({ jsonrpc: "2.0", id: 7, result: {} });
  server.deliver({ jsonrpc: "2.0", id: "1007", error: { code: 1, message: "x" } });
  assert.equal(seen.length, 4);
  assert.match(told[3] ?? "", /^An answer came that no request waited for/);
  assert.equal(told[4], told[3], "so that the log has it once");
});

Deno.test("what is on its way is counted: awaited, given up, and not the channel's own", async () => {
  const server = new MemoryServer(silent);
  const channel = new Channel(server);
  const lent = channel.lend();
  const counts = () => [channel.open, channel.abandoned];
  const track = (id: number) =>
    channel.track(() => lent.send({ jsonrpc: "2.0", id, method: "ask" }));
  channel.request("ask", {});
  const [first, second] = [track(1), track(2)];
  assert.deepEqual(counts(), [2, 0]);
  first.abandon();
  assert.deepEqual(counts(), [1, 1]);
  server.deliver({ jsonrpc: "2.0", id: 1, result: {} });
  server.deliver({ jsonrpc: "2.0", id: 2, result: {} });
  await Promise.all([first.answer, second.answer]);
  assert.deepEqual(counts(), [0, 0]);
  server.sendFailure = new SendError("closed its stdin", true);
  assert.equal(await track(3).answer, undefined, "what was not sent has no answer");
  assert.deepEqual(counts(), [0, 0]);
  server.sendFailure = new SendError("closed its stdin", false);
  track(4);
  await settle();
  assert.deepEqual(counts(), [1, 0], "it may have come through");
});

Deno.test("traffic is any message, also one that nobody wants", () => {
  const server = new MemoryServer(silent);
  const channel = new Channel(server);
  let heard = 0;
  channel.onTraffic = () => heard += 1;
  server.deliver({ jsonrpc: "2.0", method: "notifications/message", params: {} });
  server.deliver({ jsonrpc: "2.0", id: 77, result: {} });
  server.deliver({ jsonrpc: "2.0", id: "s", method: "ping" });
  assert.equal(heard, 3);
});
