import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../base/json.ts";
import type { ToolDefinition } from "../../vfs/device.ts";
import { answerText, toOutcome } from "./answers.ts";

const plain: ToolDefinition = {
  name: "t",
  modelName: "mcp__s__t",
  inputSchema: { type: "object" },
};
const typed: ToolDefinition = {
  ...plain,
  outputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
};
const outcomeOf = (result: Json, tool = plain) => toOutcome({ kind: "result", result }, tool);
const block = (text: string): JsonObject => ({ type: "text", text });

Deno.test("[D01] the error flag stays where there is structured content too", async () => {
  assert.deepEqual(
    await outcomeOf(
      { isError: true, content: [block("bad")], structuredContent: { n: "x" } },
      typed,
    ),
    { kind: "answer", isError: true, content: [block("bad")], structured: { n: "x" } },
  );
});

Deno.test("[D03] structured content without any other is kept and read", async () => {
  const outcome = await outcomeOf({ content: [], structuredContent: { n: 1 } }, typed);
  assert.deepEqual(outcome, { kind: "answer", isError: false, content: [], structured: { n: 1 } });
  assert.equal(answerText(outcome), '{"n":1}');
});

Deno.test("structured output that doesn't fit is delivered with a warning: the effect happened", async () => {
  const wrong = await outcomeOf({ content: [block("x")], structuredContent: { n: "x" } }, typed);
  assert.deepEqual(wrong.structured, { n: "x" });
  assert.match(wrong.warnings?.join() ?? "", /\/n must be number/);
  const missing = await outcomeOf({ content: [block("x")] }, typed);
  assert.match(missing.warnings?.join() ?? "", /is missing/);
});

Deno.test("an error of the protocol is an answer with its code", async () => {
  assert.deepEqual(
    await toOutcome({ kind: "rpc-error", code: -32602, message: "bad args" }, plain),
    {
      kind: "answer",
      isError: true,
      content: [block("MCP error -32602: bad args")],
    },
  );
});

Deno.test("results that break the protocol still come through", async () => {
  assert.deepEqual((await outcomeOf("just text")).content, [block('"just text"')]);
  assert.deepEqual((await outcomeOf({ content: "text" })).content, [block("text")]);
  assert.match((await outcomeOf({})).warnings?.join() ?? "", /no content/);
  assert.equal((await outcomeOf({ content: [], isError: "yes" })).isError, false);
});

Deno.test("[B59] a result that asks for input fails the call with the reason", async () => {
  const inputRequests = { a: { method: "sampling/createMessage", params: {} } };
  const outcome = await outcomeOf({ resultType: "input_required", inputRequests });
  assert.equal(outcome.isError, true);
  assert.match(answerText(outcome), /doesn't offer \(sampling\/createMessage\); .*not completed/);
  const again = await outcomeOf({ resultType: "input_required", requestState: "s" });
  assert.match(answerText(again), /goes on asking for input/);
});

Deno.test("[D11] lone surrogates are replaced on the way in", async () => {
  const outcome = await outcomeOf({
    content: [block("a\ud83db")],
    structuredContent: { "k\udc00": "\ud800" },
  });
  assert.ok(answerText(outcome).isWellFormed());
  assert.deepEqual(outcome.structured, { "k\ufffd": "\ufffd" });
});

Deno.test("[D05] a block of another kind stays what it is; reading gives JSON then", async () => {
  const image = { type: "image", data: "AAAA", mimeType: "image/png" };
  const outcome = await outcomeOf({ content: [block("see"), image] });
  assert.deepEqual(outcome.content, [block("see"), image]);
  assert.deepEqual(JSON.parse(answerText(outcome)), { content: [block("see"), image] });
  assert.equal(answerText(await outcomeOf({ content: [block("a"), block("b")] })), "a\nb");
  assert.equal(answerText(await outcomeOf({ content: [] })), "(empty)");
});

Deno.test("an answer nested too deep is a known error that says the call has run", async () => {
  const nested = (levels: number): Json => {
    let value: Json = 1;
    for (let level = 0; level < levels; level += 1) value = [value];
    return value;
  };
  for (const deep of [{ structuredContent: { a: nested(50_000) } }, { content: nested(50_000) }]) {
    const outcome = await outcomeOf({ content: [block("ok")], ...deep }, typed);
    assert.equal(outcome.isError, true);
    assert.match(answerText(outcome), /"t" has run, but its answer is nested too deep.*128 levels/);
    assert.equal(outcome.structured, undefined);
  }
  const kept = await outcomeOf({ content: [], structuredContent: nested(127) });
  assert.equal(kept.isError, false);
});
