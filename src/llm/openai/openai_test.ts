import assert from "node:assert/strict";
import { responsesShape } from "../../../tests/servers/responses_shape.ts";
import {
  answered,
  Conversation,
  testWire,
  toolsSent,
  type WireUnderTest,
} from "../../../tests/suites/wire_suite.ts";
import type { Message } from "../model.ts";

const WIRE: WireUnderTest = {
  provider: "openai",
  shape: responsesShape,
  model: "gpt-5",
  takesImages: true,
  signsThinking: true,
};
const GO: Message = { role: "user", text: "go" };

testWire(WIRE);

Deno.test("openai: nothing is stored, reasoning comes encrypted and goes back whole", async () => {
  const talk = new Conversation(WIRE, [{
    reasoning: [{ text: "I must read" }, { text: "", redacted: true }],
    calls: [{ name: "read", arguments: "{}" }],
  }]);
  const reply = await talk.reply([GO]);
  await talk.reply([GO, ...answered(reply, 1)]);
  const { store, include, input } = talk.endpoint.requests[1]?.body ?? {};
  assert.deepEqual([store, include], [false, ["reasoning.encrypted_content"]]);
  assert.ok(Array.isArray(input));
  const reasoning = input.filter((item) => JSON.stringify(item).includes('"type":"reasoning"'));
  assert.equal(reasoning.length, 2);
  assert.match(
    JSON.stringify(reasoning[0]),
    /"id":"rs_1_0","encrypted_content":"sig\+[^"]+","summary":\[\{"type":"summary_text","text":"I must read"\}\]/,
  );
  assert.match(JSON.stringify(reasoning[1]), /"id":"rs_1_1".*"summary":\[\]/);
  await talk.close();
});

Deno.test("openai: a model that doesn't reason isn't asked for encrypted reasoning", async () => {
  const talk = new Conversation(WIRE, [{ text: "ok" }]);
  await talk.reply([GO], { model: "gpt-4o" });
  assert.equal(talk.endpoint.requests[0]?.body["include"], undefined);
  await talk.close();
});

Deno.test("openai: tools are sent as functions that aren't strict", async () => {
  const talk = new Conversation(WIRE, [{ text: "ok" }]);
  await talk.reply([GO], {
    tools: [{
      name: "mcp__a__tool",
      description: "A tool",
      inputSchema: {
        type: "object",
        properties: { mode: { const: "fast" }, list: { type: "array" } },
        additionalProperties: false,
      },
    }],
  });
  assert.deepEqual(toolsSent(talk), [{
    type: "function",
    name: "mcp__a__tool",
    description: "A tool",
    parameters: {
      type: "object",
      properties: { mode: { enum: ["fast"] }, list: { type: "array", items: {} } },
      additionalProperties: false,
    },
    strict: false,
  }]);
  await talk.close();
});

Deno.test("openai: a reply that reaches its limit ends by length, a failed one is retryable", async () => {
  const talk = new Conversation(WIRE, [{ text: "half", finish: "max_output_tokens" }]);
  assert.equal((await talk.reply([GO])).finishReason, "length");
  await talk.close();
  const failed = {
    type: "response.failed",
    sequence_number: 9,
    response: {
      error: { code: "server_error", message: "The model broke" },
      incomplete_details: null,
    },
  };
  const shape = {
    ...responsesShape,
    chunks: (...facts: Parameters<typeof responsesShape.chunks>) => [
      ...responsesShape.chunks(...facts).slice(0, 4),
      `data: ${JSON.stringify(failed)}\n\n`,
    ],
  };
  const broken = new Conversation({ ...WIRE, shape }, [{ text: ["a", "b"] }]);
  const { error, retryable } = await broken.failure([GO]);
  assert.ok(retryable);
  assert.match(error.message, /The model broke/);
  await broken.close();
});

Deno.test("openai: a context error is known by its code", async () => {
  const error = {
    code: "context_length_exceeded",
    message: "Too long.",
    type: "invalid_request_error",
  };
  const talk = new Conversation(WIRE, [{ status: 400, error }]);
  assert.equal((await talk.failure([GO])).contextWindow, true);
  await talk.close();
});
