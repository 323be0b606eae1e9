import assert from "node:assert/strict";
import { sleep } from "../../src/base/clock.ts";
import { EFFECT_CLASSES, type EffectClass } from "../../src/base/effect.ts";
import { SysError } from "../../src/base/errors.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { lost, ok, taking, type ToolDouble } from "./server_double.ts";

const DONE = "Done.";

async function resultsOf(stage: KernelStage, runId: string) {
  const results = await stage.entriesOf(runId, "call.result");
  return results.map((result) =>
    result.outcome === "unknown"
      ? "unknown"
      : `${result.outcome}: ${JSON.stringify(result.content)}`
  );
}

Deno.test("what can't be sent is a known error without an intent: unknown tool, malformed arguments, a tool that isn't allowed", async () => {
  const server = new ServerDouble({
    tools: { search_a: {}, secret: {} },
    allow: ["search_*"],
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [
      [
        { tool: "world__no_such" },
        { tool: "world__secret" },
        { tool: "world__search_a", malformed: '{"a": ', input: null },
        { tool: "world__search_a", input: { a: 1 } },
      ],
      DONE,
    ],
  });
  const { end, runId } = await stage.run();
  assert.equal(end.state, "exited");
  assert.deepEqual(stage.model.asked[0]?.tools.map(({ name }) => name), ["search_a"]);
  assert.deepEqual((await stage.entriesOf(runId, "call.intent")).map(({ call }) => call), ["t1.4"]);
  assert.equal(server.calls.length, 1);
  const results = await stage.entriesOf(runId, "call.result");
  const errors = results.filter(({ call }) => call !== "t1.4").map(({ error }) => error);
  assert.deepEqual(errors.map((error) => error?.code), ["NOT_FOUND", "NOT_FOUND", "INVALID"]);
  assert.match(errors[2]?.message ?? "", /not valid JSON: "\{\\"a\\": "/);
});

Deno.test("[A07] a tool's own error is an answer: no repeat, no unknown outcome", async () => {
  const server = new ServerDouble({
    tools: {
      get: {
        effect: "read",
        does: () => ({ kind: "answer", isError: true, content: [{ type: "text", text: "No" }] }),
      },
    },
  });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__get" }], DONE] });
  const { end, runId } = await stage.run();
  assert.equal(end.state, "exited");
  assert.deepEqual(await resultsOf(stage, runId), ['error: [{"type":"text","text":"No"}]']);
  assert.equal(server.calls.length, 1);
});

Deno.test("a call that was never sent is a known error", async () => {
  const server = new ServerDouble({
    tools: {
      pay: {
        does: () => ({
          kind: "not-sent",
          error: new SysError("DEVICE_DISCONNECTED", "Server is gone"),
        }),
      },
    },
  });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }], DONE] });
  const { end, runId } = await stage.run();
  assert.equal(end.state, "exited");
  const [result] = await stage.entriesOf(runId, "call.result");
  assert.equal(result?.error?.code, "DEVICE_DISCONNECTED");
  assert.deepEqual((await stage.fold(runId)).ledger.openCalls(), []);
});

Deno.test("a device is told of a call whether it would be made again", async () => {
  const told: { [tool: string]: boolean | undefined } = {};
  const tool = (name: string, effect: EffectClass): ToolDouble => ({
    effect,
    does: ({ repeatable }) => {
      told[name] = repeatable;
      return ok("done");
    },
  });
  const tools = Object.fromEntries(EFFECT_CLASSES.map((effect) => [effect, tool(effect, effect)]));
  const calls = EFFECT_CLASSES.map((effect) => ({ tool: `world__${effect}` }));
  const stage = new KernelStage({ servers: [new ServerDouble({ tools })], replies: [calls, DONE] });
  assert.equal((await stage.run()).end.state, "exited");
  assert.deepEqual(told, { read: true, idempotent: true, write: false, destructive: false });
});

Deno.test("a device that throws after all may have sent the call: its outcome is unknown", async () => {
  const server = new ServerDouble({
    tools: {
      pay: {
        does: () => {
          throw new Error("Bug in the device");
        },
      },
    },
  });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }]] });
  const { end } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
});

