/** A server whose answers never end, and what of them is taken. */
import assert from "node:assert/strict";
import { systemClock } from "../../base/clock.ts";
import { createModel } from "../registry.ts";
import type { ModelOutcome } from "../model.ts";
import { ERROR_BYTES_MAX, limitBody, REPLY_BYTES_MAX } from "./reply_limits.ts";

const PIECE_CHARS = 256 * 1024;

/** A body that goes on until its reader leaves. */
function endless(piece: string, first = ""): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(piece);
  return new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(first)),
    pull: (controller) => controller.enqueue(bytes),
  }, { highWaterMark: 0 });
}

function event(delta: unknown): string {
  return `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, delta }] })}\n\n`;
}

async function askOf(answer: () => Response): Promise<ModelOutcome> {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, answer);
  const baseUrl = `http://127.0.0.1:${server.addr.port}`;
  const model = createModel({ provider: "openai-compatible", baseUrl, clock: systemClock });
  try {
    return await model.request(
      {
        model: "m",
        system: "",
        messages: [{ role: "user", text: "go" }],
        tools: [],
      },
      { signal: new AbortController().signal, onDelta: () => {} },
    );
  } finally {
    model.close();
    await server.shutdown();
  }
}

const stream = (body: ReadableStream<Uint8Array>) =>
  new Response(body, { headers: { "content-type": "text/event-stream" } });

Deno.test("a reply without end is given up, whatever it consists of, and not asked for again", async () => {
  const text = "x".repeat(PIECE_CHARS);
  const call = {
    index: 0,
    id: "c",
    type: "function",
    function: { name: "f", arguments: '{"a":"' },
  };
  const bodies = [
    () => endless(event({ content: text })),
    () => endless(event({ reasoning_content: text })),
    () =>
      endless(
        event({ tool_calls: [{ index: 0, function: { arguments: text } }] }),
        event({ tool_calls: [call] }),
      ),
  ];
  for (const body of bodies) {
    const outcome = await askOf(() => stream(body()));
    assert.ok(!outcome.ok);
    assert.equal(outcome.error.code, "RESOURCE_EXHAUSTED");
    assert.match(outcome.error.message, /doesn't end: it is over 8388608 characters$/);
    assert.equal(outcome.retryable, false);
  }
});

Deno.test("of an error without end the beginning is told", async () => {
  const outcome = await askOf(() => new Response(endless("no such thing. "), { status: 400 }));
  assert.ok(!outcome.ok);
  assert.match(outcome.error.message, /refused the request \(HTTP 400: no such thing\./);
});

Deno.test("a body is cut at its limit, an error's silently", async () => {
  const piece = "x".repeat(PIECE_CHARS - 1);
  const onOver = () => assert.fail("an error's body is no reply");
  const cut = limitBody(new Response(endless(piece), { status: 500 }), onOver);
  assert.equal((await cut.bytes()).length, ERROR_BYTES_MAX);
  let told = "";
  const reply = limitBody(stream(endless(piece)), (error) => told = error.message);
  let bytes = 0;
  await assert.rejects(async () => {
    for await (const each of reply.body ?? []) bytes += each.length;
  }, /it is over 256 MiB/);
  assert.ok(bytes <= REPLY_BYTES_MAX && bytes > REPLY_BYTES_MAX - PIECE_CHARS);
  assert.match(told, /it is over 256 MiB/);
});
