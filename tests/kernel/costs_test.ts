/** Costs and their budget: counted over resumes, lost requests by their estimate, and null as soon as a part isn't known. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { FALLBACK_STAY_MS } from "../../src/kernel/model_gate.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { taking } from "./server_double.ts";

const DOLLAR_A_TOKEN = { price: { input: 1_000_000, output: 1_000_000 } };

function world(): ServerDouble {
  return new ServerDouble({ tools: { get: { effect: "read" } } });
}

function cents(cost: number | undefined): number | undefined {
  return cost === undefined ? undefined : Math.round(cost * 100) / 100;
}

Deno.test("a cost that is used up suspends the run, and a raised limit lets it go on, counted over both", async () => {
  const stage = new KernelStage({
    servers: [world()],
    model: DOLLAR_A_TOKEN,
    budget: { cost_usd: 15 },
    replies: [[{ tool: "world__get" }], [{ tool: "world__get" }], "Done."],
  });
  const { end, runId, ledger } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "limit");
  assert.equal(end.error?.message, 'Budget "cost_usd" is used up: $20 of $15');
  assert.match(end.error?.hint ?? "", /--budget cost_usd=N/);
  assert.equal(ledger.state.totals.cost_usd, 20);
  const [suspended] = await stage.entriesOf(runId, "run.suspended");
  assert.equal(suspended?.totals.cost_usd, 20);
  assert.equal((await stage.resumeToEnd(runId)).end.state, "suspended");
  assert.equal(stage.model.asked.length, 2, "no request leaves beyond the limit");
  const last = await stage.resumeToEnd(runId, { budgetChange: { cost_usd: 100 } });
  assert.equal(last.end.state, "exited");
  assert.equal(last.ledger.state.totals.cost_usd, 30);
  const replies = await stage.entriesOf(runId, "model.reply");
  assert.deepEqual(replies.map(({ cost_usd }) => cost_usd), [10, 10, 10]);
});

Deno.test("a request lost in a crash costs its estimate, and so does one lost at the end", async () => {
  const stage = new KernelStage({
    model: { price: { input: 10_000, output: 10_000 } },
    replies: [{ hangs: true, deaf: true }, "Done."],
    intent: "x".repeat(400),
  });
  const live = await stage.start();
  await stage.clock.advance(100);
  stage.kill();
  const { ledger } = await stage.resumeToEnd(live.runId);
  const [lost] = await stage.entriesOf(live.runId, "model.request");
  const estimate = (lost?.tokens_estimate ?? 0) / 100;
  assert.equal(cents(lost?.cost_estimate_usd), cents(estimate));
  assert.equal(cents(ledger.state.totals.cost_usd), cents(estimate + 0.1));
  const failing = new KernelStage({
    model: DOLLAR_A_TOKEN,
    replies: [{ error: new SysError("INVALID", "No"), retryable: false }],
  });
  const { runId } = await failing.run();
  const [request] = await failing.entriesOf(runId, "model.request");
  const [exited] = await failing.entriesOf(runId, "run.exited");
  assert.equal(exited?.totals.cost_usd, request?.tokens_estimate);
});

Deno.test("without a price there is no cost; once a part isn't known none is told, and the known part still counts", async () => {
  const free = new KernelStage({ replies: ["Done."] });
  assert.equal((await free.run()).ledger.state.totals.cost_usd, undefined);
  const stage = new KernelStage({
    servers: [world()],
    model: DOLLAR_A_TOKEN,
    budget: { cost_usd: 15 },
    replies: [[{ tool: "world__get" }], {
      error: new SysError("INVALID", "Long"),
      retryable: false,
      contextWindow: true,
    }],
    fallback: { replies: [[{ tool: "world__get" }], [{ tool: "world__get" }], "Done."] },
  });
  const { ledger, end } = await stage.run();
  assert.equal(end.state, "exited");
  assert.equal(ledger.state.totals.cost_usd, undefined);
  assert.equal(ledger.state.pricedUsd, 10);
});

Deno.test("the part whose price is known is limited though another part's isn't", async () => {
  const down = { error: new SysError("DRIVER", "Overloaded"), retryable: true };
  const wait = { effect: "read" as const, does: taking(FALLBACK_STAY_MS) };
  const stage = new KernelStage({
    servers: [new ServerDouble({ tools: { wait } })],
    model: DOLLAR_A_TOKEN,
    budget: { cost_usd: 5 },
    replies: [down, down, down, down, [{ tool: "world__wait" }], "Never."],
    fallback: { replies: [[{ tool: "world__wait" }]] },
  });
  const { end, ledger } = await stage.run();
  assert.equal(end.state === "suspended" && end.reason, "limit");
  assert.equal(ledger.state.pricedUsd, 10);
  assert.equal(ledger.state.totals.cost_usd, undefined);
});

Deno.test("entries of before there were costs fold as they did", async () => {
  const stage = new KernelStage({
    servers: [world()],
    replies: [[{ tool: "world__get" }], "Done."],
  });
  const { runId } = await stage.run();
  for (const entry of await stage.entries(runId)) {
    assert.ok(!JSON.stringify(entry).includes("cost"), JSON.stringify(entry));
  }
  const { ledger } = await stage.fold(runId);
  assert.deepEqual(
    { ...ledger.state.totals, active_ms: 0 },
    { turns: 2, tokens: 20, tool_calls: 1, active_ms: 0 },
  );
});