Deno.test("[A05] two calls to one tool in a turn are two calls with their own ids and keys", async () => {
  const server = new ServerDouble({ tools: { pay: {} } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay" }, { tool: "world__pay" }], DONE],
  });
  const { runId } = await stage.run();
  assert.deepEqual(server.calls.map(({ key }) => key), [`${runId}/t1.1`, `${runId}/t1.2`]);
});

Deno.test("calls of one reply run at once, and their results come back in the order of the calls", async () => {
  const server = new ServerDouble({
    tools: {
      a: { does: taking(300, "a") },
      b: { does: taking(100, "b") },
      c: { does: taking(200, "c") },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__a" }, { tool: "world__b" }, { tool: "world__c" }], DONE],
  });
  await stage.run();
  assert.ok(stage.clock.monotonic() < 320, "the longest of them, not their sum");
  assert.deepEqual(stage.eventsOf("call.finished").map(({ preview }) => preview), ["b", "c", "a"]);
  const last = stage.model.asked[1]?.prompt.messages.at(-1);
  const texts = last?.role === "tool"
    ? last.results.map(({ content }) => JSON.stringify(content))
    : [];
  assert.deepEqual(texts.map((text) => /"text":"(.)"/.exec(text)?.[1]), ["a", "b", "c"]);
});

Deno.test("the reply and the intents of its calls are one batch with one sync", async () => {
  const server = new ServerDouble({ tools: { pay: {}, get: { effect: "read" } } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay" }, { tool: "world__get" }, { tool: "world__pay" }], DONE],
  });
  const { runId } = await stage.run();
  const entries = await stage.entries(runId);
  const reply = entries.find(({ type }) => type === "model.reply");
  const intents = entries.filter(({ type }) => type === "call.intent");
  assert.equal(intents.length, 3);
  for (const intent of intents) assert.equal(intent.synced, reply?.synced);
});

Deno.test("a read leaves without waiting for its intent's sync; a write waits", async () => {
  const server = new ServerDouble({ tools: { pay: {}, get: { effect: "read" } } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay" }, { tool: "world__get" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(0);
  const release = stage.disk.holdSyncs();
  await stage.clock.advance(50);
  assert.deepEqual(server.calls.map(({ tool }) => tool), ["get"]);
  release();
  await stage.clock.run(live.done);
  assert.deepEqual(server.calls.map(({ tool }) => tool), ["get", "pay"]);
});

Deno.test("arguments of a sensitive tool are masked in trace and events, not in the journal's result", async () => {
  const server = new ServerDouble({ tools: { get_secret: {} }, sensitive: ["get_*"] });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__get_secret", input: { pin: "1234-canary" } }], DONE],
  });
  await stage.run();
  const seen = JSON.stringify([stage.traces, stage.eventsOf("call.started")]);
  assert.ok(!seen.includes("canary"));
  assert.ok(seen.includes("[masked]"));
  assert.deepEqual(server.calls[0]?.input, { pin: "1234-canary" });
});

Deno.test("each call is traced as Open, Write, Read, Close on its path with the pid", async () => {
  const server = new ServerDouble({ tools: { pay: {} } });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }], DONE] });
  const { ledger } = await stage.run();
  const calls = stage.traces.filter(({ syscall }) => syscall !== "Model");
  assert.deepEqual(calls.map(({ syscall }) => syscall), ["Open", "Write", "Read", "Close"]);
  assert.deepEqual(calls[0]?.args, { path: `/mnt/mcp/${ledger.pid}-world/tools/pay` });
});

Deno.test("progress and warnings of a call reach the user", async () => {
  const server = new ServerDouble({
    tools: {
      pay: {
        does: ({ onProgress }) => {
          onProgress?.("half");
          return { ...ok("done"), warnings: ["Output doesn't fit its schema"] };
        },
      },
    },
  });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }], DONE] });
  await stage.run();
  assert.deepEqual(stage.eventsOf("call.progress").map(({ message }) => message), ["half"]);
  assert.deepEqual(stage.eventsOf("notice").map(({ message }) => message), [
    "mcp__world__pay: Output doesn't fit its schema",
  ]);
});

