/** Every provider against an independent imitation of its API: that ours agree with nothing but each other would be no proof. */
import assert from "node:assert/strict";
import { createServer, type Fixture } from "@copilotkit/aimock";
import { VirtualClock } from "../doubles/virtual_clock.ts";
import type { Message, Model, ModelOutcome, ModelReply } from "../../src/llm/model.ts";
import { createModel } from "../../src/llm/registry.ts";
import { answered } from "../suites/wire_suite.ts";

const PROVIDERS: { provider: string; model: string; path: string }[] = [
  { provider: "anthropic", model: "claude-sonnet-4-5", path: "/v1" },
  { provider: "openai", model: "gpt-5", path: "/v1" },
  { provider: "google", model: "gemini-2.5-flash", path: "/v1beta" },
  { provider: "openai-compatible", model: "gpt-4o", path: "/v1" },
];

const TOOLS = [{
  name: "mcp__a__weather",
  description: "The weather",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
}];

const FIXTURES: Fixture[] = [
  { match: { userMessage: "hello" }, response: { content: "Hi there, 世界 😀!" } },
  { match: { userMessage: "weather", hasToolResult: true }, response: { content: "Rain in both" } },
  {
    match: { userMessage: "weather" },
    response: {
      toolCalls: [
        { name: "mcp__a__weather", arguments: '{"city":"Oslo"}' },
        { name: "mcp__a__weather", arguments: '{"city":"Rome"}' },
      ],
    },
  },
  {
    match: { userMessage: "busy" },
    response: { error: { message: "Slow down", type: "rate_limit_error" }, status: 429 },
  },
  { match: { userMessage: "think" }, response: { content: "Four", reasoning: "Two and two" } },
];

function say(text: string): Message {
  return { role: "user", text };
}

async function withMock(
  { provider, path }: { provider: string; path: string },
  body: (model: Model) => Promise<void>,
): Promise<void> {
  const mock = await createServer(FIXTURES, { port: 0, host: "127.0.0.1" });
  const model = createModel({
    provider,
    baseUrl: `${mock.url.replace("localhost", "127.0.0.1")}${path}`,
    apiKey: "key-123456",
    clock: new VirtualClock(),
  });
  try {
    await body(model);
  } finally {
    model.close();
    const closed = new Promise((resolve) => mock.server.close(resolve));
    // It would wait for idle connections until they time out.
    mock.server.closeAllConnections();
    await closed;
  }
}

for (const facts of PROVIDERS) {
  const { provider, model: name } = facts;
  const ask = (model: Model, messages: Message[]): Promise<ModelOutcome> =>
    model.request(
      { model: name, system: "You help", messages, tools: TOOLS },
      { signal: new AbortController().signal, onDelta: () => {} },
    );
  const reply = async (model: Model, messages: Message[]): Promise<ModelReply> => {
    const outcome = await ask(model, messages);
    assert.ok(outcome.ok, outcome.ok ? "" : outcome.error.message);
    return outcome.reply;
  };
  const textOf = ({ message }: ModelReply) =>
    message.parts.map((part) => part.type === "text" ? part.text : "").join("");

  Deno.test(`[A4] ${provider} and aimock: text, parallel calls and their results`, async () => {
    await withMock(facts, async (model) => {
      const hello = await reply(model, [say("hello")]);
      assert.equal(textOf(hello), "Hi there, 世界 😀!");
      assert.equal(hello.finishReason, "stop");
      const asked = say("weather");
      const called = await reply(model, [asked]);
      const calls = called.message.parts.filter((part) => part.type === "tool-call");
      assert.deepEqual(calls.map((call) => call.input), [{ city: "Oslo" }, { city: "Rome" }]);
      assert.equal(called.finishReason, "tool-calls");
      const last = await reply(model, [asked, ...answered(called, 1)]);
      assert.equal(textOf(last), "Rain in both");
    });
  });

  Deno.test(`[A4] ${provider} and aimock: thinking is a part of its own`, async () => {
    await withMock(facts, async (model) => {
      const { message } = await reply(model, [say("think")]);
      const thoughts = message.parts.filter((part) => part.type === "reasoning");
      assert.deepEqual(thoughts.map((part) => part.text), ["Two and two"]);
    });
  });

  Deno.test(`[A4] ${provider} and aimock: a limited rate is retryable`, async () => {
    await withMock(facts, async (model) => {
      const outcome = await ask(model, [say("busy")]);
      assert.ok(!outcome.ok && outcome.retryable);
      assert.equal(outcome.error.code, "RESOURCE_EXHAUSTED");
      assert.match(outcome.error.message, /Slow down/);
      assert.ok((outcome.retryAfterMs ?? 0) > 0);
    });
  });
}
