import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { ok, taking, type ToolDouble } from "./server_double.ts";

const DONE = "Done.";

function many(count: number): { [tool: string]: ToolDouble } {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`t${String(index).padStart(3, "0")}`, {}]),
  );
}

function toolsOf(stage: KernelStage, request: number): string[] {
  return stage.model.asked[request]?.tools.map(({ modelName }) => modelName) ?? [];
}

function notices(stage: KernelStage): string[] {
  return stage.eventsOf("notice").map(({ message }) => message);
}

Deno.test("tools over the provider's limit are set aside: servers in the manifest's order, tools by name, one notice", async () => {
  const stage = new KernelStage({
    servers: [
      new ServerDouble({ name: "b", tools: many(6) }),
      new ServerDouble({ name: "a", tools: many(4) }),
    ],
    model: { toolsMax: 9 },
    replies: [DONE],
  });
  const { runId } = await stage.run();
  assert.deepEqual(
    toolsOf(stage, 0),
    [
      ...["a__t000", "a__t001"],
      ...["b__t000", "b__t001", "b__t002", "b__t003", "b__t004", "b__t005"],
    ].map((name) => `mcp__${name}`),
  );
  assert.deepEqual(notices(stage), [
    '2 tools are set aside (2 of a): provider "double" takes at most 9 tools; name those that are needed under tools.allow of their servers',
  ]);
  const [, ready] = await stage.entriesOf(runId, "mount.ready");
  assert.deepEqual(Object.keys(ready?.set_aside ?? {}), ["t002", "t003"]);
});

Deno.test("a tool that isn't allowed or can't be offered takes no place", async () => {
  const stage = new KernelStage({
    servers: [
      new ServerDouble({ name: "a", tools: many(5), allow: ["*0", "*1", "*2"] }),
      new ServerDouble({ name: "b", tools: { x: {} } }),
    ],
    model: { toolsMax: 4 },
    replies: [DONE],
  });
  stage.model.refused.add("t001");
  await stage.run();
  assert.deepEqual(toolsOf(stage, 0), ["mcp__a__t000", "mcp__a__t002", "mcp__b__x"]);
  assert.deepEqual(notices(stage), ['a: tool "t001" is set aside: No schema for t001']);
});

Deno.test("the limit holds with the tool that reads cut results, and for the model that stands in", async () => {
  const server = new ServerDouble({
    tools: { ...many(9), get: { effect: "read", does: () => ok("word ".repeat(5_000)) } },
    outputTokensMax: 100,
  });
  const stage = new KernelStage({
    servers: [server],
    model: { toolsMax: 200 },
    fallback: { replies: [], model: { toolsMax: 5 } },
    replies: [[{ tool: "world__t000" }, { tool: "world__get" }], DONE],
  });
  await stage.run();
  assert.equal(toolsOf(stage, 0).length, 4);
  assert.match(notices(stage)[0] ?? "", /provider "other" takes at most 5 tools/);
});

Deno.test("more tools of one server between turns leave less room for those of another: the model is told", async () => {
  const first = new ServerDouble({ name: "first", tools: { more: {} } });
  first.tools["more"] = {
    does: async (call) => {
      first.change({ extra: {}, more: {} });
      return await taking(5)(call);
    },
  };
  const stage = new KernelStage({
    servers: [first, new ServerDouble({ name: "second", tools: many(2) })],
    model: { toolsMax: 4 },
    replies: [[{ tool: "first__more" }], [{ tool: "second__t001" }], DONE],
  });
  await stage.run();
  assert.deepEqual(toolsOf(stage, 1), [
    "mcp__first__extra",
    "mcp__first__more",
    "mcp__second__t000",
  ]);
  const messages = JSON.stringify(stage.model.asked[1]?.prompt.messages.at(-1));
  assert.match(messages, /server \\"second\\" has withdrawn tools: mcp__second__t001/);
  assert.match(
    JSON.stringify(stage.model.asked[2]?.prompt.messages.at(-1)),
    /Server \\"second\\" has withdrawn the tool/,
  );
  assert.equal(notices(stage).length, 1);
});

Deno.test("a call of a tool that never was is answered with what there is, or what was meant", async () => {
  const stage = new KernelStage({
    servers: [new ServerDouble({ tools: { search_files: {}, get: {} } })],
    replies: [[{ tool: "world__serach_files" }, { tool: "made_up" }], DONE],
  });
  const { end, runId } = await stage.run();
  assert.equal(end.state, "exited");
  const [near, far] = await stage.entriesOf(runId, "call.result");
  assert.match(near?.error?.message ?? "", /did you mean "mcp__world__search_files"\?$/);
  assert.match(
    far?.error?.message ?? "",
    /^There is no tool named "mcp__made_up"; there is: mcp__world__get, mcp__world__search_files$/,
  );
  assert.deepEqual(await stage.entriesOf(runId, "call.intent"), []);
});

Deno.test("after a resume a call of a tool that is gone says which server had it, and whether that is there", async () => {
  const world = new ServerDouble({ tools: { old: {}, pay: { does: taking(1_000) } } });
  const extra = new ServerDouble({ name: "extra", required: false, tools: { help: {} } });
  const stage = new KernelStage({
    servers: [world, extra],
    onUnknown: "skip",
    replies: [
      [{ tool: "world__pay" }],
      [{ tool: "world__old" }, { tool: "extra__help" }],
      DONE,
    ],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  world.tools = { pay: {} };
  extra.fails = new SysError("DRIVER", "It exited with 1");
  await stage.resumeToEnd(live.runId);
  const [old, help] = await stage.entriesOf(live.runId, "call.result");
  assert.match(
    old?.error?.message ?? "",
    /^Server "world" has withdrawn the tool "mcp__world__old"/,
  );
  assert.match(
    help?.error?.message ?? "",
    /^The tool "mcp__extra__help" is gone: server "extra" is not available/,
  );
});

Deno.test("a rule for a tool that the server doesn't have is told when it is mounted, with the name that is meant", async () => {
  const tools = { echo: { effect: "read" as const }, sum: {} };
  const allow = ["ecko", "get_*", "s*"];
  const stage = new KernelStage({
    servers: [new ServerDouble({ name: "ev", tools, allow })],
    replies: [DONE],
  });
  const { end } = await stage.run();
  assert.equal(end.state, "exited", "it is no failure");
  assert.deepEqual(toolsOf(stage, 0), ["mcp__ev__sum"]);
  assert.deepEqual(notices(stage), [
    'ev: tools.allow names "ecko", and there is no such tool; did you mean "echo"?',
    'ev: tools.allow names "get_*", and there is no such tool; rnix mcp connect lists those that there are',
  ]);
});
