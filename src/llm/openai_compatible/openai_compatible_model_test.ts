import assert from "node:assert/strict";
import { VirtualClock } from "../../../tests/doubles/virtual_clock.ts";
import { chatShape } from "../../../tests/servers/chat_shape.ts";
import {
  type EndpointReply,
  type ModelEndpoint,
  type Responder,
  startModelEndpoint,
} from "../../../tests/servers/model_endpoint.ts";
import { testWire } from "../../../tests/suites/wire_suite.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import type {
  AssistantPart,
  Message,
  Model,
  ModelDelta,
  ModelOutcome,
  ModelRequest,
  ModelTool,
  ToolResult,
} from "../model.ts";
import { createModel } from "../registry.ts";

const clock = new VirtualClock();

const modelAt = (
  url: string,
  settings: { apiKey?: string; apiKeyEnv?: string } = {},
  time = clock,
): Model => createModel({ provider: "openai-compatible", baseUrl: url, clock: time, ...settings });

const tool = (
  name: string,
  inputSchema: ModelTool["inputSchema"] = { type: "object", properties: {} },
): ModelTool => ({
  name,
  description: `The tool ${name}`,
  inputSchema,
});

const TOOLS = [tool("mcp__fs__read_file"), tool("mcp__fs__write_file")];

const requestOf = (messages: Message[], tools: readonly ModelTool[] = TOOLS): ModelRequest => ({
  model: "test-model",
  system: "You help",
  messages,
  tools,
});

function ask(
  model: Model,
  request: ModelRequest,
  deltas: ModelDelta[] = [],
): Promise<ModelOutcome> {
  return model.request(request, {
    signal: new AbortController().signal,
    onDelta: (delta) => deltas.push(delta),
  });
}

/** Runs a test against an endpoint that must not see one unsound request. */
async function withEndpoint(
  responder: Responder,
  body: (endpoint: ModelEndpoint, model: Model) => Promise<void>,
): Promise<void> {
  const endpoint = startModelEndpoint(responder);
  const model = modelAt(endpoint.url, { apiKey: "key-123456", apiKeyEnv: "TEST_KEY" });
  try {
    await body(endpoint, model);
    assert.deepEqual(endpoint.violations, []);
  } finally {
    model.close();
    await endpoint.close();
  }
}

async function partsOf(reply: EndpointReply, tools = TOOLS): Promise<AssistantPart[]> {
  let parts: AssistantPart[] = [];
  await withEndpoint(() => reply, async (_endpoint, model) => {
    const outcome = await ask(model, requestOf([GO], tools));
    assert.ok(outcome.ok, outcome.ok ? "" : outcome.error.message);
    parts = outcome.reply.message.parts;
  });
  return parts;
}

const GO: Message = { role: "user", text: "go" };

const callOf = (
  id: string,
  input: Json = {},
  name = "mcp__fs__read_file",
): Extract<AssistantPart, { type: "tool-call" }> => ({
  type: "tool-call",
  provider_id: id,
  tool: name,
  input,
});

const result = (id: string, content: Json[], more: Partial<ToolResult> = {}): ToolResult => ({
  id,
  tool: "mcp__fs__read_file",
  isError: false,
  content,
  ...more,
});

const text = (value: string) => ({ type: "text", text: value });

/** Contents of the tool messages that one history becomes. */
async function toolTexts(results: ToolResult[]): Promise<Json[]> {
  const history: Message[] = [
    GO,
    {
      role: "assistant",
      parts: results.map((one) => callOf(one.id)),
      callIds: results.map((one) => one.id),
    },
    { role: "tool", results },
  ];
  let contents: Json[] = [];
  await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
    assert.ok((await ask(model, requestOf(history))).ok);
    const messages = endpoint.requests[0]?.body.messages;
    contents = (Array.isArray(messages) ? messages : [])
      .filter((message) => isJsonObject(message)).filter((message) => message.role === "tool")
      .map((message) => message.content ?? null);
  });
  return contents;
}

