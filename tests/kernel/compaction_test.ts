/** Compaction through the kernel: what is asked, journaled, counted and shown, and that a resume asks for nothing again. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { KernelStage, ServerDouble, type StageOptions } from "./kernel_stage.ts";
import type { PlannedReply } from "./model_double.ts";
import { ok } from "./server_double.ts";

const TOO_LONG: PlannedReply = {
  error: new SysError("INVALID", "Too long"),
  retryable: false,
  contextWindow: true,
};
const DOWN: PlannedReply = { error: new SysError("DRIVER", "Overloaded"), retryable: true };
const CALL = [{ tool: "world__get" }];
const WINDOW = 2_000;

/** Each call of it brings about three hundred tokens. */
function world(): ServerDouble {
  return new ServerDouble({
    tools: { get: { effect: "read", does: () => ok("g".repeat(1_200)) } },
  });
}

/** So many turns that the next one is near the window. */
const LONG: PlannedReply[] = [CALL, CALL, CALL, CALL, CALL];

function stageOf(replies: PlannedReply[], options: StageOptions = {}): KernelStage {
  return new KernelStage({ servers: [world()], contextWindow: WINDOW, replies, ...options });
}

Deno.test("before a turn that comes near the window a summary is asked for, with no tools, and takes the place of the oldest turns", async () => {
  const stage = stageOf([...LONG, { text: "All was got.", tokens: 40 }, "Done."]);
  const { end, runId, ledger } = await stage.run();
  assert.equal(end.state === "exited" && end.result, "Done.");
  const [summary, last] = stage.model.asked.slice(-2);
  assert.equal(summary?.prompt.purpose, "summary");
  assert.deepEqual(summary?.tools, []);
  assert.match(JSON.stringify(last?.prompt.messages), /All was got\./);
  assert.ok((last?.prompt.tokensEstimate ?? WINDOW) < WINDOW / 2);
  const requests = await stage.entriesOf(runId, "model.request");
  assert.deepEqual(requests.map(({ turn, purpose }) => [turn, purpose]).slice(-2), [
    [6, "summary"],
    [6, undefined],
  ]);
  const [compacted] = await stage.entriesOf(runId, "context.compacted");
  assert.equal(compacted?.summary, "All was got.");
  assert.deepEqual(stage.eventsOf("context.compacted"), [
    { type: "context.compacted", turn: 6, how: "summary", messages: (compacted?.to ?? 0) - 1 },
  ]);
  assert.equal(ledger.state.totals.turns, 6, "a summary is no turn");
  assert.equal(ledger.state.totals.tokens, 6 * 10 + 40, "and is paid for");
  assert.ok(stage.traces.some(({ args }) => args["purpose"] === "summary"), "strace shows it");
  assert.ok(!stage.eventsOf("model.delta").some(({ turn }) => turn === 0));
  assert.equal(stage.eventsOf("model.delta").length, 6, "a summary isn't streamed to the user");
});

Deno.test("a run that died after its compaction folds the same history, and asks for no summary again", async () => {
  const stage = stageOf([...LONG, "All was got.", { hangs: true }, "Done."]);
  const live = await stage.start();
  await stage.clock.advance(1_000);
  const asked = stage.model.asked.at(-1)?.prompt;
  stage.kill();
  const { end } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state === "exited" && end.result, "Done.");
  const again = stage.model.asked.at(-1)?.prompt;
  assert.deepEqual(again?.messages, asked?.messages);
  assert.equal(again?.sha256, asked?.sha256);
  assert.equal(stage.model.asked.filter(({ prompt }) => prompt.purpose === "summary").length, 1);
});

