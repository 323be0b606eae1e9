/** The fallback model: asked when the preferred one can't serve, and journaled as what it is. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { FALLBACK_STAY_MS } from "../../src/kernel/model_gate.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import type { PlannedReply } from "./model_double.ts";
import { taking } from "./server_double.ts";

const DOWN: PlannedReply = { error: new SysError("DRIVER", "Overloaded"), retryable: true };
const LONG: PlannedReply = {
  error: new SysError("INVALID", "Too long"),
  retryable: false,
  contextWindow: true,
};
const ALL_DOWN = [DOWN, DOWN, DOWN, DOWN];

function world(): ServerDouble {
  return new ServerDouble({
    tools: {
      get: { effect: "read" },
      wait: { effect: "read", does: taking(FALLBACK_STAY_MS) },
    },
  });
}

Deno.test("once its repeats are used up another model is asked, in the same turn, with an entry that says why", async () => {
  const stage = new KernelStage({ replies: ALL_DOWN, fallback: { replies: ["Done."] } });
  const { end, runId, ledger } = await stage.run();
  assert.equal(end.state === "exited" && end.result, "Done.");
  assert.equal(stage.model.asked.length, 4);
  const requests = await stage.entriesOf(runId, "model.request");
  assert.deepEqual(
    requests.map(({ turn, attempt, provider, model }) => [turn, attempt, provider, model]),
    [
      [1, 1, "double", "fixed"],
      [1, 1, "other", "second"],
    ],
  );
  assert.deepEqual(requests[1]?.fallback_for, {
    provider: "double",
    model: "fixed",
    error: { code: "DRIVER", message: "Overloaded" },
  });
  assert.notEqual(requests[0]?.request_sha256, requests[1]?.request_sha256);
  assert.equal(ledger.state.totals.turns, 1);
  assert.equal(ledger.state.totals.tokens, 10, "what was answered with an error isn't used up");
  assert.deepEqual(stage.eventsOf("notice").map(({ message }) => message), [
    'Model "fixed" failed: [DRIVER] Overloaded; going on with "second" (other)',
  ]);
});

Deno.test("a request that broke off before the fallback counts by its estimate", async () => {
  const cut: PlannedReply = {
    error: new SysError("DEVICE_DISCONNECTED", "Broke off"),
    retryable: true,
  };
  const stage = new KernelStage({
    replies: [cut, cut, cut, cut],
    fallback: { replies: ["Done."] },
  });
  const { runId, ledger } = await stage.run();
  const [request] = await stage.entriesOf(runId, "model.request");
  assert.equal(ledger.state.totals.tokens, 10 + (request?.tokens_estimate ?? 0));
  assert.equal((await stage.fold(runId)).ledger.state.totals.tokens, ledger.state.totals.tokens);
});

Deno.test("a conversation that is too long goes to the fallback at once, and stays there", async () => {
  const stage = new KernelStage({
    servers: [world()],
    replies: [LONG],
    fallback: { replies: [[{ tool: "world__wait" }], [{ tool: "world__wait" }], "Done."] },
  });
  const { end, runId } = await stage.run();
  assert.equal(end.state === "exited" && end.result, "Done.");
  assert.equal(stage.model.asked.length, 1);
  const requests = await stage.entriesOf(runId, "model.request");
  assert.deepEqual(requests.map(({ model }) => model), ["fixed", "second", "second", "second"]);
  assert.deepEqual(requests.map((entry) => entry.fallback_for !== undefined), [
    false,
    true,
    false,
    false,
  ]);
});

Deno.test("after a while the preferred model is tried again", async () => {
  const stage = new KernelStage({
    servers: [world()],
    replies: [...ALL_DOWN, "Back."],
    fallback: { replies: [[{ tool: "world__get" }], [{ tool: "world__wait" }]] },
  });
  const { end } = await stage.run();
  assert.equal(end.state === "exited" && end.result, "Back.");
});

Deno.test("a refused request doesn't go to the fallback", async () => {
  const refused = { error: new SysError("UNAUTHENTICATED", "No key"), retryable: false };
  const stage = new KernelStage({ replies: [refused], fallback: { replies: ["Done."] } });
  const { end } = await stage.run();
  assert.equal(end.error?.code, "UNAUTHENTICATED");
  assert.equal(stage.fallback?.asked.length, 0);
});

Deno.test("where both fail the run suspends and tells both, and a resume asks the preferred one again", async () => {
  const stage = new KernelStage({
    replies: [...ALL_DOWN, "Back."],
    fallback: { replies: ALL_DOWN, model: { model: "b" } },
  });
  const { end, runId } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "model");
  assert.equal(end.error?.message, 'Overloaded; before it, model "fixed" failed: Overloaded');
  const last = await stage.resumeToEnd(runId);
  assert.equal(last.end.state === "exited" && last.end.result, "Back.");
});

Deno.test("a crash while the fallback works is resumed from the preferred model", async () => {
  const stage = new KernelStage({
    replies: [LONG, "Again."],
    fallback: { replies: [{ hangs: true, deaf: true }] },
  });
  const live = await stage.start();
  await stage.clock.advance(1_000);
  assert.equal(stage.fallback?.asked.length, 1);
  stage.kill();
  const { end, ledger } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state === "exited" && end.result, "Again.");
  const requests = await stage.entriesOf(live.runId, "model.request");
  assert.deepEqual(requests.map(({ attempt, model }) => [attempt, model]), [
    [1, "fixed"],
    [1, "second"],
    [2, "fixed"],
  ]);
  assert.equal(ledger.state.totals.tokens, 10 + (requests[1]?.tokens_estimate ?? 0));
});
