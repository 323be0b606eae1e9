/** Flights over Streamable HTTP: answered on whatever stream, resumed, lost; the GET reopened with measure; one way out. */
import assert from "node:assert/strict";
import {
  FedStream,
  HttpRequesterDouble,
  type SeenRequest,
} from "../../tests/doubles/http_requester.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { SysError } from "../base/errors.ts";
import { SendError } from "./connection.ts";
import { RequestFailure } from "./http_client.ts";
import { HttpTransport } from "./http_transport.ts";
import { StderrLog } from "./stderr_log.ts";

type Answering = (request: SeenRequest) => Response | Promise<Response>;

const SESSION = { "mcp-session-id": "session-1" };

function json(message: object, headers: { [name: string]: string } = {}): Response {
  return Response.json({ jsonrpc: "2.0", ...message }, { headers });
}

/** What a plain server answers to everything but calls. */
function plain({ method, message }: SeenRequest): Response {
  if (method === "GET") return new Response(null, { status: 405 });
  if (method === "DELETE" || message?.id === undefined) return new Response(null, { status: 202 });
  return json({ id: message.id, result: {} }, message.method === "initialize" ? SESSION : {});
}

class Stage {
  readonly clock = new VirtualClock();
  readonly requester: HttpRequesterDouble;
  readonly transport: HttpTransport;
  readonly messages: unknown[] = [];
  readonly lost: [id: string | number, why: string][] = [];
  closed = 0;

  constructor(onCall: Answering, other: Answering = plain) {
    const isCall = ({ message }: SeenRequest) => message?.method === "tools/call";
    this.requester = new HttpRequesterDouble((request) =>
      isCall(request) ? onCall(request) : other(request)
    );
    this.transport = new HttpTransport(
      {
        server: "s",
        transport: "http",
        url: "http://a.test/mcp",
        headers: { Authorization: "Bearer of-the-test" },
        env: {},
        startupTimeoutMs: 1,
        timeoutMs: 1,
        maxTimeoutMs: 1,
      },
      this.requester,
      { clock: this.clock, log: new StderrLog() },
    );
    this.transport.onmessage = (message) => this.messages.push(message);
    this.transport.onlost = (id, why) => this.lost.push([id, why]);
    this.transport.onclose = () => this.closed += 1;
  }

  async connected(): Promise<this> {
    await this.request("initialize", 0);
    this.transport.setProtocolVersion("2025-11-25");
    await this.transport.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    this.messages.length = 0;
    return this;
  }

  request(method: string, id: number): Promise<void> {
    return this.transport.send({ jsonrpc: "2.0", id, method });
  }

  call(id = 1): Promise<void> {
    return this.request("tools/call", id);
  }

  /** Closes, and sees that nothing is left. */
  async close(): Promise<void> {
    await this.clock.run(this.transport.close());
    await settle();
    assert.equal(this.closed, 1);
    assert.equal(this.clock.pending, 0);
    assert.ok(this.requester.closed);
    assert.ok(
      this.requester.seen.every(({ method, signal }) =>
        method === "DELETE" || signal.aborted || method === "POST"
      ),
    );
  }
}

async function refused(work: Promise<void>): Promise<SendError> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof SendError, String(thrown));
  return thrown;
}

Deno.test("what only asks shares connections, a call only where its caller would make it again", async () => {
  const stage = await new Stage(plain).connected();
  await stage.call();
  await stage.transport.send({ jsonrpc: "2.0", id: 2, method: "tools/call" }, { repeatable: true });
  await stage.request("tools/list", 3);
  await stage.close();
  const shared = (what: string) => stage.requester.of(what).map((request) => request.shared);
  assert.deepEqual(shared("tools/call"), [false, true]);
  assert.deepEqual([shared("initialize"), shared("tools/list")], [[false], [true]]);
});