Deno.test("a summary that was lost with its process counts by its estimate, and is asked for anew", async () => {
  const stage = stageOf([...LONG, { hangs: true }, "All was got.", "Done."]);
  const live = await stage.start();
  await stage.clock.advance(1_000);
  stage.kill();
  const { end, ledger } = await stage.resumeToEnd(live.runId);
  assert.equal(end.state === "exited" && end.result, "Done.");
  const summaries = (await stage.entriesOf(live.runId, "model.request"))
    .filter(({ purpose }) => purpose === "summary");
  assert.deepEqual(summaries.map(({ attempt }) => attempt), [1, 2]);
  assert.equal(ledger.state.totals.tokens, 7 * 10 + (summaries[0]?.tokens_estimate ?? 0));
});

Deno.test("where the model writes no summary, or refuses to, the oldest results are left out instead", async () => {
  const refusals: PlannedReply[] = [
    { text: " " },
    { text: "Let me look", calls: CALL },
    { error: new SysError("INVALID", "No"), retryable: false },
    TOO_LONG,
  ];
  for (const refusal of refusals) {
    const server = world();
    const stage = stageOf([...LONG, refusal, "Done."], { servers: [server] });
    const { end, runId } = await stage.run();
    assert.equal(end.state === "exited" && end.result, "Done.");
    const [compacted] = await stage.entriesOf(runId, "context.compacted");
    assert.equal(compacted?.summary, undefined);
    assert.ok(compacted?.error !== undefined);
    assert.equal(stage.eventsOf("context.compacted")[0]?.how, "results");
    const messages = JSON.stringify(stage.model.asked.at(-1)?.prompt.messages);
    assert.match(messages, /this result was left out/);
    assert.match(messages, /ggg/, "those of the last turns stay");
    assert.equal(server.calls.length, 5, "a call beside a summary isn't made");
  }
});

Deno.test("a provider that is down leaves the history as it is: the run suspends, and compacts when it goes on", async () => {
  const stage = stageOf([...LONG, DOWN, DOWN, DOWN, DOWN, "All was got.", "Done."]);
  const { end, runId } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "model");
  assert.deepEqual(await stage.entriesOf(runId, "context.compacted"), []);
  const last = await stage.resumeToEnd(runId);
  assert.equal(last.end.state === "exited" && last.end.result, "Done.");
});

Deno.test("without a known window the provider's refusal brings a compaction, once, and the turn is asked again", async () => {
  const stage = stageOf([...LONG, TOO_LONG, "All was got.", "Done."], { contextWindow: undefined });
  const { end, runId, ledger } = await stage.run();
  assert.equal(end.state === "exited" && end.result, "Done.");
  const [exceeded] = await stage.entriesOf(runId, "context.exceeded");
  assert.deepEqual([exceeded?.turn, exceeded?.error.message], [6, "Too long"]);
  const requests = await stage.entriesOf(runId, "model.request");
  assert.deepEqual(requests.slice(-3).map(({ attempt, purpose }) => [attempt, purpose]), [
    [1, undefined],
    [2, "summary"],
    [2, undefined],
  ]);
  assert.equal(ledger.state.totals.tokens, 7 * 10, "what was refused wasn't used");
});

Deno.test("a history that is refused again after it was compacted fails the run, with the provider's words", async () => {
  const stage = stageOf([...LONG, TOO_LONG, "All was got.", TOO_LONG], {
    contextWindow: undefined,
  });
  const { end } = await stage.run();
  assert.equal(end.state === "exited" && end.status, "failed");
  assert.equal(end.error?.message, "Too long");
});

Deno.test("a limit that is used up forbids a summary as it forbids a turn", async () => {
  const stage = stageOf([...LONG], { budget: { tokens: 50 } });
  const { end } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "limit");
  assert.equal(stage.model.asked.length, 5);
});

Deno.test("Ctrl-C while a summary is written suspends at once and leaves the history whole", async () => {
  const stage = stageOf([...LONG, { hangs: true, deaf: true }]);
  const live = await stage.start();
  await stage.clock.advance(1_000);
  live.stop({ kind: "suspend", reason: "paused" });
  const { end } = await stage.clock.run(live.done);
  assert.equal(end.state === "suspended" && end.reason, "paused");
  assert.deepEqual(await stage.entriesOf(live.runId, "context.compacted"), []);
});
