import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { ok, ServerDoubles, taking } from "./server_double.ts";

const DONE = "Done.";

function failing(
  name: string,
  options: { required?: boolean; mountMs?: number } = {},
): ServerDouble {
  return new ServerDouble({ name, fails: new SysError("DRIVER", "It exited with 1"), ...options });
}

Deno.test("all servers are mounted at once", async () => {
  const servers = Array.from(
    { length: 8 },
    (_, index) => new ServerDouble({ name: `s${index}`, mountMs: 1_000 }),
  );
  const stage = new KernelStage({ servers, replies: [DONE] });
  const { end } = await stage.run();
  assert.equal(end.state, "exited");
  assert.ok((stage.model.asked[0]?.atMs ?? 0) < 1_100, `${stage.model.asked[0]?.atMs} ms`);
  assert.deepEqual(servers.map(({ open, mounts }) => [open, mounts]), servers.map(() => [0, 1]));
});

Deno.test("a required server that fails ends a fresh run with exit code 3; all others are closed or aborted", async () => {
  const quick = new ServerDouble({ name: "quick" });
  const slow = new ServerDouble({ name: "slow", mountMs: 60_000 });
  const stage = new KernelStage({ servers: [quick, failing("bad", { mountMs: 100 }), slow] });
  const { end, runId } = await stage.run();
  assert.deepEqual(end.state === "exited" && [end.status, end.exitCode], ["failed", 3]);
  assert.equal(end.error?.message, "It exited with 1");
  assert.ok(stage.clock.monotonic() < 1_000, "nobody waits for the slow one");
  assert.deepEqual([quick.mounts, quick.open, slow.mounts, slow.aborted], [1, 0, 0, 1]);
  assert.equal(stage.model.asked.length, 0);
  const failed = await stage.entriesOf(runId, "mount.failed");
  assert.deepEqual(failed.map(({ server }) => server), ["bad"], "only what failed by itself");
  const [event] = stage.eventsOf("mount.failed");
  assert.deepEqual([event?.error.syscall, event?.error.device], ["Mount", "bad"]);
});

Deno.test("a mount counts the server's own tools; that its resources can be had is told beside", async () => {
  const does = () => ok("x");
  const tools = { t: { does }, "resources/list": { does }, "resources/read": { does } };
  const stage = new KernelStage({ servers: [new ServerDouble({ tools })], replies: [DONE] });
  await stage.run();
  const [ready] = stage.eventsOf("mount.ready");
  assert.deepEqual([ready?.tools, ready?.resources], [1, true]);
});

Deno.test("two required servers that fail are both told, and nobody waits once all are over", async () => {
  const stage = new KernelStage({
    servers: [failing("one", { mountMs: 100 }), failing("two", { mountMs: 300 })],
  });
  const { end } = await stage.run();
  assert.equal(end.state === "exited" && end.exitCode, 3);
  assert.deepEqual(stage.eventsOf("mount.failed").map(({ server }) => server), ["one", "two"]);
  assert.ok(stage.clock.monotonic() < 400);
  assert.equal(stage.clock.pending, 0, "no timer is left");
});