Deno.test("headers, session and version go with every request once they are known; the session ends with DELETE", async () => {
  const stage = await new Stage(plain).connected();
  await stage.call();
  await stage.close();
  const [initialize, initialized, get, call, end] = stage.requester.seen;
  assert.ok(initialize && initialized && get && call && end);
  assert.deepEqual(
    [initialize.headers.get("mcp-session-id"), initialize.headers.get("mcp-protocol-version")],
    [null, null],
  );
  for (const { headers } of [initialized, get, call, end]) {
    assert.equal(headers.get("mcp-session-id"), "session-1");
    assert.equal(headers.get("mcp-protocol-version"), "2025-11-25");
    assert.equal(headers.get("authorization"), "Bearer of-the-test");
  }
  assert.deepEqual(stage.requester.seen.map(({ method }) => method), [
    ...["POST", "POST", "GET", "POST", "DELETE"],
  ]);
});

Deno.test("events of any kind come before the answer, and a batch counts one by one", async () => {
  let stream: FedStream | undefined;
  const stage = new Stage(({ signal }) => (stream = new FedStream(signal)).response);
  await stage.call();
  stream?.put(": hello\n\nevent: other\ndata: {}\n\ndata: no json\n\n");
  stream?.message({ method: "notifications/message", params: {} });
  stream?.put(`data: [{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":{}}]\n\n`);
  stream?.end();
  await settle();
  assert.equal(stage.messages.length, 3);
  assert.deepEqual(stage.lost, []);
  await stage.close();
});

Deno.test("[B23] a stream without ids that ends or breaks before the answer loses it at once; the connection goes on", async () => {
  for (const how of ["end", "break"] as const) {
    let stream: FedStream | undefined;
    const stage = new Stage(({ signal }) => (stream = new FedStream(signal)).response);
    await stage.call(7);
    stream?.[how]("reset");
    await settle();
    assert.equal(stage.lost.length, 1);
    assert.equal(stage.lost[0]?.[0], 7);
    assert.equal(stage.transport.ended, undefined);
    await stage.request("ping", 8);
    assert.equal(stage.messages.length, 1);
    await stage.close();
  }
});

Deno.test("a stream with ids is resumed by GET after the server's pause, from the last id, and the call made once", async () => {
  const streams: FedStream[] = [];
  const open: Answering = ({ signal }) => {
    const stream = new FedStream(signal);
    streams.push(stream);
    return stream.response;
  };
  const stage = new Stage(
    open,
    (request) => request.method === "GET" ? open(request) : plain(request),
  );
  await stage.call();
  streams[0]?.put("id: e1\nretry: 500\ndata:\n\n");
  streams[0]?.end();
  await stage.clock.advance(499);
  assert.equal(stage.requester.of("GET").length, 0);
  await stage.clock.advance(1);
  assert.equal(stage.requester.of("GET")[0]?.headers.get("last-event-id"), "e1");
  streams[1]?.message({ id: 1, result: {} }, "id: e2\n");
  await settle();
  assert.equal(stage.messages.length, 1);
  assert.deepEqual(stage.lost, []);
  await stage.clock.advance(60_000);
  assert.ok(streams[1]?.over, "the stream doesn't outlive its answer for long");
  assert.equal(stage.requester.of("tools/call").length, 1);
  await stage.close();
});