testWire({
  provider: "openai-compatible",
  shape: chatShape,
  model: "test-model",
  takesImages: false,
  signsThinking: false,
});

Deno.test("a request carries key, headers, system text, tools in order and asks for usage", async () => {
  const endpoint = startModelEndpoint(() => ({ text: "ok" }));
  const model = createModel({
    provider: "openai-compatible",
    baseUrl: endpoint.url,
    apiKey: "key-123456",
    headers: { "x-extra": "1" },
    clock,
  });
  const outcome = await ask(model, requestOf([GO]));
  await endpoint.close();
  assert.ok(outcome.ok);
  const [request] = endpoint.requests;
  assert.equal(request?.headers.authorization, "Bearer key-123456");
  assert.equal(request?.headers["x-extra"], "1");
  assert.deepEqual(request?.body, {
    model: "test-model",
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "system", content: "You help" }, { role: "user", content: "go" }],
    tools: TOOLS.map(({ name, description, inputSchema }) => ({
      type: "function",
      function: { name, description, parameters: inputSchema },
    })),
  });
  assert.deepEqual(outcome.reply.usage, { input_tokens: 100, output_tokens: 10 });
});

Deno.test("without a key there is no authorization header, without tools no list of tools", async () => {
  const endpoint = startModelEndpoint(() => ({ text: "ok" }));
  await ask(modelAt(endpoint.url), { ...requestOf([GO], []), system: "" });
  await endpoint.close();
  assert.equal(endpoint.requests[0]?.headers.authorization, undefined);
  assert.deepEqual(Object.keys(endpoint.requests[0]?.body ?? {}).toSorted(), [
    "messages",
    "model",
    "stream",
    "stream_options",
  ]);
  assert.deepEqual(endpoint.violations, []);
});

Deno.test("[A2] request bytes are the same whether the history is cached or translated anew", async () => {
  await withEndpoint(
    (_body, number) => ({ calls: [{ name: "read_file", arguments: `{"n":${number}}` }] }),
    async (endpoint, model) => {
      const messages: Message[] = [GO];
      for (let turn = 0; turn < 5; turn++) {
        const outcome = await ask(model, requestOf([...messages]));
        assert.ok(outcome.ok);
        const ids = outcome.reply.message.parts.map((part) =>
          part.type === "tool-call" ? part.provider_id : ""
        );
        messages.push({ ...outcome.reply.message, callIds: ids });
        messages.push({ role: "tool", results: ids.map((id) => result(id, [text("é😀")])) });
      }
      const fresh = modelAt(endpoint.url);
      for (let turn = 0; turn < 5; turn++) {
        const copy: Message[] = JSON.parse(JSON.stringify(messages.slice(0, 1 + 2 * turn)));
        await ask(fresh, requestOf(copy, [...TOOLS]));
        assert.deepEqual(endpoint.requests[5 + turn]?.bytes, endpoint.requests[turn]?.bytes);
      }
    },
  );
});

Deno.test("a history that was changed before its end is sent as it is now, of whatever length", async () => {
  await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
    const turn = (id: string, content: string): Message[] => [
      { role: "assistant", parts: [callOf(id)], callIds: [id] },
      { role: "tool", results: [result(id, [text(content)])] },
    ];
    const last = turn("b", "B");
    const summary: Message = { role: "user", text: "A summary", repliesBefore: 1 };
    const histories: Message[][] = [
      [GO, ...turn("a", "long"), ...last],
      [GO, ...turn("a", "(left out)"), ...last],
      [GO, summary, ...last],
    ];
    for (const history of histories) assert.ok((await ask(model, requestOf(history))).ok);
    for (const [at, history] of histories.entries()) {
      await ask(modelAt(endpoint.url), requestOf(history, [...TOOLS]));
      assert.deepEqual(endpoint.requests[at]?.bytes, endpoint.requests.at(-1)?.bytes);
    }
    assert.doesNotMatch(JSON.stringify(endpoint.requests.at(-1)?.body), /repliesBefore/);
  });
});

