/** HTTP+SSE of 2024-11-05: the address comes first, the stream's end is the connection's. */
import assert from "node:assert/strict";
import { FedStream, HttpRequesterDouble } from "../../tests/doubles/http_requester.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { SendError } from "./connection.ts";
import { RequestFailure } from "./http_client.ts";
import { SseTransport } from "./sse_transport.ts";
import { StderrLog } from "./stderr_log.ts";

type Post = () => Response | Promise<Response>;

const accepted: Post = () => new Response(null, { status: 202 });

async function started(post: Post = accepted, get?: () => Response) {
  const clock = new VirtualClock();
  const streams: FedStream[] = [];
  const requester = new HttpRequesterDouble(({ method, signal }) => {
    if (method !== "GET") return post();
    if (get !== undefined) return get();
    const stream = new FedStream(signal);
    streams.push(stream);
    return stream.response;
  });
  const launch = { server: "s", transport: "sse" as const, url: "http://a.test/sse", headers: {} };
  const limits = { env: {}, startupTimeoutMs: 1, timeoutMs: 1, maxTimeoutMs: 1 };
  const transport = new SseTransport({ ...launch, ...limits }, requester, {
    clock,
    log: new StderrLog(),
  });
  const messages: unknown[] = [];
  const lost: (string | number)[] = [];
  let closed = 0;
  transport.onmessage = (message) => messages.push(message);
  transport.onlost = (id) => lost.push(id);
  transport.onclose = () => closed += 1;
  await transport.start();
  await settle();
  const call = (id = 1) => transport.send({ jsonrpc: "2.0", id, method: "tools/call" });
  const close = async () => {
    await clock.run(transport.close());
    assert.equal(closed, 1);
    assert.equal(clock.pending, 0);
    assert.ok(requester.closed && streams.every((stream) => stream.over));
  };
  const put = async (text: string) => {
    streams[0]?.put(text);
    await settle();
  };
  return { clock, transport, requester, streams, messages, lost, call, close, put };
}

const ENDPOINT = "event: endpoint\ndata: /messages?session=1\n\n";

async function refused(work: Promise<void>): Promise<SendError> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof SendError, String(thrown));
  return thrown;
}

Deno.test("messages wait for the address; answers come on the stream", async () => {
  const { call, requester, put, messages, close } = await started();
  const sent = call();
  await settle();
  assert.equal(requester.of("POST").length, 0);
  await put(ENDPOINT);
  await sent;
  assert.equal(requester.of("POST").length, 1);
  await put(`data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n`);
  assert.equal(messages.length, 1);
  await close();
});

Deno.test("the end of the stream is the end of the connection; a call that was accepted is not told as unsent", async () => {
  for (const how of ["end", "break"] as const) {
    const { call, streams, put, transport, close } = await started();
    await put(ENDPOINT);
    await call();
    streams[0]?.[how]("reset");
    await settle();
    assert.match(transport.ended ?? "", /its event stream ended/);
    assert.ok((await refused(call(2))).nothingSent);
    await close();
  }
});

Deno.test("a POST that is on its way when the stream ends is unknown", async () => {
  const { call, streams, put, close } = await started(() => new Promise(() => {}));
  await put(ENDPOINT);
  const sending = refused(call());
  await settle();
  streams[0]?.end();
  assert.ok(!(await sending).nothingSent);
  await close();
});

Deno.test("no message goes to another origin, nor anywhere before there is an address", async () => {
  const { call, put, requester, transport, close } = await started();
  const sending = refused(call());
  await put("event: endpoint\ndata: http://b.test/steal\n\n");
  assert.ok((await sending).nothingSent);
  assert.equal(transport.ended, "it wants messages sent to another origin: http://b.test");
  assert.equal(requester.of("POST").length, 0);
  await close();
});

Deno.test("a POST that is refused, breaks off or finds no session concerns its call; what it proves is told", async () => {
  const outcomes: [Post, boolean, string | undefined][] = [
    [() => new Response(null, { status: 500 }), false, undefined],
    [() => new Response(null, { status: 429 }), true, undefined],
    [() => new Response(null, { status: 404 }), true, "SESSION_EXPIRED"],
    [() => new Response(null, { status: 401 }), true, "UNAUTHENTICATED"],
    [() => Promise.reject(new RequestFailure("reset", false)), false, undefined],
    [() => Promise.reject(new TypeError("a fault of the runtime")), false, undefined],
  ];
  for (const [post, nothingSent, endedCode] of outcomes) {
    const { call, put, lost, transport, clock, close } = await started(post);
    await put(ENDPOINT);
    assert.equal((await refused(call(4))).nothingSent, nothingSent);
    await clock.advance(1_000);
    assert.equal(transport.endedCode, endedCode);
    assert.deepEqual(lost, [4]);
    await close();
  }
});

Deno.test("a GET that gives no stream ends the connection with the reason", async () => {
  for (
    const [get, reason] of [
      [() => new Response("nobody here", { status: 404 }), /HTTP 404 \(nobody here\) to a GET/],
      [() => new Response("{}", { status: 200 }), /no stream of events/],
      [() => {
        throw new RequestFailure("it can't be reached: refused", true);
      }, /can't be reached/],
    ] as const
  ) {
    const { transport, call, close } = await started(accepted, get);
    assert.match(transport.ended ?? "", reason);
    assert.ok((await refused(call())).nothingSent);
    await close();
  }
});