Deno.test("resuming has an end: where the server gives no stream, or nothing ever comes of it", async () => {
  const cut: Answering = ({ signal }) => {
    const stream = new FedStream(signal);
    stream.put("id: e1\nretry: 0\ndata:\n\n");
    stream.end();
    return stream.response;
  };
  const gone: Answering = () => new Response(null, { status: 405 });
  for (const [get, why] of [[gone, /doesn't resume it$/], [cut, /ended without it$/]] as const) {
    const stage = new Stage(
      cut,
      (request) => request.method === "GET" ? get(request) : plain(request),
    );
    await stage.call();
    await stage.clock.advance(120_000);
    assert.equal(stage.lost.length, 1);
    assert.match(stage.lost[0]?.[1] ?? "", why);
    assert.ok(stage.requester.of("GET").length <= 8);
    assert.equal(stage.clock.pending, 0);
    await stage.close();
  }
});

Deno.test("a call that was given up isn't resumed, and its late answer still comes", async () => {
  const streams: FedStream[] = [];
  const stage = new Stage(({ signal }) => {
    const stream = new FedStream(signal);
    streams.push(stream);
    return stream.response;
  });
  await stage.call(1);
  await stage.call(2);
  for (const requestId of [1, 2]) {
    await stage.transport.send({
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId },
    });
  }
  streams[0]?.put("id: e1\ndata:\n\n");
  streams[0]?.end();
  streams[1]?.message({ id: 2, result: {} });
  await stage.clock.advance(60_000);
  assert.equal(stage.requester.of("GET").length, 0);
  assert.deepEqual(stage.lost.map(([id]) => id), [1]);
  assert.equal(stage.messages.length, 1);
  await stage.close();
});

Deno.test("[B63] a request whose own signal aborts ends its stream and no other", async () => {
  const streams: FedStream[] = [];
  const stage = new Stage(({ signal }) => {
    const stream = new FedStream(signal);
    streams.push(stream);
    return stream.response;
  });
  const stop = new AbortController();
  await stage.transport.send({ jsonrpc: "2.0", id: 1, method: "tools/call" }, {
    requestSignal: stop.signal,
  });
  await stage.call(2);
  stop.abort();
  await settle();
  assert.deepEqual([streams[0]?.over, streams[1]?.over], [true, false]);
  assert.deepEqual(stage.lost.map(([id]) => id), [1]);
  await stage.close();
});

Deno.test("[B19] an unknown session ends the connection; each call in flight that is refused too is proven not to have run", async () => {
  const answers: ((response: Response) => void)[] = [];
  const stage = await new Stage(() => new Promise((resolve) => answers.push(resolve))).connected();
  const calls = [1, 2, 3].map((id) => refused(stage.call(id)));
  await settle();
  const refusal = () => new Response(null, { status: 404 });
  answers[0]?.(refusal());
  await settle();
  assert.equal(stage.transport.endedCode, "SESSION_EXPIRED");
  assert.equal(stage.closed, 0);
  answers[1]?.(refusal());
  await stage.clock.advance(800);
  assert.equal(stage.closed, 1);
  const proven = (await Promise.all(calls)).map((error) => error.nothingSent);
  assert.deepEqual(proven, [true, true, false]);
  assert.ok((await refused(stage.call(4))).nothingSent);
  assert.equal(stage.requester.of("DELETE").length, 0);
  await stage.close();
});

Deno.test("[B11] calls to a server that can't be reached each learn that nothing was sent", async () => {
  const fails: ((reason: unknown) => void)[] = [];
  const stage = new Stage(() => new Promise((_, reject) => fails.push(reject)));
  const calls = Array.from({ length: 20 }, (_, id) => refused(stage.call(id)));
  await settle();
  for (const fail of fails) fail(new RequestFailure("it can't be reached: refused", true));
  assert.ok((await Promise.all(calls)).every((error) => error.nothingSent));
  assert.equal(stage.transport.ended, "it can't be reached: refused");
  await settle();
  assert.equal(stage.closed, 1);
  await stage.close();
});

Deno.test("what stands in the way of a server is what the hint is about, else the server", async () => {
  for (
    const [told, shown] of [["Check the proxy", /^Check the proxy$/], [undefined, /url/]] as const
  ) {
    const stage = new Stage(() => {
      throw new RequestFailure("it can't be reached: refused", true, told);
    });
    await refused(stage.call(1));
    assert.match(stage.transport.hint, shown);
    await stage.close();
  }
});

Deno.test("a request that broke off concerns itself alone: unknown, and the connection goes on", async () => {
  const stage = new Stage(() => {
    throw new RequestFailure("the request broke off: reset", false);
  });
  assert.ok(!(await refused(stage.call(1))).nothingSent);
  assert.deepEqual(stage.lost.map(([id]) => id), [1]);
  assert.equal(stage.transport.ended, undefined);
  await stage.close();
});

Deno.test("whatever goes wrong inside once a call was on its way is never told as not sent", async () => {
  const stage = new Stage(() => {
    throw new TypeError("a fault of the runtime");
  });
  assert.ok(!(await refused(stage.call(1))).nothingSent);
  await stage.close();
});

Deno.test("[A09] statuses: some refuse a call, some leave it unknown, a body with its id answers it", async () => {
  const status = async (code: number, body: object | string = "") => {
    const text = typeof body === "string" ? body : JSON.stringify({ jsonrpc: "2.0", ...body });
    const stage = await new Stage(() => new Response(text, { status: code })).connected();
    const outcome = await stage.call(5).then(() => "answered", (error) => error.nothingSent);
    assert.equal(stage.lost.length, outcome === "answered" ? 0 : 1);
    await stage.close();
    return outcome;
  };
  assert.equal(await status(503), false);
  assert.equal(
    await status(500, { id: null, error: { code: -32603, message: "retryable" } }),
    false,
  );
  assert.equal(await status(429), true);
  assert.equal(await status(400), false);
  assert.equal(await status(400, { id: 5, error: { code: -32602, message: "no" } }), "answered");
  assert.equal(await status(500, { id: 5, error: { code: -32603, message: "no" } }), "answered");
  assert.equal(await status(202), false);
  assert.equal(await status(200, "<html>"), false);
});

Deno.test("401 ends the connection with what is asked for; Retry-After is remembered as long as it holds", async () => {
  const login = new Stage(() =>
    new Response(null, { status: 401, headers: { "www-authenticate": 'Bearer realm="r"' } })
  );
  const error = await refused(login.call());
  assert.ok(error.cause instanceof SysError && error.cause.code === "UNAUTHENTICATED");
  assert.equal(login.transport.endedCode, "UNAUTHENTICATED");
  assert.match(login.transport.ended ?? "", /HTTP 401 \(Bearer, realm "r"\)/);
  await login.close();
  const headers = [{ "retry-after": "90" }, {
    "retry-after": new Date(new VirtualClock().now() + 90_000).toUTCString(),
  }];
  for (const given of headers) {
    const busy = new Stage(() => new Response(null, { status: 503, headers: given }));
    await refused(busy.call());
    assert.equal(busy.transport.retryAfterMs, 90_000);
    await busy.clock.advance(30_000);
    assert.equal(busy.transport.retryAfterMs, 60_000);
    await busy.clock.advance(60_000);
    assert.equal(busy.transport.retryAfterMs, undefined);
    await busy.close();
  }
});

Deno.test("[B47] a body over the cap is read no further: the call is unknown", async () => {
  let pulled = 0;
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulled += 1;
        controller.enqueue(new Uint8Array(1024 * 1024).fill(0x20));
      },
    });
  const stage = new Stage(() =>
    new Response(endless(), { headers: { "content-type": "application/json" } })
  );
  const error = await refused(stage.call());
  assert.ok(!error.nothingSent);
  assert.match(error.message, /over 16777216 bytes/);
  assert.ok(pulled < 20);
  await stage.close();
});