Deno.test("requests of different histories at once and in turn each carry their own", async () => {
  const said = (body: JsonObject) =>
    (Array.isArray(body.messages) ? body.messages : []).filter((one) => isJsonObject(one))
      .map((one) => String(one.content)).slice(1).join("|");
  await withEndpoint((body) => ({ text: said(body), delayMs: 1 }), async (_endpoint, model) => {
    const histories = Array.from(
      { length: 4 },
      (_, run): Message[] => [{ role: "user", text: `run ${run}` }],
    );
    for (let turn = 0; turn < 4; turn++) {
      const outcomes = await Promise.all(
        histories.map((messages) => ask(model, requestOf([...messages]))),
      );
      for (const [run, outcome] of outcomes.entries()) {
        assert.ok(outcome.ok);
        const messages = histories[run] ?? [];
        const expected = messages.map((one) =>
          one.role === "user" ? one.text : one.role === "assistant" ? "hm" : ""
        ).join("|");
        assert.deepEqual(outcome.reply.message.parts, [{ type: "text", text: expected }]);
        messages.push({ role: "assistant", parts: [{ type: "text", text: "hm" }], callIds: [] }, {
          role: "user",
          text: `${run}.${turn}`,
        });
      }
    }
  });
});

Deno.test("a request after an aborted or failed one is sound and complete", async () => {
  await withEndpoint(
    (_body, number) => number % 2 === 1 ? { text: "a", hangAfter: 2 } : { text: "b" },
    async (_endpoint, model) => {
      for (let round = 0; round < 3; round++) {
        const controller = new AbortController();
        const cut = await model.request(requestOf([GO]), {
          signal: controller.signal,
          onDelta: () => controller.abort(),
        });
        assert.ok(!cut.ok);
        const outcome = await ask(model, requestOf([GO]));
        assert.deepEqual(outcome.ok && outcome.reply.message.parts, [{ type: "text", text: "b" }]);
      }
    },
  );
});

Deno.test("text that looks like the body's own marks stays text", async () => {
  await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
    const evil = '"messages":"@messages" $& "tools":"@tools"';
    assert.ok(
      (await ask(model, { ...requestOf([{ role: "user", text: evil }]), system: evil })).ok,
    );
    assert.deepEqual(endpoint.requests[0]?.body.messages, [
      { role: "system", content: evil },
      { role: "user", content: evil },
    ]);
  });
});

Deno.test("[A29] an empty or missing call id comes back as empty, never as one made up", async () => {
  const parts = await partsOf({
    calls: [{ name: "read_file", arguments: "{}", id: "" }, {
      name: "read_file",
      arguments: "{}",
      id: null,
    }],
  });
  assert.deepEqual(parts, [callOf(""), callOf("")]);
});

Deno.test("[A27] an id that a reply repeats is kept once", async () => {
  const parts = await partsOf({
    calls: [{ name: "read_file", arguments: "{}", id: "call_00" }, {
      name: "write_file",
      arguments: "{}",
      id: "call_00",
    }],
  });
  assert.deepEqual(parts, [callOf("call_00"), callOf("", {}, "mcp__fs__write_file")]);
});

Deno.test("[A27] [A29] calls go back under the ids that rnix gave, whatever the provider's were", async () => {
  await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
    const history: Message[] = [GO];
    for (const id of ["own-1", "own-2"]) {
      history.push({ role: "assistant", parts: [callOf("call_00")], callIds: [id] });
      history.push({ role: "tool", results: [result(id, [text("x")])] });
    }
    assert.ok((await ask(model, requestOf(history))).ok);
    const sent = JSON.stringify(endpoint.requests[0]?.body);
    assert.ok(sent.includes("own-2") && !sent.includes("call_00"));
  });
});

