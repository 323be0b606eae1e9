/** How requests fail: every kind of failure, with its error and whether it may be tried again. */
import assert from "node:assert/strict";
import { VirtualClock } from "../../../tests/doubles/virtual_clock.ts";
import { type EndpointReply, startModelEndpoint } from "../../../tests/servers/model_endpoint.ts";
import type { Message, Model, ModelOutcome, ModelRequest } from "../model.ts";
import { createModel } from "../registry.ts";
import { STALL_MS_MAX } from "./sdk_model.ts";

const clock = new VirtualClock();
const GO: Message = { role: "user", text: "go" };

const modelAt = (
  url: string,
  settings: { apiKey?: string; apiKeyEnv?: string } = {},
  time = clock,
): Model => createModel({ provider: "openai-compatible", baseUrl: url, clock: time, ...settings });

const requestOf = (messages: Message[]): ModelRequest => ({
  model: "test-model",
  system: "You help",
  messages,
  tools: [{ name: "mcp__fs__read_file", description: "", inputSchema: { type: "object" } }],
});

function ask(model: Model, request: ModelRequest): Promise<ModelOutcome> {
  return model.request(request, { signal: new AbortController().signal, onDelta: () => {} });
}

/** The failure that one reply of an endpoint leads to. */
async function failureOf(reply: EndpointReply): Promise<Extract<ModelOutcome, { ok: false }>> {
  const endpoint = startModelEndpoint(() => reply);
  const model = modelAt(endpoint.url, { apiKey: "key-123456", apiKeyEnv: "TEST_KEY" });
  try {
    const outcome = await ask(model, requestOf([GO]));
    assert.ok(!outcome.ok);
    assert.deepEqual(endpoint.violations, []);
    return outcome;
  } finally {
    model.close();
    await endpoint.close();
  }
}

Deno.test("a refused key is UNAUTHENTICATED and names the variable", async () => {
  const { error, retryable } = await failureOf({
    status: 401,
    error: { message: "Incorrect API key" },
  });
  assert.equal(error.code, "UNAUTHENTICATED");
  assert.match(
    error.message,
    /^127\.0\.0\.1:\d+ refused the API key \(HTTP 401: Incorrect API key\)$/,
  );
  assert.equal(error.hint, "Check the key in TEST_KEY");
  assert.equal(retryable, false);
});

Deno.test("a provider's words are redacted before they are cut, so that no half of a secret is left", async () => {
  const endpoint = startModelEndpoint(() => ({
    status: 400,
    error: { message: `${"x".repeat(495)}key-123456` },
  }));
  const redact = (text: string) => text.replaceAll("key-123456", "[redacted]");
  const model = createModel({
    provider: "openai-compatible",
    baseUrl: endpoint.url,
    clock,
    redact,
  });
  const outcome = await ask(model, requestOf([GO]));
  await endpoint.close();
  assert.ok(!outcome.ok);
  assert.match(outcome.error.message, /x\[reda\)$/);
});

Deno.test("a missing key's hint says which variable to set", async () => {
  const endpoint = startModelEndpoint(() => ({ status: 401, error: { message: "no key" } }));
  const outcome = await ask(modelAt(endpoint.url, { apiKeyEnv: "TEST_KEY" }), requestOf([GO]));
  await endpoint.close();
  assert.equal(!outcome.ok && outcome.error.hint, "Set TEST_KEY to your API key");
});

Deno.test("404 is NOT_FOUND and names the model", async () => {
  const { error, retryable } = await failureOf({
    status: 404,
    error: { message: "no such model" },
  });
  assert.deepEqual([error.code, retryable], ["NOT_FOUND", false]);
  assert.match(error.message, /Model "test-model" was not found/);
});

Deno.test("a conversation over the context window is INVALID, in words of its own, by code or by message", async () => {
  for (
    const error of [
      { message: "too long", code: "context_length_exceeded" },
      { message: "This model's maximum context length is 8192 tokens" },
    ]
  ) {
    const failure = await failureOf({ status: 400, error });
    assert.deepEqual([failure.error.code, failure.retryable], ["INVALID", false]);
    assert.match(
      failure.error.message,
      /^The conversation is longer than the context window of model "test-model"/,
    );
  }
});

Deno.test("429 and 5xx are retryable, after what Retry-After says", async () => {
  const limited = await failureOf({
    status: 429,
    headers: { "retry-after": "7" },
    error: { message: "slow down" },
  });
  assert.deepEqual([limited.error.code, limited.retryable, limited.retryAfterMs], [
    "RESOURCE_EXHAUSTED",
    true,
    7000,
  ]);
  const date = new Date(clock.now() + 90_000).toUTCString();
  const down = await failureOf({ status: 503, headers: { "retry-after": date }, error: "<html>" });
  assert.deepEqual([down.error.code, down.retryable, down.retryAfterMs], ["DRIVER", true, 90_000]);
  const exact = await failureOf({ status: 500, headers: { "retry-after-ms": "250" } });
  assert.equal(exact.retryAfterMs, 250);
  assert.equal((await failureOf({ status: 502 })).retryAfterMs, undefined);
});