Deno.test("[B13] the GET is reopened after clean ends, in pauses that grow, and is no matter of the connection", async () => {
  const streams: FedStream[] = [];
  const stage = await new Stage(plain, (request) => {
    if (request.method !== "GET") return plain(request);
    const stream = new FedStream(request.signal);
    streams.push(stream);
    return stream.response;
  }).connected();
  streams[0]?.message({ method: "notifications/tools/list_changed" }, "id: g1\n");
  for (let hour = 0; hour < 3_600; hour += 1) {
    streams.at(-1)?.end();
    await stage.clock.advance(1_000);
  }
  const opened = stage.requester.of("GET");
  assert.ok(opened.length > 10 && opened.length < 80, `${opened.length} in an hour`);
  assert.equal(opened[1]?.headers.get("last-event-id"), "g1");
  assert.equal(stage.transport.ended, undefined);
  assert.equal(stage.messages.length, 1);
  await stage.close();
  assert.ok(streams.every((stream) => stream.over));
});

Deno.test("a server without a stream for what it says unasked isn't asked again", async () => {
  const stage = await new Stage(plain).connected();
  await stage.clock.advance(3_600_000);
  assert.equal(stage.requester.of("GET").length, 1);
  await stage.close();
});

Deno.test("a DELETE that isn't answered holds closing up for two seconds, no longer", async () => {
  const stage = await new Stage(
    plain,
    (request) => request.method === "DELETE" ? new Promise(() => {}) : plain(request),
  ).connected();
  const closing = stage.transport.close();
  await stage.clock.advance(2_000);
  await closing;
  await stage.close();
});

Deno.test("closing with calls in flight ends them as unknown", async () => {
  const stage = await new Stage(() => new Promise(() => {})).connected();
  const call = refused(stage.call());
  await settle();
  await stage.close();
  assert.ok(!(await call).nothingSent);
});
