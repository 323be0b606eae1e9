/** What every provider that is reached over HTTP must do with its own wire: requests that a strict endpoint takes, and replies with the faults of real servers. */
import assert from "node:assert/strict";
import { isJsonObject, type Json } from "../../src/base/json.ts";
import type {
  AssistantPart,
  Message,
  Model,
  ModelFailure,
  ModelOutcome,
  ModelReply,
  ModelRequest,
  ModelTool,
} from "../../src/llm/model.ts";
import { createModel } from "../../src/llm/registry.ts";
import { VirtualClock } from "../doubles/virtual_clock.ts";
import { type ModelEndpoint, startModelEndpoint } from "../servers/model_endpoint.ts";
import type { EndpointReply, WireShape } from "../servers/wire_shape.ts";
import { testProvider } from "./provider_suite.ts";

/** A provider and its wire. */
export interface WireUnderTest {
  provider: string;
  shape: WireShape;
  /** A model with all abilities of the API. */
  model: string;
  /** Whether images of results go as images. */
  takesImages: boolean;
  /** Whether thinking goes back signed. */
  signsThinking: boolean;
}

/** A PNG of one pixel. */
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const GO: Message = { role: "user", text: "go" };
const TOOLS: ModelTool[] = ["mcp__a__read", "mcp__a__write"].map((name) => ({
  name,
  description: `The tool ${name}`,
  inputSchema: { type: "object", properties: { path: { type: "string" } } },
}));
/** By then every wire has brought some text. */
const CHUNKS_TO_TEXT = 4;

/** One provider talking to an endpoint of its shape. */
export class Conversation {
  readonly endpoint: ModelEndpoint;
  readonly #wire: WireUnderTest;
  readonly #model: Model;

  /** Replies in their order; the last one again and again. */
  constructor(wire: WireUnderTest, replies: readonly EndpointReply[]) {
    this.#wire = wire;
    this.endpoint = startModelEndpoint(
      (_, number) => replies[Math.min(number, replies.length) - 1] ?? { text: "end" },
      wire.shape,
    );
    this.#model = createModel({
      provider: wire.provider,
      baseUrl: this.endpoint.url,
      apiKey: "key-123456",
      apiKeyEnv: "TEST_KEY",
      clock: new VirtualClock(),
    });
  }

  ask(messages: Message[], more: Partial<ModelRequest> = {}) {
    return this.#model.request(
      { model: this.#wire.model, system: "You help", messages, tools: TOOLS, ...more },
      { signal: new AbortController().signal, onDelta: () => {} },
    );
  }

  async reply(messages: Message[], more: Partial<ModelRequest> = {}): Promise<ModelReply> {
    const outcome = await this.ask(messages, more);
    assert.ok(outcome.ok, outcome.ok ? "" : outcome.error.message);
    return outcome.reply;
  }

  async failure(messages: Message[]): Promise<ModelFailure> {
    const outcome = await this.ask(messages);
    assert.ok(!outcome.ok);
    return outcome;
  }

  /** Body of the last request, as text. */
  get sent(): string {
    return new TextDecoder().decode(this.endpoint.requests.at(-1)?.bytes);
  }

  /** Nothing that was sent may have been unsound. */
  async close(): Promise<void> {
    this.#model.close();
    await this.endpoint.close();
    assert.deepEqual(this.endpoint.violations, []);
  }
}

type Call = Extract<AssistantPart, { type: "tool-call" }>;

function callsOf(reply: ModelReply): Call[] {
  return reply.message.parts.filter((part): part is Call => part.type === "tool-call");
}

/** A reply as the journal gives it back, its calls under rnix's own ids where they must be, and a result for each. */
export function answered(
  reply: ModelReply,
  turn: number,
  content: Json[] = [{ type: "text", text: "ok" }],
): Message[] {
  const seen = new Set<string>();
  const callIds = callsOf(reply).map(({ provider_id }, index) => {
    const isUsable = provider_id !== "" && !seen.has(provider_id);
    seen.add(provider_id);
    return isUsable ? provider_id : `t${turn}.${index + 1}`;
  });
  const message: ModelReply["message"] = JSON.parse(JSON.stringify(reply.message));
  const results = callsOf(reply).map((call, index) => ({
    id: callIds[index] ?? "",
    tool: call.tool,
    isError: false,
    content,
  }));
  return [{ ...message, callIds }, { role: "tool", results }];
}

type Register = (
  what: string,
  replies: EndpointReply[],
  body: (conversation: Conversation) => Promise<void>,
) => void;

