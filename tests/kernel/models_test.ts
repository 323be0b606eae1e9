import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { type PlannedReply, REPLY_MS, REQUEST_MS_MAX } from "./model_double.ts";

function down(retryAfterMs?: number): PlannedReply {
  const error = new SysError("DRIVER", "Overloaded");
  return { error, retryable: true, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

function times(stage: KernelStage): number[] {
  const first = stage.model.asked[0]?.atMs ?? 0;
  return stage.model.asked.map(({ atMs }) => atMs - first);
}

Deno.test("a failed request is repeated after 1, 4 and 15 s, as one turn", async () => {
  const stage = new KernelStage({ replies: [down(), down(), down(), "Done."] });
  const { end, runId, ledger } = await stage.run();
  assert.equal(end.state === "exited" && end.result, "Done.");
  assert.deepEqual(times(stage), [0, 1_001, 5_002, 20_003].map((ms) => ms * REPLY_MS));
  assert.equal((await stage.entriesOf(runId, "model.request")).length, 1);
  assert.equal(ledger.state.totals.turns, 1);
  assert.deepEqual(stage.eventsOf("model.retrying").map(({ wait_ms }) => wait_ms), [
    1_000,
    4_000,
    15_000,
  ]);
});

Deno.test("Retry-After is obeyed, up to a minute, and never shortens a wait", async () => {
  const stage = new KernelStage({ replies: [down(7_000), down(10), down(3_600_000), "Done."] });
  await stage.run();
  assert.deepEqual(stage.eventsOf("model.retrying").map(({ wait_ms }) => wait_ms), [
    7_000,
    4_000,
    60_000,
  ]);
});

Deno.test("a provider that stays down suspends the run, and the resume asks with a new attempt", async () => {
  const stage = new KernelStage({ replies: [down(), down(), down(), down(), "Done."] });
  const { end, runId } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "model");
  assert.equal(end.error?.message, "Overloaded");
  const last = await stage.resumeToEnd(runId);
  assert.equal(last.end.state === "exited" && last.end.result, "Done.");
  const requests = await stage.entriesOf(runId, "model.request");
  assert.deepEqual(requests.map(({ turn, attempt }) => [turn, attempt]), [[1, 1], [1, 2]]);
  assert.deepEqual(
    new Set(requests.map(({ request_sha256 }) => request_sha256)).size,
    1,
    "the same request in both incarnations",
  );
});

Deno.test("a refused request fails the run, and a resume of the failed run asks again", async () => {
  const stage = new KernelStage({
    replies: [{ error: new SysError("UNAUTHENTICATED", "No key"), retryable: false }, "Done."],
  });
  const { end, runId } = await stage.run();
  assert.deepEqual(end.state === "exited" && [end.status, end.exitCode, end.error?.code], [
    "failed",
    1,
    "UNAUTHENTICATED",
  ]);
  assert.equal(stage.model.asked.length, 1);
  assert.equal((await stage.resumeToEnd(runId)).end.state, "exited");
});

Deno.test("a model port that throws fails the run with what it threw", async () => {
  const stage = new KernelStage({ replies: [{ throws: new Error("Bug in the port") }] });
  const { end } = await stage.run();
  assert.equal(end.state === "exited" && end.error?.message, "Bug in the port");
});

Deno.test("[B01] a model that says nothing is given up at its limit, repeated, and then suspends the run", async () => {
  const silent: PlannedReply = { hangs: true };
  const stage = new KernelStage({ replies: [silent, silent, silent, silent] });
  const { end } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "model");
  assert.equal(end.error?.code, "TIMEOUT");
  assert.match(end.error?.message ?? "", /within 600 s \(models\.max_timeout\)/);
  assert.equal(times(stage).at(-1), 3 * REQUEST_MS_MAX + 20_000);
  assert.equal(stage.clock.pending, 0);
});

Deno.test("a reply shows its text as it comes, and its end only once it is durable", async () => {
  const stage = new KernelStage({ replies: ["Done."] });
  const live = await stage.start();
  const release = stage.disk.holdSyncs();
  await stage.clock.advance(REPLY_MS + 20);
  assert.equal(stage.eventsOf("model.delta").length, 1);
  assert.equal(stage.eventsOf("model.finished").length, 0);
  release();
  await stage.clock.run(live.done);
  assert.equal(stage.eventsOf("model.finished").length, 1);
});

Deno.test("[B27] a tool that the provider refuses is set aside with its reason, the others work", async () => {
  const stage = new KernelStage({
    servers: [new ServerDouble({ tools: { good: {}, bad: {} } })],
    replies: [[{ tool: "world__good" }, { tool: "world__bad" }], "Done."],
  });
  stage.model.refused.add("bad");
  const { runId } = await stage.run();
  assert.deepEqual(stage.model.asked[0]?.tools.map(({ name }) => name), ["good"]);
  const [ready] = await stage.entriesOf(runId, "mount.ready");
  assert.deepEqual(ready?.set_aside, { bad: "No schema for bad" });
  const results = await stage.entriesOf(runId, "call.result");
  assert.deepEqual(results.map(({ outcome }) => outcome).sort(), ["error", "ok"]);
});

Deno.test("the request's bytes don't depend on pid or incarnation", async () => {
  const hashes = [];
  for (let round = 0; round < 2; round += 1) {
    const stage = new KernelStage({
      servers: [new ServerDouble({ tools: { b: {}, a: {} } })],
      replies: [[{ tool: "world__a", id: "x" }], "Done."],
    });
    if (round === 1) await stage.kernel.pids.allocate("another").catch(() => {});
    const { runId } = await stage.run();
    const requests = await stage.entriesOf(runId, "model.request");
    hashes.push(requests.map(({ request_sha256 }) => request_sha256));
  }
  assert.deepEqual(hashes[0], hashes[1]);
});
