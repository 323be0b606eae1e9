import assert from "node:assert/strict";
import type { SysError } from "../../src/base/errors.ts";
import { KernelStage, RUNS_FOLDER, ServerDouble } from "./kernel_stage.ts";
import { ok, taking } from "./server_double.ts";

const DONE = "Done.";
const BIG = "x".repeat(70_000);

/** A completed run of three steps with calls, and one that only answers. */
async function completed() {
  const server = new ServerDouble({
    tools: { get: { effect: "read", does: () => ok(BIG) }, pay: {}, put: { effect: "idempotent" } },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [
      [{ tool: "world__get" }],
      [{ tool: "world__pay" }],
      [{ tool: "world__put" }, { tool: "world__get" }],
      DONE,
      "Forked.",
    ],
  });
  const { runId } = await stage.run();
  return { stage, server, runId };
}

Deno.test("a fork with a new intent goes on from the whole past under ids of its own", async () => {
  const { stage, server, runId } = await completed();
  const calls = server.calls.length;
  const forkId = await stage.fork({ sourceRunId: runId, hasIntent: true });
  assert.notEqual(forkId, runId);
  const { end, ledger } = await stage.resumeToEnd(forkId, { intent: "And now?" });
  assert.equal(end.state === "exited" && end.result, "Forked.");
  assert.equal(server.calls.length, calls, "nothing is done again");
  assert.deepEqual(ledger.identity.forkedFrom?.run_id, runId);
  assert.equal(ledger.identity.runId, forkId);
  const { ledger: source } = await stage.fold(runId);
  assert.ok(ledger.state.pids.every((pid) => pid > source.pid), "pids of its own");
  const messages = stage.model.asked.at(-1)?.prompt.messages ?? [];
  assert.match(JSON.stringify(messages[2]), new RegExp(`x{${BIG.length}}`));
});

Deno.test("a fork from a step leaves out what came after, and has to be confirmed where that had effects", async () => {
  const { stage, runId } = await completed();
  await assert.rejects(stage.fork({ sourceRunId: runId, step: 1 }), (thrown: SysError) => {
    assert.deepEqual([thrown.code, thrown.exitCode], ["INVALID", 2]);
    assert.match(
      thrown.message,
      /t2\.1 mcp__world__pay \(write\), t3\.1 mcp__world__put \(idempotent\)$/,
    );
    assert.match(thrown.hint ?? "", /--yes/);
    return true;
  });
  const forkId = await stage.fork({ sourceRunId: runId, step: 1, confirmed: true });
  const { end } = await stage.resumeToEnd(forkId);
  assert.equal(end.state === "exited" && end.result, "Forked.");
  const roles = stage.model.asked.at(-1)?.prompt.messages.map(({ role }) => role);
  assert.deepEqual(roles, ["user", "assistant", "tool"]);
});

Deno.test("a fork from the last step with calls leaves no effects behind, and needs no word", async () => {
  const { stage, runId } = await completed();
  const forkId = await stage.fork({ sourceRunId: runId, step: 3 });
  assert.equal((await stage.resumeToEnd(forkId)).end.state, "exited");
});

Deno.test("a fork has the source's blobs, linked, and outlives it", async () => {
  const { stage, runId } = await completed();
  const blobs = await stage.disk.list(`${RUNS_FOLDER}/${runId}/blobs`);
  const forkId = await stage.fork({ sourceRunId: runId, step: 3 });
  assert.deepEqual(await stage.disk.list(`${RUNS_FOLDER}/${forkId}/blobs`), blobs);
  await stage.disk.remove(`${RUNS_FOLDER}/${runId}`, { recursive: true });
  assert.equal((await stage.resumeToEnd(forkId)).end.state, "exited");
});

Deno.test("a fork of a completed run without a new intent, or from a step that isn't there, is refused", async () => {
  const { stage, runId } = await completed();
  const runs = await stage.disk.list(RUNS_FOLDER);
  await assert.rejects(stage.fork({ sourceRunId: runId }), (thrown: SysError) => {
    assert.match(thrown.hint ?? "", /--from-step N/);
    return thrown.code === "INVALID";
  });
  await assert.rejects(stage.fork({ sourceRunId: runId, step: 9 }), {
    code: "INVALID",
    message: "The run has 4 steps, there is no step 9",
  });
  assert.deepEqual(await stage.disk.list(RUNS_FOLDER), runs, "nothing is left of it");
});

Deno.test("a fork of a run that died in a call has that call's outcome to settle, under its own key", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }], DONE] });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const forkId = await stage.fork({ sourceRunId: live.runId });
  const asked = await stage.resumeToEnd(forkId);
  assert.equal(asked.end.state === "suspended" && asked.end.reason, "unknown-outcome");
  const { end } = await stage.resumeToEnd(forkId, { rules: [{ decision: { how: "retry" } }] });
  assert.equal(end.state, "exited");
  assert.deepEqual(server.calls.map(({ key }) => key), [`${live.runId}/t1.1`, `${forkId}/t1.1`]);
});

Deno.test("a fork that can't be written leaves nothing, and the source as it was", async () => {
  const { stage, runId } = await completed();
  const before = await stage.entries(runId);
  stage.disk.plan = {
    fail: { at: stage.disk.operations.length + 12, fault: "full", forGood: true },
  };
  await assert.rejects(stage.fork({ sourceRunId: runId, step: 3 }));
  stage.disk.plan = {};
  assert.deepEqual(await stage.entries(runId), before);
});

Deno.test("a fork of a run of several incarnations has a pid of its own in each of them", async () => {
  const server = new ServerDouble({ tools: { pay: {} } });
  const stage = new KernelStage({
    servers: [server],
    budget: { turns: 1 },
    replies: [[{ tool: "world__pay" }], [{ tool: "world__pay" }], DONE],
  });
  const { runId } = await stage.run();
  await stage.resumeToEnd(runId, { budgetChange: { turns: 2 } });
  const { ledger: source } = await stage.fold(runId);
  const forkId = await stage.fork({ sourceRunId: runId });
  const { ledger } = await stage.fold(forkId);
  assert.equal(ledger.state.pids.length, source.state.pids.length);
  for (const pid of ledger.state.pids) assert.equal(await stage.kernel.pids.runOf(pid), forkId);
});

Deno.test("a run whose cut nobody has taken account of is not forked: its calls may have left", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const replies = [[{ tool: "world__pay" }], "Done."];
  const stage = new KernelStage({ servers: [server], onUnknown: "skip", replies });
  const { runId: sourceRunId } = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const path = `${RUNS_FOLDER}/${sourceRunId}/journal.jsonl`;
  const at = new TextDecoder().decode(stage.disk.peek(path)).lastIndexOf('"type":"call.intent"');
  stage.disk.flipBit(path, at + 9, 1);
  await assert.rejects(stage.fork({ sourceRunId }), { code: "INVALID", exitCode: 2 });
  await assert.rejects(stage.fork({ sourceRunId, confirmed: true }), { code: "INVALID" });
  assert.equal(server.calls.length, 1);
  assert.equal((await stage.resumeToEnd(sourceRunId, { acceptCut: true })).end.state, "exited");
  await stage.fork({ sourceRunId, step: 1, confirmed: true });
});