const read = (text: string | null, id?: string | null) => ({
  name: "read",
  arguments: text,
  ...(id === undefined ? {} : { id }),
});

/** Registers the tests for one provider, those of the general contract included. */
export function testWire(wire: WireUnderTest): void {
  const { provider } = wire;
  testProvider(provider, (turns) => {
    const clock = new VirtualClock();
    const endpoint = startModelEndpoint((body) => {
      const count =
        JSON.stringify(body).split(/"role":"(?:assistant|model)"|"function_call"/).length;
      const turn = turns[count > 1 ? 1 : 0] ?? {};
      const calls = (turn.calls ?? []).map(({ tool, input }, index) => ({
        name: tool,
        arguments: JSON.stringify(input),
        id: `call_${count}_${index}`,
      }));
      const text = turn.text === undefined ? {} : { text: [...turn.text] };
      return { ...text, calls, ...(turn.slow === true ? { hangAfter: CHUNKS_TO_TEXT } : {}) };
    }, wire.shape);
    const model = createModel({ provider, baseUrl: endpoint.url, apiKey: "key-123456", clock });
    return Promise.resolve({ model, close: () => endpoint.close() });
  });
  const test: Register = (what, replies, body) =>
    Deno.test(`${provider}: ${what}`, async () => {
      const conversation = new Conversation(wire, replies);
      try {
        await body(conversation);
      } finally {
        await conversation.close();
      }
    });
  testCalls(test);
  testHistories(test);
  testContentKinds(test, wire);
  testImages(test, wire);
  testThinking(test, wire);
  testFailures(test);
  testRedirects(test);
  testBrokenStreams(test);
  testStalls(wire);
  testUsage(test);
}

function testCalls(test: Register): void {
  const parallel = { calls: [read('{"path":"a"}'), read('{"path":"b"}')] };
  test("[A4] parallel calls and their results go back in order", [parallel], async (talk) => {
    const reply = await talk.reply([GO]);
    assert.deepEqual(callsOf(reply).map(({ input }) => input), [{ path: "a" }, { path: "b" }]);
    const again = await talk.reply([GO, ...answered(reply, 1)]);
    await talk.reply([GO, ...answered(reply, 1), { role: "user", text: "[rnix] a note" }]);
    assert.equal(again.finishReason, "tool-calls");
  });

  const idless = {
    calls: [read("{}", ""), read("{}", ""), read("{}", "same"), read("{}", "same")],
  };
  test("[A27] [A29] empty and repeated call ids go back as ids of rnix", [idless], async (talk) => {
    const reply = await talk.reply([GO]);
    const ids = callsOf(reply).map((call) => call.provider_id);
    assert.deepEqual(ids.slice(0, 3), ["", "", "same"]);
    assert.match(ids[3] ?? "none", /^(same)?$/);
    await talk.reply([GO, ...answered(reply, 1)]);
  });

  test("[D07] no argument text is {}", [{ calls: [read(""), read(null)] }], async (talk) => {
    const reply = await talk.reply([GO]);
    assert.deepEqual(callsOf(reply).map(({ input }) => input), [{}, {}]);
    await talk.reply([GO, ...answered(reply, 1)]);
  });

  const broken = { calls: [read('{"path": "a'), read('{"path":"b"}')] };
  test("[A4] arguments that aren't JSON are told, and go back sound", [broken], async (talk) => {
    const reply = await talk.reply([GO]);
    const [first, second] = callsOf(reply);
    assert.equal(first?.malformed, '{"path": "a');
    assert.deepEqual(second?.input, { path: "b" });
    await talk.reply([GO, ...answered(reply, 1)]);
  });
}

function testHistories(test: Register): void {
  const foreign: Message[] = [
    GO,
    {
      role: "assistant",
      parts: [
        { type: "reasoning", text: "hm", meta: { other: { signature: "of another provider" } } },
        { type: "text", text: " \n" },
        { type: "tool-call", provider_id: "functions.read:0", tool: "7 read?", input: [1] },
      ],
      callIds: ["functions.read:0"],
    },
    {
      role: "tool",
      results: [{ id: "functions.read:0", tool: "7 read?", isError: true, content: [] }],
    },
  ];
  const blank: Message[] = [
    { role: "user", text: " " },
    {
      role: "assistant",
      parts: [{ type: "tool-call", provider_id: "c", tool: "mcp__a__read", input: {} }],
      callIds: ["c"],
    },
    {
      role: "tool",
      results: [{
        id: "c",
        tool: "mcp__a__read",
        isError: false,
        content: [{ type: "text", text: "\n" }],
      }],
    },
  ];
  test("texts of nothing but space are sent as (empty)", [{ text: "ok" }], async (talk) => {
    await talk.reply(blank, { system: "" });
    assert.equal(talk.sent.split("(empty)").length - 1, 2);
  });

  test("[B37] a history that another provider made is taken", [{ text: "ok" }], async (talk) => {
    await talk.reply(foreign, { model: "other" });
  });
}

