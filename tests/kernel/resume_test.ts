import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { KernelStage, RUNS_FOLDER, ServerDouble } from "./kernel_stage.ts";
import { taking } from "./server_double.ts";

const DONE = "Done.";

function world(): ServerDouble {
  return new ServerDouble({
    tools: { pay: {}, get: { effect: "read" }, slow: { effect: "read", does: taking(1_000) } },
  });
}

Deno.test("a completed run is refused without a new intent, and goes on with one", async () => {
  const stage = new KernelStage({ servers: [world()], replies: ["First.", "Second."] });
  const { runId } = await stage.run();
  await assert.rejects(stage.resume(runId), (thrown: SysError) => {
    assert.deepEqual([thrown.code, thrown.exitCode], ["INVALID", 2]);
    assert.match(thrown.hint ?? "", /--fork/);
    return true;
  });
  const before = (await stage.entries(runId)).length;
  const { end, ledger } = await stage.resumeToEnd(runId, { intent: "And now?" });
  assert.equal(end.state === "exited" && end.result, "Second.");
  assert.equal(ledger.state.intent, "And now?");
  const messages = stage.model.asked[1]?.prompt.messages ?? [];
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "user"]);
  assert.ok((await stage.entries(runId)).length > before);
});

Deno.test("a run that hasn't completed takes no new intent", async () => {
  const stage = new KernelStage({
    servers: [world()],
    budget: { turns: 1 },
    replies: [[{ tool: "world__get" }]],
  });
  const { runId } = await stage.run();
  await assert.rejects(stage.resume(runId, { intent: "Other" }), { code: "INVALID", exitCode: 2 });
});

Deno.test("a run that died before it had started is said to have done nothing", async () => {
  const stage = new KernelStage({ replies: [DONE] });
  const runId = "019b76da-a800-7000-8000-000000000001";
  await stage.disk.makeFolder(`${RUNS_FOLDER}/${runId}`, 0o700);
  const file = await stage.disk.open(`${RUNS_FOLDER}/${runId}/journal.jsonl`, { createNew: true });
  file.close();
  await assert.rejects(stage.resume(runId), { code: "NOT_FOUND", exitCode: 2 });
  await assert.rejects(stage.resume("019b76da-a800-7000-8000-000000000002"), { code: "NOT_FOUND" });
});

Deno.test("a start that fails leaves nothing behind", async () => {
  const stage = new KernelStage({ replies: [DONE] });
  stage.servers = new Proxy(stage.servers, {
    get: () => {
      throw new SysError("INVALID", "Variable TOKEN isn't set");
    },
  });
  await assert.rejects(stage.start(), { code: "INVALID" });
  assert.deepEqual(await stage.disk.list(RUNS_FOLDER), []);
  assert.deepEqual(stage.events, []);
});

Deno.test("a resume whose plan is refused leaves the run as it was, its lease free", async () => {
  const server = world();
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__slow" }], DONE] });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const { servers } = stage;
  stage.servers = new Proxy(servers, {
    get: () => {
      throw new SysError("INVALID", "Variable TOKEN isn't set");
    },
  });
  await assert.rejects(stage.resume(live.runId), { code: "INVALID" });
  stage.servers = servers;
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
});

Deno.test("[A15] a second resume is refused with the first one's OS pid while it lives", async () => {
  const stage = new KernelStage({ servers: [world()], replies: [[{ tool: "world__slow" }], DONE] });
  const live = await stage.start();
  await stage.clock.advance(10);
  stage.options.limits = {};
  const holdTime = stage.clock.monotonic();
  await assert.rejects(
    async () => {
      stage.model.replies.unshift({ hangs: true });
      await stage.resume(live.runId);
    },
    (thrown: SysError) => {
      assert.match(thrown.message, /is held by process 1$/);
      assert.equal(thrown.exitCode, 2);
      return true;
    },
  );
  assert.ok(stage.clock.monotonic() - holdTime >= 1_000);
  live.stop({ kind: "kill", signal: "TERM" });
  await stage.clock.run(live.done);
});

Deno.test("[A31] a run that was cut off goes on whatever its last entry says, by the lease alone", async () => {
  const stage = new KernelStage({ replies: [{ hangs: true }, DONE] });
  const live = await stage.start();
  await stage.clock.advance(10);
  stage.kill();
  const entries = await stage.entries(live.runId);
  assert.ok(!["run.suspended", "run.exited"].includes(entries.at(-1)?.type ?? ""));
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited");
});

Deno.test("a request lost with its process counts by its estimate and is made anew", async () => {
  const stage = new KernelStage({ intent: "x".repeat(400), replies: [{ hangs: true }, DONE] });
  const live = await stage.start();
  await stage.clock.advance(10);
  stage.kill();
  const { ledger } = await stage.resumeToEnd(live.runId);
  const [request] = await stage.entriesOf(live.runId, "model.request");
  assert.equal(ledger.state.totals.tokens, (request?.tokens_estimate ?? 0) + 10);
});