Deno.test("a used-up quota isn't retried", async () => {
  const { error, retryable } = await failureOf({
    status: 429,
    error: { message: "pay", code: "insufficient_quota" },
  });
  assert.deepEqual([error.code, retryable], ["RESOURCE_EXHAUSTED", false]);
});

Deno.test("a refused request quotes the provider and isn't retried, HTML bodies included", async () => {
  const { error, retryable } = await failureOf({ status: 400, error: "plain words" });
  assert.deepEqual([error.code, retryable], ["INVALID", false]);
  assert.match(error.message, /refused the request \(HTTP 400: plain words\)/);
});

Deno.test("a stream cut at any chunk before its end is a retryable failure, in good order or not", async () => {
  const reply: EndpointReply = {
    text: ["a", "b"],
    calls: [{ name: "read_file", arguments: '{"a":1}' }],
    usage: null,
  };
  for (let chunks = 0; chunks < 6; chunks++) {
    for (const cut of [{ cutAfter: chunks }, { breakAfter: chunks }]) {
      const { error, retryable } = await failureOf({ ...reply, ...cut });
      assert.deepEqual([error.code, retryable], ["DEVICE_DISCONNECTED", true], JSON.stringify(cut));
    }
  }
});

Deno.test("an error event in the stream is a failure, retryable unless the request is to blame", async () => {
  const overloaded = await failureOf({
    text: "a",
    streamError: { message: "overloaded", type: "server_error" },
  });
  assert.deepEqual([overloaded.error.code, overloaded.retryable], ["DRIVER", true]);
  const invalid = await failureOf({
    streamError: { message: "bad", type: "invalid_request_error" },
  });
  assert.deepEqual([invalid.error.code, invalid.retryable], ["INVALID", false]);
  const limited = await failureOf({ streamError: { message: "slow down", code: 429 } });
  assert.deepEqual([limited.error.code, limited.retryable], ["RESOURCE_EXHAUSTED", true]);
});

Deno.test("a server that isn't there is a retryable failure with the address", async () => {
  const endpoint = startModelEndpoint(() => ({}));
  await endpoint.close();
  const outcome = await ask(modelAt(endpoint.url), requestOf([GO]));
  assert.ok(!outcome.ok && outcome.retryable);
  assert.equal(outcome.error.code, "DEVICE_DISCONNECTED");
  assert.match(outcome.error.message, /^Connection to 127\.0\.0\.1:\d+ failed: /);
});

Deno.test("a stream that stalls is given up after its limit and may be tried again", async () => {
  const time = new VirtualClock();
  const endpoint = startModelEndpoint(() => ({ text: "begin", hangAfter: 2 }));
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const model = modelAt(endpoint.url, {}, time);
  const work = model.request(requestOf([GO]), {
    signal: new AbortController().signal,
    onDelta: () => resolve(),
  });
  await begun;
  await time.advance(STALL_MS_MAX + 1);
  const outcome = await work;
  await endpoint.close();
  assert.ok(!outcome.ok && outcome.retryable);
  assert.equal(outcome.error.message, "The model sent nothing for 5m (models.timeout)");
});

Deno.test("close ends a request in flight", async () => {
  const endpoint = startModelEndpoint(() => ({ text: "begin", hangAfter: 2 }));
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const model = modelAt(endpoint.url);
  const work = model.request(requestOf([GO]), {
    signal: new AbortController().signal,
    onDelta: () => resolve(),
  });
  await begun;
  model.close();
  const outcome = await work;
  await endpoint.close();
  assert.ok(!outcome.ok && !outcome.retryable);
});

Deno.test("an answer that is no stream says what it is; words of a library are short and without secrets", async () => {
  const key = "key-0123456789";
  const odd = JSON.stringify({ id: "x", choices: [], usage: `${key}${"x".repeat(5_000)}\n` });
  const answers = [
    new Response("<html>Log in first</html>", { headers: { "content-type": "text/html" } }),
    new Response(`data: ${odd}\n\n`, { headers: { "content-type": "text/event-stream" } }),
  ];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => answers.shift() ?? new Response(null, { status: 500 }),
  );
  const model = createModel({
    provider: "openai-compatible",
    baseUrl: `http://127.0.0.1:${server.addr.port}`,
    apiKey: key,
    apiKeyEnv: "TEST_KEY",
    redact: (text: string) => text.replaceAll(key, "[redacted]"),
    clock: new VirtualClock(),
  });
  const ask = async () => {
    const outcome = await model.request(
      { model: "m", system: "", messages: [{ role: "user", text: "go" }], tools: [] },
      { signal: new AbortController().signal, onDelta: () => {} },
    );
    assert.ok(!outcome.ok);
    return outcome.error;
  };
  const page = await ask();
  assert.match(page.hint ?? "", /^It answered with text\/html and no stream of events: check/);
  const { message, hint } = await ask();
  assert.match(message, /broke off: .*\[redacted\]/);
  assert.ok(message.length < 700 && !message.includes("\n") && !message.includes(key), message);
  assert.equal(hint, undefined);
  model.close();
  await server.shutdown();
});