function testImages(test: Register, { takesImages }: WireUnderTest): void {
  const content = [
    { type: "text", text: "a pixel" },
    { type: "image", mimeType: "image/jpeg", data: PNG },
    { type: "image", mimeType: "image/png", data: "bm8gaW1hZ2Uh" },
  ];
  const what = takesImages ? "as images" : "as a line";
  test(`[D05] images of results go ${what}, once, unsound ones as a line`, [
    { calls: [read("{}")] },
  ], async (talk) => {
    const reply = await talk.reply([GO]);
    const [message, results] = answered(reply, 1, content);
    assert.ok(message !== undefined && results?.role === "tool");
    const structured = { image: PNG };
    const copied = results.results.map((result) => ({ ...result, structured }));
    await talk.reply([GO, message, { role: "tool", results: copied }]);
    assert.equal(talk.sent.split(PNG).length - 1, takesImages ? 1 : 0);
    assert.ok(!talk.sent.includes("bm8gaW1hZ2Uh"));
    assert.match(
      talk.sent,
      /a pixel\\n\[image image\/jpeg, \d+ bytes\]\\n\[image image\/png, 9 bytes\]/,
    );
  });
  test("[D05] a failed call's image and a result that is only an image are taken", [
    { calls: [read("{}")] },
  ], async (talk) => {
    const reply = await talk.reply([GO]);
    const [message, results] = answered(reply, 1, [{ type: "image", data: PNG }]);
    assert.ok(message !== undefined && results?.role === "tool");
    const failed = results.results.map((result) => ({ ...result, isError: true }));
    await talk.reply([GO, message, { role: "tool", results: failed }]);
    assert.match(talk.sent, /\[tool error\]/);
  });
}

function testContentKinds(test: Register, { takesImages }: WireUnderTest): void {
  const bytes = btoa(
    Array.from({ length: 6_000 }, (_, at) => String.fromCharCode(at * 167 % 251)).join(""),
  );
  const content = [
    { type: "text", text: "first" },
    { type: "audio", mimeType: "audio/wav", data: bytes },
    { type: "resource", resource: { uri: "file:///a.txt", mimeType: "text/plain", text: "body" } },
    { type: "resource", resource: { uri: "file:///a.png", mimeType: "image/png", blob: PNG } },
    {
      type: "resource",
      resource: { uri: "file:///a.pdf", mimeType: "application/pdf", blob: bytes },
    },
    { type: "resource_link", uri: "file:///big", name: "big", mimeType: "text/csv" },
    { type: "hologram", data: bytes, angle: 7 },
  ];
  const told = [
    ...["first", "[audio audio/wav, 6 KB]", "[resource file:///a.txt]", "body"],
    ...[
      "[resource file:///a.png, image/png, 70 bytes]",
      "[resource file:///a.pdf, application/pdf, 6 KB]",
    ],
    ...[
      "[resource file:///big, big, text/csv]",
      '{"type":"hologram","data":"[binary, 6 KB]","angle":7}',
    ],
  ].join("\n");
  test("[D05] every kind of content is told in its place, base64 never as text", [
    { calls: [read("{}"), read("{}")] },
  ], async (talk) => {
    const reply = await talk.reply([GO]);
    const [message, results] = answered(reply, 2, content);
    assert.ok(message !== undefined && results?.role === "tool");
    const [first, second] = results.results;
    assert.ok(first !== undefined && second !== undefined);
    const structured = { image: bytes, note: "only structured" };
    const both = [first, { ...second, content: [], structured }];
    await talk.reply([GO, message, { role: "tool", results: both }]);
    assert.ok(talk.sent.includes(JSON.stringify(told).slice(1, -1)), talk.sent);
    assert.ok(talk.sent.includes("only structured"));
    assert.equal(talk.sent.includes(bytes.slice(0, 64)), false);
    assert.equal(talk.sent.split(PNG).length - 1, takesImages ? 1 : 0);
  });
}

