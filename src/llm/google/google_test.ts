import assert from "node:assert/strict";
import { geminiShape } from "../../../tests/servers/gemini_shape.ts";
import {
  answered,
  Conversation,
  PNG,
  testWire,
  type WireUnderTest,
} from "../../../tests/suites/wire_suite.ts";
import type { Message } from "../model.ts";

const WIRE: WireUnderTest = {
  provider: "google",
  shape: geminiShape,
  model: "gemini-3-pro-preview",
  takesImages: true,
  signsThinking: true,
};
const GO: Message = { role: "user", text: "go" };
const READ = { name: "read", arguments: "{}" };

testWire(WIRE);

Deno.test("google: a signature stays with the call that it came on, an empty text that carries one goes back", async () => {
  const talk = new Conversation(WIRE, [
    { reasoning: [{ text: "hm" }], calls: [READ, READ] },
    { reasoning: [{ text: "so" }], text: "done" },
    { reasoning: [{ text: "nothing to say" }] },
  ]);
  const first = await talk.reply([GO]);
  const history = [GO, ...answered(first, 1)];
  const second = await talk.reply(history);
  const more: Message[] = [...history, { ...second.message, callIds: [] }, GO];
  const silent = await talk.reply(more);
  assert.match(talk.sent, /"functionCall":\{"id":"call_1_0",[^}]*\{\}\},"thoughtSignature":"sig\+/);
  assert.match(talk.sent, /\{"text":"done","thoughtSignature":"sig\+[^"]+"\}/);
  assert.equal(talk.sent.split("thoughtSignature").length - 1, 2);
  await talk.reply([...more, { ...silent.message, callIds: [] }, GO]);
  assert.match(talk.sent, /\{"text":"","thoughtSignature":"sig\+[^"]+"\}/);
  await talk.close();
});

Deno.test("google: an older model gets images beside the result", async () => {
  const talk = new Conversation({ ...WIRE, model: "gemini-2.5-flash" }, [{ calls: [READ, READ] }]);
  const reply = await talk.reply([GO]);
  const content = [{ type: "text", text: "a" }, { type: "text", text: "b" }, {
    type: "image",
    data: PNG,
  }];
  await talk.reply([GO, ...answered(reply, 1, content)]);
  assert.equal(talk.sent.split(PNG).length - 1, 2);
  await talk.close();
});

Deno.test("google: the wait comes from the body where no header has it", async () => {
  const error = {
    message: "Quota exceeded",
    details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.5s" }],
  };
  const talk = new Conversation(WIRE, [{ status: 429, error }]);
  const { retryable, retryAfterMs } = await talk.failure([GO]);
  assert.deepEqual([retryable, retryAfterMs], [true, 34_500]);
  await talk.close();
});

Deno.test("google: a key that isn't valid is UNAUTHENTICATED though it comes as 400", async () => {
  const error = { message: "API key not valid. Please pass a valid API key." };
  const talk = new Conversation(WIRE, [{ status: 400, error }]);
  const failure = await talk.failure([GO]);
  assert.deepEqual([failure.error.code, failure.retryable], ["UNAUTHENTICATED", false]);
  await talk.close();
});

Deno.test("google: a call that the API itself could not read is a retryable failure, no empty reply", async () => {
  const talk = new Conversation(WIRE, [{ finish: "MALFORMED_FUNCTION_CALL" }]);
  const { error, retryable } = await talk.failure([GO]);
  assert.ok(retryable);
  assert.match(error.message, /gave up its reply \(MALFORMED_FUNCTION_CALL\)/);
  await talk.close();
});

Deno.test("google: finish reasons and tokens come through", async () => {
  const talk = new Conversation(WIRE, [{ text: "a", finish: "MAX_TOKENS" }, {
    text: "b",
    finish: "SAFETY",
  }]);
  const cut = await talk.reply([GO]);
  assert.equal(cut.finishReason, "length");
  assert.equal(cut.usage.cached_tokens, 40);
  assert.equal((await talk.reply([GO])).finishReason, "content-filter");
  await talk.close();
});
