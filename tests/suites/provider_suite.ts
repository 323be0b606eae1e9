/** What every model provider must do, whatever it talks to: the contract of `Model`. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { Json } from "../../src/base/json.ts";
import type { Message, Model, ModelDelta, ModelOutcome, ModelReply } from "../../src/llm/model.ts";

/** One reply that the provider under test is to give. */
export interface SuiteTurn {
  text?: string;
  calls?: { tool: string; input: Json }[];
  /** Takes far longer than the test waits, after the text if `text` is given. */
  slow?: boolean;
}

/** A provider set up to give these replies one after another, by the number of assistant messages in the request. */
export interface SuiteProvider {
  model: Model;
  close(): Promise<void>;
}

const TOOLS = ["mcp__a__read", "mcp__a__write"].map((name) => ({
  name,
  description: "",
  inputSchema: { type: "object", properties: {} },
}));

interface Asked {
  outcome: ModelOutcome;
  deltas: ModelDelta[];
}

async function ask(
  model: Model,
  messages: readonly Message[],
  signal = new AbortController().signal,
  onDelta: () => void = () => {},
): Promise<Asked> {
  const deltas: ModelDelta[] = [];
  const outcome = await model.request(
    { model: "suite", system: "You help", messages, tools: TOOLS },
    {
      signal,
      onDelta: (delta) => {
        deltas.push(delta);
        onDelta();
      },
    },
  );
  return { outcome, deltas };
}

function replyOf({ outcome }: Asked): ModelReply {
  assert.ok(outcome.ok, outcome.ok ? "" : outcome.error.message);
  return outcome.reply;
}

/** A reply without what the provider notes for itself: ids of its own differ from one request to the next. */
function bare(reply: ModelReply): ModelReply {
  const parts = reply.message.parts.map((part) => {
    const { meta: _, ...rest } = part;
    return rest;
  });
  return { ...reply, message: { role: "assistant", parts } };
}

const GO: Message = { role: "user", text: "go" };

/** A reply and results for its calls, as they come back. */
function answered(reply: ModelReply): Message[] {
  const calls = reply.message.parts.filter((part) => part.type === "tool-call");
  const ids = calls.map((call, index) => call.provider_id || `own_${index}`);
  return [
    { ...reply.message, callIds: ids },
    {
      role: "tool",
      results: calls.map((call, index) => ({
        id: ids[index] ?? "",
        tool: call.tool,
        isError: index === 1,
        content: index === 1 ? [] : [{ type: "text", text: "ok" }],
      })),
    },
  ];
}

type Register = (
  what: string,
  turns: SuiteTurn[],
  body: (model: Model) => Promise<void>,
) => void;

/** Registers the suite's tests for one provider. */
export function testProvider(
  name: string,
  make: (turns: SuiteTurn[]) => Promise<SuiteProvider>,
): void {
  const test: Register = (what, turns, body) =>
    Deno.test(`${name}: ${what}`, async () => {
      const { model, close } = await make(turns);
      try {
        await body(model);
      } finally {
        model.close();
        await close();
      }
    });
  testReplies(test);
  testGrowingHistory(test);
  testAborts(test);
}

function testReplies(test: Register): void {
  test("a text comes in deltas and as one part", [{ text: "Hello 😀 world" }], async (model) => {
    const asked = await ask(model, [GO]);
    const reply = replyOf(asked);
    assert.deepEqual(bare(reply).message, {
      role: "assistant",
      parts: [{ type: "text", text: "Hello 😀 world" }],
    });
    assert.equal(asked.deltas.map((delta) => delta.text).join(""), "Hello 😀 world");
    assert.equal(reply.finishReason, "stop");
    assert.ok(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0);
  });

  const parallel = [
    {
      text: "Both",
      calls: [{ tool: "mcp__a__read", input: { n: 1 } }, { tool: "mcp__a__write", input: {} }],
    },
    { text: "done" },
  ];
  test(
    "calls come in order with their inputs, and the turn after their results follows",
    parallel,
    async (model) => {
      const reply = replyOf(await ask(model, [GO]));
      const calls = reply.message.parts.filter((part) => part.type === "tool-call");
      assert.deepEqual(calls.map(({ tool, input }) => ({ tool, input })), parallel[0]?.calls);
      assert.equal(new Set(calls.map((call) => call.provider_id)).size, 2);
      assert.equal(reply.finishReason, "tool-calls");
      const next = replyOf(await ask(model, [GO, ...answered(reply)]));
      assert.deepEqual(bare(next).message.parts, [{ type: "text", text: "done" }]);
    },
  );

  test("equal requests have equal replies", [{
    text: "same",
    calls: [{ tool: "mcp__a__read", input: {} }],
  }], async (model) => {
    const first = replyOf(await ask(model, [GO]));
    assert.deepEqual(bare(first), bare(replyOf(await ask(model, [GO]))));
  });
}

function testGrowingHistory(test: Register): void {
  const turns = [{ text: "one", calls: [{ tool: "mcp__a__read", input: {} }] }, { text: "two" }];
  test(
    "a message appended while a request is on its way belongs to the next one",
    turns,
    async (model) => {
      const messages = [GO];
      const work = ask(model, messages);
      messages.push({ role: "user", text: "a late note" });
      const reply = replyOf(await work);
      const again = replyOf(await ask(model, [GO]));
      assert.deepEqual(bare(reply), bare(again));
    },
  );
}

function testAborts(test: Register): void {
  test(
    "an abort beforehand ends in one failure that isn't retryable",
    [{ text: "never" }],
    async (model) => {
      const { outcome, deltas } = await ask(model, [GO], AbortSignal.abort());
      assert.ok(!outcome.ok && !outcome.retryable);
      assert.equal(outcome.error.code, "TIMEOUT");
      assert.deepEqual(deltas, []);
    },
  );

  test("an abort in mid-reply ends at once with the signal's own error, and no delta follows", [{
    text: "begin",
    slow: true,
  }], async (model) => {
    const controller = new AbortController();
    const reason = new SysError("BUDGET_EXCEEDED", "Out of tokens");
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    const work = ask(model, [GO], controller.signal, resolve);
    await begun;
    controller.abort(reason);
    const { outcome, deltas } = await work;
    assert.ok(!outcome.ok && !outcome.retryable);
    assert.equal(outcome.error, reason);
    const count = deltas.length;
    await new Promise((after) => setTimeout(after, 0));
    assert.equal(deltas.length, count);
  });
}