Deno.test("pids rise over runs, resumes and restarts, and name their runs", async () => {
  const stage = new KernelStage({ replies: [{ hangs: true }, DONE, DONE] });
  const first = await stage.start();
  await stage.clock.advance(10);
  stage.kill();
  const again = await stage.resumeToEnd(first.runId);
  const other = await stage.run();
  assert.deepEqual([again.ledger.state.pids, other.ledger.state.pids], [[1, 2], [3]]);
  const { pids } = stage.kernel;
  assert.equal(await pids.runOf(1), first.runId);
  assert.equal(await pids.runOf(2), first.runId);
  assert.equal(await pids.runOf(3), other.runId);
});

Deno.test("a killed run and a failed one go on from where they were", async () => {
  const server = world();
  const stage = new KernelStage({
    servers: [server],
    replies: [[{ tool: "world__pay" }], { hangs: true }, DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  live.stop({ kind: "kill", signal: "TERM" });
  await stage.clock.run(live.done);
  const { end } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state === "exited" && end.result, DONE);
  assert.equal(server.calls.length, 1);
});

Deno.test("[A23] a reply cut at its length fails the run; a resume tells the model to go on", async () => {
  const stage = new KernelStage({ replies: [{ text: "Half of", finishReason: "length" }, DONE] });
  const { end, runId } = await stage.run();
  assert.deepEqual(end.state === "exited" && [end.status, end.error?.code], [
    "failed",
    "RESOURCE_EXHAUSTED",
  ]);
  assert.equal((await stage.resumeToEnd(runId)).end.state, "exited");
  const roles = stage.model.asked[1]?.prompt.messages.map(({ role }) => role);
  assert.deepEqual(roles, ["user", "assistant", "user"]);
});

Deno.test("a run cut off between its last reply and its exit only exits: no request, no mount", async () => {
  const server = world();
  const stage = new KernelStage({ servers: [server], replies: [DONE] });
  const live = await stage.start();
  await stage.clock.advance(0);
  const release = stage.disk.holdSyncs();
  await stage.clock.advance(50);
  assert.equal((await stage.entries(live.runId)).at(-1)?.type, "run.exited");
  const path = `${RUNS_FOLDER}/${live.runId}/journal.jsonl`;
  stage.kill();
  release();
  stage.disk.damage(path, (bytes) => {
    const text = new TextDecoder().decode(bytes);
    return bytes.subarray(0, text.trimEnd().lastIndexOf("\n") + 1);
  });
  const mounts = server.mounts;
  const { end } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state === "exited" && end.result, DONE);
  assert.equal(stage.model.asked.length, 1);
  assert.equal(server.mounts, mounts);
});

Deno.test("a second cut right after an accepted one is taken account of as well", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const stage = new KernelStage({
    servers: [server],
    onUnknown: "skip",
    replies: [[{ tool: "world__pay" }], [{ tool: "world__pay" }], DONE],
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const path = `${RUNS_FOLDER}/${live.runId}/journal.jsonl`;
  damageType(stage, path, "model.reply");
  const second = await stage.resume(live.runId, { acceptCut: true });
  await stage.clock.advance(100);
  stage.kill();
  // Of the batch that let the second call leave, the first record.
  damageType(stage, path, "model.reply");
  const { end } = await stage.resumeToEnd(live.runId, { acceptCut: true });
  assert.equal(end.state, "exited");
  assert.equal(second.runId, live.runId);
  const keys = server.calls.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, `a key was used twice: ${keys}`);
  assert.equal((await stage.entriesOf(live.runId, "journal.cut")).length, 2);
  const unknown = (await stage.entriesOf(live.runId, "call.result"))
    .filter((result) => result.outcome === "unknown" && result.cause === "cut");
  assert.equal(unknown.length, 2);
});

/** Flips a bit in the last record of this type. */
function damageType(stage: KernelStage, path: string, type: string): void {
  const text = new TextDecoder().decode(stage.disk.peek(path));
  const at = text.lastIndexOf(`"type":"${type}"`);
  assert.ok(at > 0);
  stage.disk.flipBit(path, at + 9, 1);
}

Deno.test("what a refused resume has settled isn't shown after its refusal", async () => {
  const server = new ServerDouble({ tools: { pay: { does: taking(1_000) } } });
  const stage = new KernelStage({ servers: [server], replies: [[{ tool: "world__pay" }], DONE] });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const { servers } = stage;
  stage.servers = new Proxy(servers, {
    get: () => {
      throw new SysError("INVALID", "Variable TOKEN isn't set");
    },
  });
  const rules = [{ decision: { how: "skip" as const } }];
  await assert.rejects(stage.resume(live.runId, { rules }), { code: "INVALID" });
  await stage.clock.advance(100);
  assert.deepEqual(stage.eventsOf("call.settled"), []);
  stage.servers = servers;
  assert.equal((await stage.resumeToEnd(live.runId)).end.state, "exited", "but it holds");
});
