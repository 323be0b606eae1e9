import assert from "node:assert/strict";
import { VirtualClock } from "../../../tests/doubles/virtual_clock.ts";
import { testProvider } from "../../../tests/suites/provider_suite.ts";
import { systemClock } from "../../base/clock.ts";
import { SysError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { Message, ModelDelta, ModelOutcome, ModelReply, ModelRequest } from "../model.ts";
import { parseScript } from "./script.ts";
import { ScriptedModel } from "./scripted_model.ts";

const TOOLS = ["mcp__fs__list_directory", "mcp__fs__read_file", "mcp__web__read_page"]
  .map((name) => ({ name, description: "", inputSchema: {} }));

const modelOf = (text: string, clock = new VirtualClock()) =>
  new ScriptedModel(parseScript("script.yaml", text), clock);

const requestOf = (messages: Message[], tools = TOOLS): ModelRequest => ({
  model: "demo",
  system: "You help",
  messages,
  tools,
});

function ask(
  model: ScriptedModel,
  messages: Message[],
  onDelta: (delta: ModelDelta) => void = () => {},
  signal = new AbortController().signal,
): Promise<ModelOutcome> {
  return model.request(requestOf(messages), { signal, onDelta });
}

async function replyTo(model: ScriptedModel, messages: Message[]): Promise<ModelReply> {
  const outcome = await ask(model, messages);
  assert.ok(outcome.ok, outcome.ok ? "" : outcome.error.message);
  return outcome.reply;
}

async function failureOf(model: ScriptedModel, messages: Message[]): Promise<SysError> {
  const outcome = await ask(model, messages);
  assert.ok(!outcome.ok);
  assert.equal(outcome.retryable, false);
  return outcome.error;
}

const user = (text: string): Message => ({ role: "user", text });

/** A reply and its results, as they come back in the next request. */
function answered(
  reply: ModelReply,
  results: { text: string; structured?: Json; isError?: boolean }[],
) {
  const calls = reply.message.parts.filter((part) => part.type === "tool-call");
  const messages: Message[] = [{
    ...reply.message,
    callIds: calls.map((call) => call.provider_id),
  }];
  if (calls.length > 0) {
    messages.push({
      role: "tool",
      results: calls.map((call, index) => ({
        id: call.provider_id,
        tool: call.tool,
        isError: results[index]?.isError ?? false,
        content: [{ type: "text", text: results[index]?.text ?? "" }],
        ...(results[index]?.structured === undefined
          ? {}
          : { structured: results[index].structured }),
      })),
    });
  }
  return messages;
}

/** Plays a script to its end, every result being `r<number>.<call>`. */
async function play(
  model: ScriptedModel,
  messages: Message[],
  turnsMax = 50,
): Promise<ModelReply[]> {
  const replies: ModelReply[] = [];
  while (replies.length < turnsMax) {
    const reply = await replyTo(model, messages);
    replies.push(reply);
    const calls = reply.message.parts.filter((part) => part.type === "tool-call");
    if (calls.length === 0) break;
    messages.push(
      ...answered(reply, calls.map((_, index) => ({ text: `r${replies.length}.${index}` }))),
    );
  }
  return replies;
}

const inputs = (reply: ModelReply | undefined) =>
  reply?.message.parts.filter((part) => part.type === "tool-call").map((part) => part.input);

testProvider("scripted", (turns) => {
  const script = JSON.stringify({
    turns: turns.map(({ slow, ...turn }) =>
      slow ? { ...turn, stream: { size: 1, every: "50ms" }, text: turn.text?.padEnd(10_000) } : turn
    ),
  });
  return Promise.resolve({
    model: new ScriptedModel(parseScript("suite.yaml", script), systemClock),
    close: () => Promise.resolve(),
  });
});

Deno.test("a script plays its turns in order, with parallel calls and a final text", async () => {
  const model = modelOf(`
turns:
  - text: Looking
    calls:
      - { tool: list_directory, input: { path: . } }
      - { tool: mcp__fs__read_file, input: { path: a.txt } }
  - text: Done
`);
  const [first, second, ...rest] = await play(model, [user("go")]);
  assert.deepEqual(first?.message.parts, [
    { type: "text", text: "Looking" },
    {
      type: "tool-call",
      provider_id: "call_1_0",
      tool: "mcp__fs__list_directory",
      input: { path: "." },
    },
    {
      type: "tool-call",
      provider_id: "call_1_1",
      tool: "mcp__fs__read_file",
      input: { path: "a.txt" },
    },
  ]);
  assert.equal(first?.finishReason, "tool-calls");
  assert.deepEqual(second?.message.parts, [{ type: "text", text: "Done" }]);
  assert.equal(second?.finishReason, "stop");
  assert.equal(rest.length, 0);
});

Deno.test("a reply depends on the request alone, so a resumed run goes on exactly", async () => {
  const text = `
turns:
  - repeat: 3
    calls: [{ tool: read_file, input: { path: "\${{ index }}", before: "\${{ intent }}" } }]
  - text: "\${{ results.t3.0.text }}"
`;
  const messages = [user("go")];
  const replies = await play(modelOf(text), messages);
  for (let count = 0; count < replies.length; count++) {
    const again = await replyTo(modelOf(text), messages.slice(0, 1 + 2 * count));
    assert.deepEqual(again, replies[count]);
  }
  assert.equal(replies.length, 4);
});

Deno.test("repeats count with index and round, groups repeat their turns in order", async () => {
  const model = modelOf(`
turns:
  - repeat: 2
    turns:
      - { calls: [{ tool: read_file, input: { n: "\${{ index }}" } }] }
      - { calls: [{ tool: read_page, input: { n: "no. \${{ round }}" } }] }
  - text: end
`);
  const replies = await play(model, [user("go")]);
  assert.deepEqual(replies.map(inputs), [
    [{ n: 0 }],
    [{ n: "no. 1" }],
    [{ n: 1 }],
    [{ n: "no. 2" }],
    [],
  ]);
});

Deno.test("a string that is one reference takes the value's type, elsewhere it is put in as text", async () => {
  const model = modelOf(`
turns:
  - { id: look, calls: [{ tool: read_file }, { tool: read_page }] }
  - calls:
      - tool: read_file
        input:
          whole: "\${{ results.t1.0.structured.items }}"
          item: "\${{results.look.0.structured.items.1.name}}"
          inside: "a \${{ results.last.0.structured.items.0 }} b"
          block: "\${{ results.last.1.content.0.type }}"
          failed: "\${{ results.last.1.error }}"
          parsed: "\${{ results.last.1.structured.x }}"
          literal: "$\${{ intent }}"
          list: ["\${{ intent }}"]
`);
  const messages = [user("first"), user("second")];
  const first = await replyTo(model, messages);
  messages.push(...answered(first, [
    { text: "-", structured: { items: [{ a: 1 }, { name: "n" }] } },
    { text: '{"x": 7}', isError: true },
  ]));
  assert.deepEqual(inputs(await replyTo(model, messages)), [{
    whole: [{ a: 1 }, { name: "n" }],
    item: "n",
    inside: 'a {"a":1} b',
    block: "text",
    failed: true,
    parsed: 7,
    literal: "${{ intent }}",
    list: ["second"],
  }]);
});

Deno.test("what rnix tells the model in the user's place is no intent", async () => {
  const model = modelOf("turns: [{ text: 'to do: ${{ intent }}' }]");
  const reply = await replyTo(model, [user("dig"), user('[rnix] The server "s" is not available')]);
  assert.deepEqual(reply.message.parts, [{ type: "text", text: "to do: dig" }]);
});

Deno.test("a turn's id means its latest reply before this one", async () => {
  const model = modelOf(`
turns:
  - { calls: [{ tool: read_file }] }
  - repeat: 2
    turns:
      - { id: ask, calls: [{ tool: read_page, input: { round: "\${{ round }}" } }] }
      - { calls: [{ tool: read_file, input: { got: "\${{ results.ask.0.text }}" } }] }
  - text: "\${{ results.ask.0.text }}"
`);
  const replies = await play(model, [user("go")]);
  assert.deepEqual(inputs(replies[2]), [{ got: "r2.0" }]);
  assert.deepEqual(inputs(replies[4]), [{ got: "r4.0" }]);
  assert.deepEqual(replies[5]?.message.parts, [{ type: "text", text: "r4.0" }]);
});

Deno.test("final answers every request after the last turn", async () => {
  const model = modelOf("turns: [{ text: one }]\nfinal: 'last: ${{ intent }}'");
  const first = await replyTo(model, [user("a")]);
  const messages = [user("a"), ...answered(first, []), user("b")];
  const second = await replyTo(model, messages);
  assert.deepEqual(second.message.parts, [{ type: "text", text: "last: b" }]);
  messages.push(...answered(second, []), user("c"));
  assert.deepEqual((await replyTo(model, messages)).message.parts, [{
    type: "text",
    text: "last: c",
  }]);
});

Deno.test("a script that has ended fails the request for good, with what to do", async () => {
  const model = modelOf("turns: [{ calls: [{ tool: read_file }] }]");
  const messages = [user("go")];
  messages.push(...answered(await replyTo(model, messages), [{ text: "x" }]));
  const error = await failureOf(model, messages);
  assert.equal(error.code, "INVALID");
  assert.equal(error.message, 'Script "script.yaml" has ended: it has 1 reply, this is request 2');
  assert.match(error.hint ?? "", /final: TEXT/);
});

Deno.test("an unknown tool fails the request and names the nearest", async () => {
  const error = await failureOf(modelOf("turns: [{ calls: [{ tool: read_fil }] }]"), [user("go")]);
  assert.equal(error.message, 'script.yaml:1:19: Reply 1: There is no tool "read_fil"');
  assert.equal(error.hint, 'Did you mean "read_file"?');
});

Deno.test("a suffix counts only after a double underscore and only if it is unique", async () => {
  assert.match(
    (await failureOf(modelOf("turns: [{ calls: [{ tool: file }] }]"), [user("go")])).message,
    /no tool "file"/,
  );
  const model = modelOf("turns: [{ calls: [{ tool: read }] }]");
  const tools = ["mcp__a__read", "mcp__b__read"].map((name) => ({
    name,
    description: "",
    inputSchema: {},
  }));
  const outcome = await model.request(requestOf([user("go")], tools), {
    signal: new AbortController().signal,
    onDelta: () => {},
  });
  assert.ok(!outcome.ok && !outcome.retryable);
  assert.match(outcome.error.message, /"read" is ambiguous: mcp__a__read, mcp__b__read/);
});

Deno.test("a call with offered false goes out under the name as written", async () => {
  const reply = await replyTo(modelOf("turns: [{ calls: [{ tool: nope, offered: false }] }]"), [
    user("go"),
  ]);
  assert.equal(reply.message.parts[0]?.type === "tool-call" && reply.message.parts[0].tool, "nope");
});

Deno.test("[D07] argument text is read as a provider's: empty and null are {}, broken text is malformed", async () => {
  const model = modelOf(`
turns:
  - calls:
      - { tool: read_file, arguments: "" }
      - { tool: read_file, arguments: "null" }
      - { tool: read_file, arguments: '{"a": 1}' }
      - { tool: read_file, arguments: '{"a": ' }
`);
  const reply = await replyTo(model, [user("go")]);
  assert.deepEqual(inputs(reply), [{}, {}, { a: 1 }, null]);
  const last = reply.message.parts.at(-1);
  assert.equal(last?.type === "tool-call" && last.malformed, '{"a": ');
});

Deno.test("a reference to a result that isn't there fails the request and says which", async () => {
  const error = await failureOf(modelOf('turns: [{ text: "${{ results.t9.0.text }}" }]'), [
    user("go"),
  ]);
  assert.equal(error.code, "INVALID");
  assert.match(
    error.message,
    /^script\.yaml:1:9: Reply 1: \$\{\{ results\.t9\.0\.text \}\} refers to a result that isn't there/,
  );
});

Deno.test("delays and streaming pass on the injected clock, pieces are cut on code points", async () => {
  const clock = new VirtualClock();
  const model = modelOf(
    "turns: [{ text: 'a😀b', delay: 2s, stream: { size: 1, every: 500ms } }]",
    clock,
  );
  const seen: [string, number][] = [];
  const work = ask(model, [user("go")], (delta) => seen.push([delta.text, clock.monotonic()]));
  await clock.run(work);
  assert.deepEqual(seen, [["a", 2500], ["😀", 3000], ["b", 3500]]);
});

Deno.test("without stream the text is one delta; stream at the top holds for all turns", async () => {
  const deltas: string[] = [];
  const note = (delta: ModelDelta) => deltas.push(delta.text);
  await ask(modelOf("turns: [{ text: hello }]"), [user("go")], note);
  await ask(modelOf("stream: { size: 2 }\nturns: [{ text: hello }]"), [user("go")], note);
  assert.deepEqual(deltas, ["hello", "he", "ll", "o"]);
});

Deno.test("an abort during a delay ends the request at once with the signal's error", async () => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  const work = ask(
    modelOf("turns: [{ text: a, delay: 1h }]", clock),
    [user("go")],
    () => {},
    controller.signal,
  );
  await clock.advance(10);
  controller.abort(new SysError("BUDGET_EXCEEDED", "Out of time"));
  const outcome = await work;
  assert.ok(!outcome.ok && !outcome.retryable);
  assert.equal(outcome.error.code, "BUDGET_EXCEEDED");
  assert.equal(clock.pending, 0);
});

Deno.test("an abort without a SysError becomes TIMEOUT", async () => {
  const outcome = await ask(
    modelOf("turns: [{ text: a }]"),
    [user("go")],
    () => {},
    AbortSignal.abort(),
  );
  assert.equal(!outcome.ok && outcome.error.code, "TIMEOUT");
});

Deno.test("usage is the same for the same request and grows with the history", async () => {
  const text = "turns: [{ repeat: 3, calls: [{ tool: read_file }] }, { text: done }]";
  const [one, two] = [
    await play(modelOf(text), [user("go")]),
    await play(modelOf(text), [user("go")]),
  ];
  assert.deepEqual(one.map((reply) => reply.usage), two.map((reply) => reply.usage));
  const counts = one.map((reply) => reply.usage.input_tokens);
  assert.deepEqual(counts, counts.toSorted((a, b) => a - b));
  assert.ok((counts[0] ?? 0) > 0 && (one[0]?.usage.output_tokens ?? 0) > 0);
});