Deno.test("a late answer before the settling settles the call; the model sees it as the result", async () => {
  const server = new ServerDouble({
    tools: {
      pay: {
        does: ({ clock }) => lost("timeout", sleep(clock, 20).then(() => ok("paid after all"))),
      },
      slow: { does: taking(100) },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay" }, { tool: "world__slow" }], DONE],
  });
  const { end, runId } = await stage.run();
  assert.equal(end.state, "exited");
  const [settled] = await stage.entriesOf(runId, "call.settled");
  assert.deepEqual([settled?.how, settled?.by], ["answer", "answer"]);
  assert.match(JSON.stringify(stage.model.asked[1]?.prompt.messages), /paid after all/);
  assert.equal(stage.eventsOf("call.finished").filter(({ call }) => call === "t1.1").length, 1);
});

Deno.test("a late answer after the settling is only traced", async () => {
  const server = new ServerDouble({
    tools: {
      pay: { does: ({ clock }) => lost("timeout", sleep(clock, 20).then(() => ok("too late"))) },
      slow: { does: taking(100) },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    onUnknown: "skip",
    replies: [[{ tool: "world__pay" }, { tool: "world__slow" }], DONE],
  });
  const { runId } = await stage.run();
  const settled = await stage.entriesOf(runId, "call.settled");
  assert.deepEqual(settled.map(({ how }) => how), ["skip"]);
  assert.deepEqual(
    stage.traces.filter(({ syscall }) => syscall === "Late").map(({ result }) => result),
    [
      false,
    ],
  );
  assert.doesNotMatch(JSON.stringify(stage.model.asked[1]?.prompt.messages), /too late/);
});

Deno.test("a late answer of a first attempt doesn't settle the second", async () => {
  const server = new ServerDouble({
    tools: {
      get: {
        effect: "read",
        does: async ({ clock, times }) => {
          if (times === 1) return lost("timeout", sleep(clock, 20).then(() => ok("first")));
          await sleep(clock, 60);
          return ok("second");
        },
      },
    },
  });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__get" }], DONE] });
  await stage.run();
  assert.match(JSON.stringify(stage.model.asked[1]?.prompt.messages), /second/);
});

Deno.test("a late answer that comes after the run has ended is dropped", async () => {
  const server = new ServerDouble({
    tools: {
      pay: { does: ({ clock }) => lost("timeout", sleep(clock, 500).then(() => ok("late"))) },
    },
  });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }]] });
  const { end, runId } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "unknown-outcome");
  const before = (await stage.entries(runId)).length;
  await stage.clock.advance(1_000);
  assert.equal((await stage.entries(runId)).length, before);
});

Deno.test("a result over its limit is cut once, and kept whole in a blob that is durable with it", async () => {
  const server = new ServerDouble({
    tools: { get: { effect: "read", does: () => ok("word ".repeat(20_000)) } },
    outputTokensMax: 100,
  });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__get" }], DONE] });
  const { runId } = await stage.run();
  const [result] = await stage.entriesOf(runId, "call.result");
  assert.ok(result !== undefined && result.outcome !== "unknown" && result.whole !== undefined);
  assert.ok(JSON.stringify(result.content).length < 2_000);
  const blob = stage.disk.peekDurable(`/state/runs/${runId}/blobs/${result.whole.sha256}`);
  assert.equal(blob?.length, result.whole.bytes);
});

Deno.test("no descriptor is left open, and the lowest free one is given", async () => {
  const server = new ServerDouble({ tools: { a: { does: taking(10) }, b: { does: taking(5) } } });
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__a" }, { tool: "world__b" }], [{ tool: "world__a" }], DONE],
  });
  await stage.run();
  const opened = stage.traces.filter(({ syscall }) => syscall === "Open").map(({ result }) =>
    result
  );
  assert.deepEqual(opened, [3, 4, 3]);
  const closed = stage.traces.filter(({ syscall }) => syscall === "Close");
  assert.deepEqual(closed.map(({ args }) => args["fd"]), [4, 3, 3]);
});