function testThinking(test: Register, { signsThinking }: WireUnderTest): void {
  if (!signsThinking) return;
  const reasoning = [{ text: "I must read" }, { text: "withheld", redacted: true }];
  test("[A4] thinking comes as its own part and goes back with its signature", [
    { reasoning, text: "Reading", calls: [read('{"path":"a"}'), read("{}")] },
    { reasoning: [{ text: "Enough" }], text: "done" },
    { text: "bye" },
  ], async (talk) => {
    const first = await talk.reply([GO]);
    const [thought] = first.message.parts;
    assert.deepEqual([thought?.type, thought?.type === "reasoning" && thought.text], [
      "reasoning",
      "I must read",
    ]);
    const history = [GO, ...answered(first, 1)];
    const second = await talk.reply(history);
    const signatures = signaturesIn(JSON.stringify(first.message));
    assert.ok(signatures.length > 0, JSON.stringify(first.message));
    for (const signature of signatures) assert.ok(talk.sent.includes(signature));
    const last = second.message.parts.filter((part) => part.type === "text" && part.text !== "");
    assert.deepEqual(last.map((part) => part.type === "text" && part.text), ["done"]);
    await talk.reply([
      ...history,
      { ...second.message, callIds: [] },
      { role: "user", text: "more" },
    ]);
    for (const signature of signaturesIn(JSON.stringify(second.message))) {
      assert.ok(talk.sent.includes(signature));
    }
  });
}

/** The endpoint's signatures in a text. */
export function signaturesIn(text: string): string[] {
  return text.match(/sig\+[0-9a-f]{64}\/==/g) ?? [];
}

function testFailures(test: Register): void {
  const limited = { status: 429, headers: { "retry-after": "7" }, error: { message: "slow down" } };
  test("[A4] 429 is retryable after what Retry-After says", [limited], async (talk) => {
    const { error, retryable, retryAfterMs } = await talk.failure([GO]);
    assert.deepEqual([error.code, retryable, retryAfterMs], ["RESOURCE_EXHAUSTED", true, 7000]);
    assert.match(error.message, /slow down/);
  });

  for (const status of [500, 503, 529]) {
    test(`[A4] ${status} is retryable`, [{ status, error: { message: "oh no" } }], async (talk) => {
      const { error, retryable } = await talk.failure([GO]);
      assert.deepEqual([error.code, retryable], ["DRIVER", true]);
      assert.match(error.message, new RegExp(`HTTP ${status}: oh no`));
    });
  }

  test(
    "an answer that isn't JSON is told",
    [{ status: 502, error: "<html>bad</html>" }],
    async (talk) => {
      const { error, retryable } = await talk.failure([GO]);
      assert.ok(retryable);
      assert.match(error.message, /HTTP 502: <html>bad<\/html>/);
    },
  );

  test(
    "a refused key names its variable",
    [{ status: 401, error: { message: "who" } }],
    async (talk) => {
      const { error, retryable } = await talk.failure([GO]);
      assert.deepEqual([error.code, error.hint], ["UNAUTHENTICATED", "Check the key in TEST_KEY"]);
      assert.ok(!retryable);
    },
  );

  const long = { message: "prompt is too long: the input exceeds the maximum number of tokens" };
  test("a conversation that is too long is an error of its own", [
    { status: 400, error: { type: "invalid_request_error", ...long } },
  ], async (talk) => {
    const { error, retryable, contextWindow } = await talk.failure([GO]);
    assert.deepEqual([error.code, retryable, contextWindow], ["INVALID", false, true]);
    assert.match(error.message, /longer than the context window of model/);
    assert.match(error.hint ?? "", /fallback/);
  });

  test("[A4] an error in the stream is a failure that says so", [
    {
      text: "half",
      streamError: {
        message: "Overloaded",
        code: 503,
        status: "UNAVAILABLE",
        type: "overloaded_error",
      },
    },
  ], async (talk) => {
    const { error, retryable } = await talk.failure([GO]);
    assert.ok(retryable);
    assert.match(error.message, /Overloaded/);
  });
}

function testRedirects(test: Register): void {
  for (
    const [location, place] of [
      ["http://user:pass-123456@127.0.0.1:1/steal?key=key-123456", "to http://127.0.0.1:1 "],
      ["/v2/chat?key=key-123456", "to another path of its own "],
      ["data:text/plain,key-123456", "to an address of data: "],
    ]
  ) {
    test(`a redirect ${place}is refused, not followed`, [
      { status: 307, headers: { location: location ?? "" } },
    ], async (talk) => {
      const { error, retryable } = await talk.failure([GO]);
      assert.deepEqual([error.code, retryable], ["INVALID", false]);
      assert.ok(error.message.includes(`redirects the request ${place}(HTTP 307)`), error.message);
      assert.doesNotMatch(error.message, /123456/);
      assert.equal(talk.endpoint.requests.length, 1);
    });
  }
}

