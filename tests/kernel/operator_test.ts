import assert from "node:assert/strict";
import type { SysError } from "../../src/base/errors.ts";
import type { Json } from "../../src/base/json.ts";
import type { VfsAnswer } from "../../src/base/vfs_operations.ts";
import { agentProgram } from "../../src/agent/agent_program.ts";
import type { Entry, EntryBody } from "../../src/journal/entry.ts";
import type { LiveRun } from "../../src/kernel/launch.ts";
import type { Access } from "../../src/kernel/operator_gate.ts";
import { RunState } from "../../src/kernel/run_state.ts";
import { takeCut } from "../../src/kernel/take_cut.ts";
import { KernelStage, ServerDouble, type StageOptions } from "./kernel_stage.ts";
import { lost, ok, taking, type ToolDouble } from "./server_double.ts";

const DONE = "Done.";
const NEVER = new AbortController().signal;

/** A run whose model thinks for ten seconds, then calls `get`, then is done. */
function stageWith(
  tools: { [tool: string]: ToolDouble },
  options: StageOptions & { allow?: string[]; sensitive?: string[] } = {},
) {
  const { allow, sensitive, ...rest } = options;
  const server = new ServerDouble({
    tools: { get: { effect: "read" }, ...tools },
    ...(allow === undefined ? {} : { allow }),
    ...(sensitive === undefined ? {} : { sensitive }),
  });
  const replies = rest.replies ?? [{ calls: [{ tool: "world__get" }], ms: 10_000 }, DONE];
  return { server, stage: new KernelStage({ servers: [server], ...rest, replies }) };
}

function writing(live: LiveRun, tool: string, input: Json = {}): Promise<VfsAnswer> {
  return live.access({
    operation: "write",
    path: `/mnt/mcp/${live.pid}-world/tools/${tool}`,
    input,
  }, NEVER);
}

async function failureOf(work: Promise<unknown>): Promise<SysError> {
  return await work.then(
    () => assert.fail("it should have failed"),
    (thrown) => thrown as SysError,
  );
}

const accesses = (stage: KernelStage, runId: string) => async () => ({
  intents: await stage.entriesOf(runId, "access.intent"),
  results: await stage.entriesOf(runId, "access.result"),
});

Deno.test("[R2] what a person writes is a call of its own: journaled as such, answered, and no part of the conversation", async () => {
  const { stage, server } = stageWith({ pay: { does: () => ok("paid") } });
  const live = await stage.start();
  await stage.clock.advance(100);
  const answer = await stage.clock.run(writing(live, "pay", { to: "a" }));
  assert.ok(answer.kind === "result");
  assert.deepEqual([answer.call, answer.outcome, answer.text], ["o1", "ok", "paid"]);
  const again = await stage.clock.run(writing(live, "pay", { to: "b" }));
  assert.ok(again.kind === "result" && again.call === "o2");
  const { end, ledger } = await stage.clock.run(live.done);
  assert.equal(end.state, "exited");
  assert.deepEqual(
    server.calls.map(({ tool, key }) => [tool, key]),
    [["pay", `${live.runId}/o1`], ["pay", `${live.runId}/o2`], ["get", `${live.runId}/t1.1`]],
  );
  const { intents, results } = await accesses(stage, live.runId)();
  assert.deepEqual(
    intents.map(({ call, origin, operation, device, effect, tool, input }) => [
      call,
      origin,
      operation,
      device,
      effect,
      tool,
      input,
    ]),
    ["a", "b"].map((to, index) => [
      `o${index + 1}`,
      "operator",
      "write",
      "/mnt/mcp/world/tools/pay",
      "write",
      "mcp__world__pay",
      { to },
    ]),
  );
  assert.deepEqual(results.map(({ call, outcome }) => [call, outcome]), [["o1", "ok"], [
    "o2",
    "ok",
  ]]);
  const told = JSON.stringify(stage.model.asked.map(({ prompt }) => prompt));
  assert.doesNotMatch(told, /paid|o1|pay"/);
  assert.equal(ledger.state.totals.tool_calls, 1, "no budget of the run counts it");
  assert.deepEqual(ledger.openCalls(), []);
  const calls = stage.eventsOf("call.started").map(({ call }) => call);
  assert.deepEqual(calls, ["t1.1"], "who watches isn't told of a call of the run");
  const writes = stage.traces.filter(({ args }) => args["origin"] === "operator");
  assert.deepEqual(writes.map(({ syscall }) => syscall), [
    "Open",
    "Write",
    "Close",
    "Open",
    "Write",
    "Close",
  ]);
});

Deno.test("the request of a model is the same whether a person wrote or not", async () => {
  const hashes: string[][] = [];
  for (const isWritten of [false, true]) {
    const { stage } = stageWith({ pay: {} });
    const live = await stage.start();
    await stage.clock.advance(100);
    if (isWritten) await stage.clock.run(writing(live, "pay"));
    await stage.clock.run(live.done);
    const requests = await stage.entriesOf(live.runId, "model.request");
    hashes.push(requests.map(({ request_sha256 }) => request_sha256));
  }
  assert.equal(hashes[0]?.length, 2);
  assert.deepEqual(hashes[0], hashes[1]);
});

Deno.test("a person's write that a crash cut off is told once, never repeated, and keeps no run waiting", async () => {
  const { stage, server } = stageWith({ pay: { does: taking(5_000) } });
  const live = await stage.start();
  await stage.clock.advance(100);
  writing(live, "pay").catch(() => {});
  await stage.clock.advance(100);
  assert.deepEqual(server.calls.map(({ tool }) => tool), ["pay"]);
  stage.kill();
  stage.model.replies.unshift([{ tool: "world__get" }]);
  const { end } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state, "exited", "though unknown calls would be asked about");
  assert.deepEqual(server.calls.map(({ tool }) => tool), ["pay", "get"]);
  const notices = () => stage.eventsOf("notice").filter(({ message }) => /o1/.test(message));
  assert.match(
    notices()[0]?.message ?? "",
    /\/mnt\/mcp\/world\/tools\/pay.*may or may not have taken effect/,
  );
  const { results } = await accesses(stage, live.runId)();
  assert.deepEqual(
    results.map((entry) => entry.outcome === "unknown" && [entry.call, entry.cause]),
    [["o1", "crash"]],
  );
  stage.model.replies.push(DONE);
  const more = await stage.resumeToEnd(live.runId, { intent: "More" });
  assert.equal(more.end.state, "exited");
  assert.equal(notices().length, 1, "told once");
});