Deno.test("a message appended while a request is on its way isn't in it", async () => {
  await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
    const messages = [GO];
    const work = ask(model, requestOf(messages));
    messages.push({ role: "user", text: "late" });
    assert.ok((await work).ok);
    assert.ok((await ask(model, requestOf(messages))).ok);
    const counts = endpoint.requests.map(({ body }) =>
      Array.isArray(body.messages) && body.messages.length
    );
    assert.deepEqual(counts, [2, 3]);
  });
});

Deno.test("[D07] empty and null arguments are {}", async () => {
  const parts = await partsOf({
    calls: ["", null, "null", "  "].map((args, index) => ({
      name: "read_file",
      arguments: args,
      id: `c${index}`,
    })),
  });
  assert.deepEqual(parts, [0, 1, 2, 3].map((index) => callOf(`c${index}`)));
});

Deno.test("arguments that aren't JSON are kept as malformed, and go back as {}", async () => {
  const broken = '{"path": "a';
  const parts = await partsOf({ calls: [{ name: "read_file", arguments: broken, id: "c" }] });
  assert.deepEqual(parts, [{ ...callOf("c", null), malformed: broken }]);
  await withEndpoint(() => ({ text: "ok" }), async (_endpoint, model) => {
    const history: Message[] = [GO, { role: "assistant", parts, callIds: ["c"] }, {
      role: "tool",
      results: [result("c", [text("not JSON")])],
    }];
    assert.ok((await ask(model, requestOf(history))).ok);
  });
});

Deno.test("a tool name that the model made up goes back in a form that the API takes", async () => {
  await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
    const parts = [
      callOf("c", {}, "do it! 😀"),
      callOf("d", {}, "x".repeat(80)),
      callOf("e", {}, ""),
    ];
    const results = parts.map((part) =>
      result(part.provider_id, [text("no such tool")], { tool: part.tool })
    );
    await ask(
      model,
      requestOf([GO, { role: "assistant", parts, callIds: ["c", "d", "e"] }, {
        role: "tool",
        results,
      }]),
    );
    assert.match(JSON.stringify(endpoint.requests[0]?.body), /"do_it____"/);
  });
});

Deno.test("inputs of any JSON type and of odd keys survive the way back", async () => {
  const inputs: Json[] = [JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}'), {
    b: 1,
    a: [null, "\u2028"],
  }];
  await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
    const parts = inputs.map((input, index) => callOf(`c${index}`, input));
    const ids = parts.map((part) => part.provider_id);
    await ask(
      model,
      requestOf([GO, { role: "assistant", parts, callIds: ids }, {
        role: "tool",
        results: ids.map((id) => result(id, [text("x")])),
      }]),
    );
    const sent = JSON.stringify(endpoint.requests[0]?.body);
    for (const input of inputs) {
      assert.ok(sent.includes(JSON.stringify(JSON.stringify(input))), sent);
    }
  });
});

Deno.test("results become text: structured content only without other content, nothing becomes (empty), errors are marked", async () => {
  assert.deepEqual(
    await toolTexts([
      result("a", [text("one"), text("two")], { structured: { x: 1 } }),
      result("b", [], { structured: { x: 1 } }),
      result("c", []),
      result("d", [text("")], { isError: true }),
      result("e", [text("bad")], { isError: true }),
    ]),
    ["one\ntwo", '{"x":1}', "(empty)", "[tool error]\n(empty)", "[tool error]\nbad"],
  );
});

Deno.test("[D05] an image is named with its size, its base64 never sent as text", async () => {
  const data = "A".repeat(400_000);
  const [content] = await toolTexts([
    result("a", [text("see"), { type: "image", data, mimeType: "image/png" }]),
  ]);
  assert.equal(content, "see\n[image image/png, 293 KB]");
});