function testBrokenStreams(test: Register): void {
  const whole = { reasoning: "hm", text: ["a", "b", "c"], calls: [read('{"path":"a"}')] };
  for (let chunk = 0; chunk < 5; chunk += 1) {
    test(`[A4] a stream that ends after ${chunk} chunks is retryable`, [
      { ...whole, cutAfter: chunk },
    ], async (talk) => {
      const { error, retryable } = await talk.failure([GO]);
      assert.ok(retryable, error.message);
    });
    test(`[A4] a connection that breaks after ${chunk} chunks is retryable`, [
      { ...whole, breakAfter: chunk },
    ], async (talk) => {
      const { error, retryable } = await talk.failure([GO]);
      assert.ok(retryable, error.message);
    });
  }

  test(
    "a whole request follows a broken one",
    [{ ...whole, cutAfter: 3 }, { text: "ok" }],
    async (talk) => {
      await talk.failure([GO]);
      const reply = await talk.reply([GO]);
      const [part] = reply.message.parts;
      assert.deepEqual([part?.type, part?.type === "text" && part.text], ["text", "ok"]);
    },
  );
}

function testUsage(test: Register): void {
  test(
    "tokens are counted, those from the provider's cache too",
    [{ text: "ok" }],
    async (talk) => {
      const { usage } = await talk.reply([GO]);
      assert.equal(usage.input_tokens, 100);
      assert.equal(usage.output_tokens, 10);
      if (usage.cached_tokens !== undefined) assert.equal(usage.cached_tokens, 40);
    },
  );
}

/** A network whose answers never hear of an abort, as when a runtime loses a signal: one stream of the provider's first chunks, which then stays open. */
class DeafNetwork {
  readonly asked = Promise.withResolvers<void>();
  cancelled = false;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  readonly #first: readonly string[] | undefined;

  /** Without chunks there is not even an answer. */
  constructor(first: readonly string[] | undefined) {
    this.#first = first;
  }

  readonly fetch: typeof fetch = () => {
    this.asked.resolve();
    if (this.#first === undefined) return new Promise(() => {});
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        this.#controller = controller;
        for (const chunk of this.#first ?? []) this.send(chunk);
      },
      cancel: () => {
        this.cancelled = true;
      },
    });
    const headers = { "content-type": "text/event-stream" };
    return Promise.resolve(new Response(body, { headers }));
  };

  send(text: string): void {
    this.#controller?.enqueue(new TextEncoder().encode(text));
  }
}

const STALL_MS = 60_000;

function testStalls({ provider, shape, model }: WireUnderTest): void {
  const places: [string, number | undefined][] = [
    ["before its answer", undefined],
    ["before its first chunk", 0],
    ["in the middle", CHUNKS_TO_TEXT],
  ];
  for (const [place, count] of places) {
    Deno.test(`${provider}: a request that stalls ${place} ends by models.timeout, keep-alives or not, though nothing below hears the abort`, async () => {
      const chunks = shape.chunks({ model }, { text: ["a", "b", "c"] }, 1);
      const network = new DeafNetwork(count === undefined ? undefined : chunks.slice(0, count));
      const clock = new VirtualClock();
      const own = globalThis.fetch;
      globalThis.fetch = network.fetch;
      const baseUrl = "http://deaf.invalid/v1";
      const made = createModel({ provider, baseUrl, apiKey: "key-1", clock, timeoutMs: STALL_MS });
      try {
        const ends: ModelOutcome[] = [];
        made.request(
          { model, system: "", messages: [GO], tools: [] },
          { signal: new AbortController().signal, onDelta: () => {} },
        ).then((outcome) => ends.push(outcome));
        await network.asked.promise;
        await clock.advance(STALL_MS / 2);
        network.send(": ping\n\n");
        await clock.advance(STALL_MS / 2 - 1);
        assert.equal(ends.length, 0);
        await clock.advance(1);
        const [ended] = ends;
        assert.ok(ended !== undefined, "it still waits");
        assert.ok(!ended.ok && ended.retryable);
        assert.match(ended.error.message, /nothing for 1m \(models\.timeout\)/);
        assert.equal(network.cancelled, count !== undefined);
      } finally {
        globalThis.fetch = own;
        made.close();
      }
    });
  }
}

/** The tools of a request that an endpoint has seen. */
export function toolsSent({ endpoint }: Conversation): Json[] {
  const tools = endpoint.requests.at(-1)?.body["tools"];
  return Array.isArray(tools) ? tools.filter(isJsonObject) : [];
}