Deno.test("a person's write whose connection breaks is UNKNOWN_OUTCOME to that person alone", async () => {
  for (const effect of ["write", "read"] as const) {
    const { stage, server } = stageWith({ pay: { effect, does: () => lost() } });
    const live = await stage.start();
    await stage.clock.advance(100);
    const error = await stage.clock.run(failureOf(writing(live, "pay")));
    assert.equal(error.code, "UNKNOWN_OUTCOME");
    assert.match(error.message, /o1 took effect: Lost: disconnected/);
    assert.equal((await stage.clock.run(live.done)).end.state, "exited");
    assert.equal(server.calls.filter(({ tool }) => tool === "pay").length, 1);
  }
});

Deno.test("a run ends only when what a person does is over, and begins nothing more of it then", async () => {
  const { stage, server } = stageWith({ pay: { does: taking(60_000, "paid") } });
  const live = await stage.start();
  await stage.clock.advance(100);
  const first = writing(live, "pay");
  await stage.clock.advance(20_000);
  assert.equal(server.open, 1, "the program is done, and its servers are there still");
  const error = await stage.clock.run(failureOf(writing(live, "pay")));
  assert.deepEqual([error.code, error.message], ["INVALID", "The run is about to end"]);
  const answer = await stage.clock.run(first);
  assert.ok(answer.kind === "result" && answer.text === "paid");
  assert.equal((await stage.clock.run(live.done)).end.state, "exited");
  const types = (await stage.entries(live.runId)).map(({ type }) => type);
  assert.deepEqual(types.slice(-2), ["access.result", "run.exited"]);
  assert.equal(server.open, 0);
});

Deno.test("a stop cancels what a person does, as it does the program's calls", async () => {
  const { stage } = stageWith({ pay: { does: taking(60_000) } });
  const live = await stage.start();
  await stage.clock.advance(100);
  const failed = failureOf(writing(live, "pay"));
  await stage.clock.advance(100);
  live.stop({ kind: "suspend", reason: "paused" });
  const error = await stage.clock.run(failed);
  assert.equal(error.code, "UNKNOWN_OUTCOME");
  const { end } = await stage.clock.run(live.done);
  assert.ok(end.state === "suspended");
  assert.deepEqual(end.reasons, ["paused"], "it is no unknown outcome of the run's");
});

Deno.test("who gives up waiting cancels the write", async () => {
  const { stage } = stageWith({ pay: { does: taking(60_000) } });
  const live = await stage.start();
  await stage.clock.advance(100);
  const given = new AbortController();
  const path = `/mnt/mcp/${live.pid}-world/tools/pay`;
  const failed = failureOf(live.access({ operation: "write", path, input: {} }, given.signal));
  await stage.clock.advance(100);
  given.abort();
  assert.equal((await stage.clock.run(failed)).code, "UNKNOWN_OUTCOME");
  assert.equal((await stage.clock.run(live.done)).end.state, "exited");
});

