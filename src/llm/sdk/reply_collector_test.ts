import assert from "node:assert/strict";
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { ModelDelta, ModelReply } from "../model.ts";
import { ReplyCollector } from "./reply_collector.ts";

const FINISH: LanguageModelV4StreamPart = {
  type: "finish",
  finishReason: { unified: "stop", raw: "stop" },
  usage: {
    inputTokens: { total: 7, noCache: 7, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 3, text: 3, reasoning: 0 },
  },
};

function collect(
  parts: LanguageModelV4StreamPart[],
  { keepsCallIds = true, deltas = [] as ModelDelta[] } = {},
): ModelReply | undefined {
  const collector = new ReplyCollector((delta) => deltas.push(delta), keepsCallIds);
  for (const part of parts) collector.add(part);
  return collector.reply(400);
}

Deno.test("[A4] metadata of a part's start, pieces and end come together, the last word holding", () => {
  const reply = collect([
    { type: "reasoning-start", id: "r", providerMetadata: { p: { itemId: "i", secret: null } } },
    { type: "reasoning-delta", id: "r", delta: "hm", providerMetadata: { p: { more: 1 } } },
    { type: "reasoning-delta", id: "r", delta: "", providerMetadata: { q: { signature: "s" } } },
    { type: "reasoning-end", id: "r", providerMetadata: { p: { secret: "e" } } },
    FINISH,
  ]);
  assert.deepEqual(reply?.message.parts, [{
    type: "reasoning",
    text: "hm",
    meta: { p: { itemId: "i", secret: "e", more: 1 }, q: { signature: "s" } },
  }]);
});

Deno.test("an empty part stays only for what it carries, and empty pieces are no deltas", () => {
  const deltas: ModelDelta[] = [];
  const reply = collect([
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "" },
    { type: "text-end", id: "1" },
    { type: "reasoning-start", id: "2", providerMetadata: { p: { data: "d" } } },
    { type: "reasoning-end", id: "2" },
    { type: "text-delta", id: "gone", delta: "lost" },
    FINISH,
  ], { deltas });
  assert.deepEqual(reply?.message.parts, [
    { type: "reasoning", text: "", meta: { p: { data: "d" } } },
  ]);
  assert.deepEqual(deltas, []);
});

Deno.test("[A29] an id counts as the provider's own only where all are, or where the wire had it", () => {
  const call: LanguageModelV4StreamPart = {
    type: "tool-call",
    toolCallId: "c1",
    toolName: "t",
    input: "{}",
  };
  const idOf = (reply: ModelReply | undefined) => {
    const [part] = reply?.message.parts ?? [];
    return part?.type === "tool-call" ? part.provider_id : undefined;
  };
  assert.equal(idOf(collect([call, FINISH])), "c1");
  assert.equal(idOf(collect([call, FINISH], { keepsCallIds: false })), "");
  const collector = new ReplyCollector(() => {}, false);
  collector.noteChunk({ choices: [{ delta: { tool_calls: [{ id: "c1" }] } }] });
  collector.add(call);
  collector.add(FINISH);
  assert.equal(idOf(collector.reply(0)), "c1");
});

Deno.test("a stream without its end, or with one that the library made up, is no reply", () => {
  assert.equal(collect([]), undefined);
  const interrupted: LanguageModelV4StreamPart = {
    ...FINISH,
    finishReason: { unified: "interrupted", raw: undefined },
  };
  assert.equal(collect([interrupted]), undefined);
});