Deno.test("[B25] a required server that fails suspends a resumed run, and the next resume goes on", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const stage = new KernelStage({
    servers: [server],
    onUnknown: "skip",
    replies: [[{ tool: "world__pay" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  server.fails = new SysError("DRIVER", "No such program");
  const { end } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state === "suspended" && end.reason, "mount");
  server.fails = undefined;
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
});

Deno.test("[B03] a server that isn't required may fail: the model is told, the rest works", async () => {
  const good = new ServerDouble({ name: "good", tools: { a: {} } });
  const stage = new KernelStage({
    servers: [good, failing("extra", { required: false })],
    unavailable: [{
      server: "unset",
      required: false,
      error: new SysError("INVALID", "Variable TOKEN isn't set"),
    }],
    replies: [[{ tool: "good__a" }], DONE],
  });
  const { end } = await stage.run();
  assert.equal(end.state, "exited");
  const text = JSON.stringify(stage.model.asked[0]?.prompt.messages);
  assert.match(text, /\[rnix\].*server \\"extra\\" is not available: It exited with 1/);
  assert.match(text, /server \\"unset\\" is not available: Variable TOKEN isn't set/);
  assert.deepEqual(stage.eventsOf("mount.failed").map(({ server }) => server), ["unset", "extra"]);
  assert.equal(good.calls.length, 1);
});

Deno.test("tools of all servers are sorted by name, whatever order the servers came up in", async () => {
  const stage = new KernelStage({
    servers: [
      new ServerDouble({ name: "b", tools: { z: {}, a: {} }, mountMs: 10 }),
      new ServerDouble({ name: "a", tools: { m: {} }, mountMs: 50 }),
    ],
    replies: [DONE],
  });
  const { runId } = await stage.run();
  const names = stage.model.asked[0]?.tools.map(({ modelName }) => modelName);
  assert.deepEqual(names, ["mcp__a__m", "mcp__b__a", "mcp__b__z"]);
  const ready = await stage.entriesOf(runId, "mount.ready");
  assert.deepEqual(ready.map(({ server }) => server), ["b", "a"], "in the manifest's order");
});

Deno.test("[D13] changed tools are taken over between turns: the model is told, the next request has them", async () => {
  const server = new ServerDouble({ tools: { old: {}, pay: {} } });
  server.tools["pay"] = {
    does: async (call) => {
      server.change({ fresh: {}, pay: { description: "New words" } });
      return await taking(5)(call);
    },
  };
  const stage = new KernelStage({
    servers: [server],
    replies: [
      [{ tool: "world__pay" }, { tool: "world__old" }],
      [{ tool: "world__old" }, { tool: "world__fresh" }],
      DONE,
    ],
  });
  const { end, runId } = await stage.run();
  assert.equal(end.state, "exited");
  assert.deepEqual(stage.model.asked[1]?.tools.map(({ name }) => name), ["fresh", "pay"]);
  assert.match(
    JSON.stringify(stage.model.asked[1]?.prompt.messages.at(-1)),
    /withdrawn tools: mcp__world__old/,
  );
  assert.deepEqual(stage.eventsOf("mount.changed"), [{
    type: "mount.changed",
    server: "world",
    added: ["fresh"],
    removed: ["old"],
    changed: ["pay"],
  }]);
  const types = (await stage.entries(runId)).map(({ type }) => type);
  assert.equal(types[types.indexOf("mount.changed") + 1], "model.request");
  const [, , old] = await stage.entriesOf(runId, "call.result");
  assert.match(old?.error?.message ?? "", /Server "world" has withdrawn the tool/);
  assert.deepEqual(server.calls.map(({ tool }) => tool), ["pay", "old", "fresh"]);
});

Deno.test("a resume compares tools with those last journaled and tells what was withdrawn", async () => {
  const server = new ServerDouble({ tools: { old: {}, pay: { does: taking(1_000) } } });
  const stage = new KernelStage({
    servers: [server],
    onUnknown: "skip",
    replies: [[{ tool: "world__pay" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  server.tools = { pay: {}, fresh: {} };
  await stage.resumeToEnd(live.runId);
  const [changed] = stage.eventsOf("mount.changed");
  assert.deepEqual([changed?.added, changed?.removed], [["fresh"], ["old"]]);
  const { messages } = stage.model.asked.at(-1)?.prompt ?? { messages: [] };
  assert.match(JSON.stringify(messages.at(-1)), /withdrawn tools: mcp__world__old/);
});

Deno.test("a resume without a server that the run had withdraws its tools, and tells the model", async () => {
  const one = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const other = new ServerDouble({ name: "other", tools: { look: {} } });
  const stage = new KernelStage({
    servers: [one, other],
    onUnknown: "skip",
    replies: [[{ tool: "world__pay" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  stage.servers = new ServerDoubles(stage.clock, [one]);
  await stage.resumeToEnd(live.runId);
  const changed = stage.eventsOf("mount.changed");
  assert.deepEqual(changed.map(({ server, removed }) => [server, removed]), [["other", ["look"]]]);
  const { messages } = stage.model.asked.at(-1)?.prompt ?? { messages: [] };
  assert.match(JSON.stringify(messages.at(-1)), /withdrawn tools: mcp__other__look/);
});

Deno.test("servers are closed when the run ends, however it ends", async () => {
  const endings: ConstructorParameters<typeof KernelStage>[0][] = [
    { replies: [DONE] },
    { replies: [{ throws: new Error("Bug") }] },
    { replies: [[{ tool: "world__a" }]], budget: { turns: 1 } },
  ];
  for (const options of endings) {
    const server = new ServerDouble({ tools: { a: {} } });
    const stage = new KernelStage({ ...options, servers: [server] });
    await stage.run();
    assert.deepEqual([server.mounts, server.open], [1, 0]);
  }
});

Deno.test("a call names its device without a pid in the journal, with the new pid in the trace after a resume", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }], DONE] });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const { ledger } = await stage.resumeToEnd(live.runId, {
    rules: [{ decision: { how: "retry" } }],
  });
  const intents = await stage.entriesOf(live.runId, "call.intent");
  assert.deepEqual(
    new Set(intents.map(({ device }) => device)),
    new Set(["/mnt/mcp/world/tools/pay"]),
  );
  const paths = stage.traces.filter(({ syscall }) => syscall === "Open").map(({ args }) =>
    args["path"]
  );
  const [first, second] = ledger.state.pids;
  assert.deepEqual(paths, [
    `/mnt/mcp/${first}-world/tools/pay`,
    `/mnt/mcp/${second}-world/tools/pay`,
  ]);
});
