import assert from "node:assert/strict";
import { anthropicShape } from "../../../tests/servers/anthropic_shape.ts";
import { startModelEndpoint } from "../../../tests/servers/model_endpoint.ts";
import {
  answered,
  Conversation,
  testWire,
  toolsSent,
  type WireUnderTest,
} from "../../../tests/suites/wire_suite.ts";
import { VirtualClock } from "../../../tests/doubles/virtual_clock.ts";
import type { JsonObject } from "../../base/json.ts";
import type { Message, ModelTool } from "../model.ts";
import { createModel } from "../registry.ts";
import { projectForAnthropic } from "./provider.ts";

const WIRE: WireUnderTest = {
  provider: "anthropic",
  shape: anthropicShape,
  model: "claude-sonnet-4-5",
  takesImages: true,
  signsThinking: true,
};
const GO: Message = { role: "user", text: "go" };

testWire(WIRE);

function toolOf(inputSchema: JsonObject): ModelTool {
  return { name: "mcp__a__tool", description: "", inputSchema };
}

Deno.test("anthropic: system text and the end of the conversation are marked for the cache", async () => {
  const talk = new Conversation(WIRE, [{ calls: [{ name: "read", arguments: "{}" }] }]);
  const reply = await talk.reply([GO]);
  await talk.reply([GO, ...answered(reply, 1)]);
  const { system, messages } = talk.endpoint.requests[1]?.body ?? {};
  const mark = { cache_control: { type: "ephemeral" } };
  assert.deepEqual(system, [{ type: "text", text: "You help", ...mark }]);
  assert.ok(Array.isArray(messages));
  assert.deepEqual(messages.at(-1), {
    role: "user",
    content: [{ type: "tool_result", tool_use_id: "call_1_0", content: "ok", ...mark }],
  });
  assert.equal(talk.sent.split("cache_control").length - 1, 2);
  await talk.close();
});

Deno.test("anthropic: a failed call is marked by the field for it", async () => {
  const talk = new Conversation(WIRE, [{ calls: [{ name: "read", arguments: "{}" }] }]);
  const reply = await talk.reply([GO]);
  const [message, results] = answered(reply, 1, [{ type: "text", text: "no such file" }]);
  assert.ok(message !== undefined && results?.role === "tool");
  const failed = results.results.map((result) => ({ ...result, isError: true }));
  await talk.reply([GO, message, { role: "tool", results: failed }]);
  assert.match(talk.sent, /"content":"no such file","is_error":true/);
  await talk.close();
});

Deno.test("anthropic: tokens read from the cache are part of the input", async () => {
  const talk = new Conversation(WIRE, [{ text: "ok" }]);
  const { usage } = await talk.reply([GO]);
  assert.deepEqual(usage, { input_tokens: 100, output_tokens: 10, cached_tokens: 40 });
  await talk.close();
});

Deno.test("anthropic: an overload that is told in the first event is retryable", async () => {
  const error = { type: "overloaded_error", message: "Overloaded" };
  const shape = {
    ...anthropicShape,
    chunks: () => [`event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`],
  };
  const talk = new Conversation({ ...WIRE, shape }, [{}]);
  const failure = await talk.failure([GO]);
  assert.ok(failure.retryable);
  assert.match(failure.error.message, /HTTP 529: Overloaded/);
  await talk.close();
});

Deno.test("anthropic: key, version and headers go with a request; without a key no header of it", async () => {
  const endpoint = startModelEndpoint(() => ({ text: "ok" }), anthropicShape);
  const settings = { provider: "anthropic", baseUrl: endpoint.url, clock: new VirtualClock() };
  const keyed = createModel({ ...settings, apiKey: "k-123456", headers: { "x-team": "seven" } });
  const keyless = createModel(settings);
  const options = { signal: new AbortController().signal, onDelta: () => {} };
  for (const model of [keyed, keyless]) {
    const request = { model: "claude-x", system: "", messages: [GO], tools: [] };
    assert.ok((await model.request(request, options)).ok);
    model.close();
  }
  const [first, second] = endpoint.requests.map((request) => request.headers);
  assert.deepEqual([first?.["x-api-key"], first?.["x-team"]], ["k-123456", "seven"]);
  assert.equal(second?.["x-api-key"], undefined);
  assert.deepEqual(endpoint.violations, []);
  await endpoint.close();
});

Deno.test("[B29] anthropic: a union at the top is sent as one object, the description says so", async () => {
  const schema = {
    anyOf: [
      { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
      { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    ],
  };
  const talk = new Conversation(WIRE, [{ text: "ok" }]);
  await talk.reply([GO], { tools: [toolOf(schema)] });
  assert.deepEqual(toolsSent(talk), [{
    name: "mcp__a__tool",
    description: "Arguments follow at least one of these forms: (id) or (name)",
    input_schema: {
      type: "object",
      properties: { id: { type: "string" }, name: { type: "string" } },
    },
  }]);
  await talk.close();
});

Deno.test("[B27] anthropic: a property name that the API refuses sets the tool aside, at any depth", () => {
  const deep = (name: string) => ({
    type: "object",
    properties: { list: { type: "array", items: { properties: { [name]: {} } } } },
  });
  const refusal = projectForAnthropic(deep("a b"));
  assert.deepEqual(refusal, {
    refused: 'Input schema has a property "a b", which the API refuses',
  });
  for (const name of ["a.b", "a-b", "_x", "n".repeat(64), "enum"]) {
    assert.ok("schema" in projectForAnthropic(deep(name)), name);
  }
  assert.ok("refused" in projectForAnthropic(deep("n".repeat(65))));
  const values = { type: "object", properties: { a: { enum: [{ properties: { "x y": 1 } }] } } };
  assert.ok("schema" in projectForAnthropic(values));
});