Deno.test("[R18] a process's view ends at its own mounts: another's are PERMISSION, in the gate", async () => {
  const { stage, server } = stageWith({ pay: {} }, { allow: ["get"] });
  const live = await stage.start();
  await stage.clock.advance(100);
  const codeOf = async (access: Access) => {
    const { code, hint } = await stage.clock.run(failureOf(live.access(access, NEVER)));
    return [code, hint];
  };
  const other = `/mnt/mcp/${(live.pid ?? 0) + 1}-world`;
  for (const operation of ["list", "stat", "read", "write"] as const) {
    for (const path of [other, `${other}/tools/get`]) {
      const [code, hint] = await codeOf({ operation, path, input: {} });
      assert.equal(code, "PERMISSION");
      assert.match(hint ?? "", new RegExp(`/mnt/mcp/${live.pid}-world`));
    }
  }
  const refused = await codeOf({ operation: "write", path: "/mnt/mcp/world/tools/pay", input: {} });
  assert.deepEqual(refused[0], "PERMISSION");
  assert.match(refused[1] ?? "", /manifest doesn't allow/);
  assert.deepEqual(server.calls, []);
  assert.match(
    stage.traces.find(({ error }) => error !== null)?.error ?? "",
    /^\[PERMISSION\] It belongs to another process/,
  );
});

Deno.test("[R2] unknown paths, folders and what can only be read are told for what they are", async () => {
  const { stage, server } = stageWith({});
  const live = await stage.start();
  await stage.clock.advance(100);
  const codes: string[] = [];
  for (
    const [operation, path] of [
      ["read", "/mnt/mcp/world/nothing"],
      ["read", "/mnt/mcp/none"],
      ["write", "/mnt/mcp/world/tools"],
      ["write", "/dev/llm/double"],
      ["read", "/mnt/mcp"],
    ] as const
  ) {
    const error = await stage.clock.run(
      failureOf(live.access({ operation, path, input: {} }, NEVER)),
    );
    assert.notEqual(error.hint, undefined, path);
    codes.push(error.code);
  }
  assert.deepEqual(codes, ["NOT_FOUND", "NOT_FOUND", "INVALID", "INVALID", "INVALID"]);
  assert.deepEqual(server.calls, []);
  const { intents } = await accesses(stage, live.runId)();
  assert.deepEqual(intents, []);
});

Deno.test("a process's devices are listed, looked at and read", async () => {
  const { stage } = stageWith({ pay: { effect: "destructive" } });
  const live = await stage.start();
  await stage.clock.advance(100);
  const names = async (path: string) => {
    const answer = await stage.clock.run(live.access({ operation: "list", path }, NEVER));
    return answer.kind === "names" ? answer.names : assert.fail();
  };
  assert.deepEqual(await names("/"), ["dev", "mnt", "proc"]);
  assert.deepEqual(await names("/mnt/mcp"), [`${live.pid}-world`]);
  assert.deepEqual(await names("/mnt/mcp/world/tools"), ["get", "pay"]);
  assert.deepEqual(await names("/dev/llm"), ["double"]);
  const stat = await live.access({ operation: "stat", path: "/mnt/mcp/world/tools/pay" }, NEVER);
  assert.deepEqual(stat, {
    kind: "node",
    node: {
      path: `/mnt/mcp/${live.pid}-world/tools/pay`,
      kind: "tool",
      writable: true,
      effect: "destructive",
      pid: live.pid,
    },
  });
  const model = await live.access({ operation: "read", path: "/dev/llm/double" }, NEVER);
  assert.ok(model.kind === "content");
  assert.deepEqual(JSON.parse(model.text), {
    provider: "double",
    model: "fixed",
    request_ms_max: 600_000,
  });
  assert.deepEqual(live.look().mounts.map(({ path, health }) => [path, health?.state]), [
    ["/dev/llm/double", undefined],
    [`/mnt/mcp/${live.pid}-world`, "connected"],
    [`/proc/${live.pid}/results`, undefined],
  ]);
});

Deno.test("what is read from a server is journaled by its size, and an open descriptor is seen", async () => {
  const { stage } = stageWith({ pay: { does: taking(1_000) } });
  const live = await stage.start();
  await stage.clock.advance(100);
  const path = "/mnt/mcp/world/resources/demo";
  const answer = await stage.clock.run(live.access({ operation: "read", path }, NEVER));
  assert.ok(answer.kind === "content");
  const { intents, results } = await accesses(stage, live.runId)();
  assert.deepEqual(intents.map(({ operation, device, effect }) => [operation, device, effect]), [
    ["read", path, "read"],
  ]);
  assert.deepEqual(results.map((entry) => entry.bytes), [0]);
  writing(live, "pay");
  await stage.clock.advance(10);
  assert.deepEqual(live.look().descriptors, [
    { fd: 3, path: `/mnt/mcp/${live.pid}-world/tools/pay` },
  ]);
});

Deno.test("nothing of a person's leaves when the journal can't be written", async () => {
  const { stage, server } = stageWith({ pay: {} });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.disk.capacityBytes = 0;
  const error = await stage.clock.run(failureOf(writing(live, "pay")));
  assert.notEqual(error.code, "UNKNOWN_OUTCOME");
  assert.deepEqual(server.calls, []);
  assert.ok((await stage.clock.run(live.done)).end.state === "suspended");
});

Deno.test("a fork has nothing of what persons did in its source", async () => {
  const { stage } = stageWith({ pay: {} });
  const live = await stage.start();
  await stage.clock.advance(100);
  await stage.clock.run(writing(live, "pay"));
  await stage.clock.run(live.done);
  const forked = await stage.fork({ sourceRunId: live.runId, step: 1 });
  const { intents, results } = await accesses(stage, forked)();
  assert.deepEqual([intents, results], [[], []]);
  assert.equal((await stage.fold(forked)).ledger.nextAccess(), "o1");
});

Deno.test("names of lost accesses are never used again", async () => {
  const { stage } = stageWith({ pay: {} });
  const live = await stage.start();
  await stage.clock.advance(100);
  await stage.clock.run(writing(live, "pay"));
  await stage.clock.run(live.done);
  const { ledger } = await stage.fold(live.runId);
  const head = { v: 1, seq: 99, ts: 0, synced: 0 };
  ledger.fold({ ...head, type: "journal.cut", from_seq: 50, records: 4 });
  assert.equal(ledger.nextAccess(), "o6");
});

Deno.test("arguments of a sensitive tool are in no trace, and long ones in the journal by their hash alone", async () => {
  const { stage } = stageWith({ pay: {} }, { sensitive: ["pay"] });
  const live = await stage.start();
  await stage.clock.advance(100);
  await stage.clock.run(writing(live, "pay", { card: "4711-0815" }));
  await stage.clock.run(writing(live, "pay", { note: "x".repeat(20_000) }));
  assert.doesNotMatch(JSON.stringify(stage.traces), /4711-0815/);
  const { intents } = await accesses(stage, live.runId)();
  assert.deepEqual(intents.map((entry) => "input" in entry), [true, false]);
  assert.equal(new Set(intents.map(({ input_sha256 }) => input_sha256)).size, 2);
});

Deno.test("no secret of the run is in what is journaled of a person's write, nor in what that person is told", async () => {
  const secret = "very-secret-value";
  const does = () => lost("disconnected");
  const { stage } = stageWith({ pay: { does } }, { secrets: [secret, "Lost: disconnected"] });
  const live = await stage.start();
  await stage.clock.advance(100);
  const error = await stage.clock.run(failureOf(writing(live, "pay", { to: secret })));
  assert.doesNotMatch(error.message, /Lost: disconnected/);
  const journal = JSON.stringify(await stage.entries(live.runId));
  assert.doesNotMatch(journal, /very-secret-value|Lost: disconnected/);
});

Deno.test("what was lost with records that were cut is told, and its name never given again", async () => {
  const { stage } = stageWith({ pay: {} });
  const live = await stage.start();
  await stage.clock.advance(100);
  await stage.clock.run(writing(live, "pay"));
  await stage.clock.run(live.done);
  const entries = await stage.entries(live.runId);
  const lostAt = entries.findIndex(({ type }) => type === "access.intent");
  const state = new RunState(agentProgram(""));
  for (const entry of entries.slice(0, lostAt)) state.fold(entry);
  const cut = {
    seq: lostAt + 1,
    lastSeq: lostAt + 1,
    intents: [],
    accesses: await stage.entriesOf(live.runId, "access.intent"),
    records: entries.length - lostAt,
    sideFiles: [],
  };
  let seq = lostAt;
  const append = (body: EntryBody) =>
    state.fold({ v: 1, seq: ++seq, ts: 0, synced: 0, ...body } as Entry);
  const told = takeCut(cut, state, { append });
  assert.deepEqual(told.map(({ call, device }) => [call, device]), [
    ["o1", "/mnt/mcp/world/tools/pay"],
  ]);
  assert.deepEqual(state.ledger.openAccesses(), []);
  assert.deepEqual(state.ledger.openCalls(), []);
  assert.ok(Number(state.ledger.nextAccess().slice(1)) > cut.records);
});