Deno.test("[D09] lone surrogates in texts, inputs and results never reach the provider", async () => {
  const lone = "a\ud83d";
  await withEndpoint(() => ({ text: "ok" }), async (_endpoint, model) => {
    const parts: AssistantPart[] = [{ type: "text", text: lone }, callOf("c", { [lone]: lone })];
    const outcome = await ask(model, {
      ...requestOf([{ role: "user", text: lone }, { role: "assistant", parts, callIds: ["c"] }, {
        role: "tool",
        results: [result("c", [text(lone)])],
      }], [
        { ...tool("t"), description: lone },
      ]),
      system: lone,
    });
    assert.ok(outcome.ok);
  });
});

Deno.test("an assistant message that says nothing and an empty user text are still sent as content", async () => {
  await withEndpoint(() => ({ text: "ok" }), async (_endpoint, model) => {
    const history: Message[] = [{ role: "user", text: "" }, {
      role: "assistant",
      parts: [],
      callIds: [],
    }, GO];
    assert.ok((await ask(model, requestOf(history))).ok);
  });
});

Deno.test("[B27] a tool with a bad schema is left out, the others work", async () => {
  await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
    const outcome = await ask(
      model,
      requestOf([GO], [tool("bad", { type: "string" }), tool("good")]),
    );
    assert.ok(outcome.ok);
    const sent = JSON.stringify(endpoint.requests[0]?.body.tools);
    assert.ok(sent.includes('"good"') && !sent.includes('"bad"'));
  });
});

Deno.test("[B27] a description that is too long for one goes on in that of the parameters, whole", async () => {
  const words = Array.from({ length: 400 }, (_, word) => `word${word}`).join(" ");
  for (const description of [words, "😀".repeat(900), `x${"😀".repeat(900)}`]) {
    await withEndpoint(() => ({ text: "ok" }), async (endpoint, model) => {
      const long = { ...tool("long", { type: "object", description: "own" }), description };
      assert.ok((await ask(model, requestOf([GO], [long]))).ok);
      const [sent] = endpoint.requests[0]?.body.tools as { function: JsonObject }[];
      const { description: head = "", parameters } = sent?.function ?? {};
      assert.ok(String(head).length <= 1024 && String(head).isWellFormed());
      const [first = ""] = String(head).split(" … (goes on in the description of the parameters)");
      const rest = (parameters as JsonObject)["description"];
      assert.ok([`${first} ${rest}`, `${first}${rest}`].includes(`${description}\n\nown`));
    });
  }
});

Deno.test("reasoning comes as deltas and as a part of its own before the text", async () => {
  const deltas: ModelDelta[] = [];
  await withEndpoint(() => ({ reasoning: "hm", text: ["a", "b"] }), async (_endpoint, model) => {
    const outcome = await ask(model, requestOf([GO]), deltas);
    assert.ok(outcome.ok);
    assert.deepEqual(outcome.reply.message.parts, [{ type: "reasoning", text: "hm" }, {
      type: "text",
      text: "ab",
    }]);
  });
  assert.deepEqual(deltas, [{ type: "reasoning", text: "hm" }, { type: "text", text: "a" }, {
    type: "text",
    text: "b",
  }]);
});

Deno.test("finish reasons and usage come through; without usage it is estimated", async () => {
  await withEndpoint(
    (_body, number) =>
      number === 1 ? { text: "abcd", finish: "length", usage: null } : {
        calls: [{ name: "read_file", arguments: "{}" }],
        finish: "stop",
        usage: {
          prompt_tokens: 7,
          completion_tokens: 3,
          prompt_tokens_details: { cached_tokens: 5 },
        },
      },
    async (_endpoint, model) => {
      const first = await ask(model, requestOf([GO]));
      assert.ok(first.ok);
      assert.equal(first.reply.finishReason, "length");
      assert.ok(first.reply.usage.input_tokens > 50 && first.reply.usage.output_tokens > 0);
      const second = await ask(model, requestOf([GO]));
      assert.ok(second.ok);
      assert.equal(second.reply.finishReason, "tool-calls");
      assert.deepEqual(second.reply.usage, { input_tokens: 7, output_tokens: 3, cached_tokens: 5 });
    },
  );
});
