/** Calls that are never answered, answered late, cancelled, asked back or lost: what is known of each is told, and none is done twice. */
import assert from "node:assert/strict";
import { answerOf, textOf } from "../servers/mount_bench.ts";
import type { Ask } from "../servers/scripted_scenario.ts";
import { scene, until } from "./fault_scene.ts";

/** Far more than anything here takes on a loaded machine. */
const LIMIT_MS = 60_000;
const TWO_TOOLS = ["t", "quick"].map((name) => ({ name, inputSchema: { type: "object" } }));

scene(
  "[B01] a call that is never answered ends at its limit as unknown, the server is told and lives on",
  ({ ledger }) => ({
    tools: TWO_TOOLS,
    on: { "tools/call:t": { ledger, silent: true } },
  }),
  async ({ mounted, bench, ledger, methods, transport }) => {
    await mounted(async (mount) => {
      const outcome = await bench.call(mount);
      assert.ok(outcome.kind === "unknown" && outcome.cause === "timeout");
      assert.match(outcome.error.message, /timeout 2s without progress, max_timeout/);
      assert.equal(answerOf(await bench.call(mount, "quick")), "called quick");
      await until(() => methods().includes("notifications/cancelled"));
      if (transport === "stdio") assert.ok(methods().includes("notifications/cancelled"));
    }, { timeoutMs: 2_000 });
    assert.equal(ledger().length, 1);
  },
);

scene(
  "an answer after the limit is a late answer of that call and of no other",
  { on: { "tools/call": { delayMs: 5_000, text: "late", then: { text: "second" } } } },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const first = await bench.call(mount);
      assert.ok(first.kind === "unknown" && first.cause === "timeout");
      assert.equal(answerOf(await bench.call(mount)), "second");
      const late = await first.late;
      assert.ok(late !== undefined);
      assert.equal(answerOf(late), "late");
    }, { timeoutMs: 2_000 });
  },
  ["stdio"],
);

scene(
  "progress re-arms the limit of a call that takes longer",
  { on: { "tools/call": { progress: { everyMs: 700, count: 6 }, text: "done" } } },
  async ({ mounted, bench }) => {
    const told: string[] = [];
    await mounted(async (mount) => {
      const onProgress = (message: string) => told.push(message);
      assert.equal(answerOf(await bench.call(mount, "t", {}, { onProgress })), "done");
    }, { timeoutMs: 3_500 });
    assert.deepEqual(told, ["step 1", "step 2", "step 3", "step 4", "step 5", "step 6"]);
  },
);

scene(
  "[B61] progress for ever stops at max_timeout, and both limits are told",
  { on: { "tools/call": { progress: { everyMs: 100, count: 100_000 } } } },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const outcome = await bench.call(mount);
      assert.ok(outcome.kind === "unknown" && outcome.cause === "timeout");
      assert.match(outcome.error.message, /timeout 5s .* max_timeout 1s/);
    }, { timeoutMs: 5_000, maxTimeoutMs: 1_000 });
  },
);

scene(
  "[B63] cancelling one of two calls ends that one alone, and the server stays",
  ({ starts }) => ({
    starts,
    tools: TWO_TOOLS,
    on: {
      "tools/call:t": { silent: true },
      "tools/call:quick": { delayMs: 1_000, text: "unharmed" },
    },
  }),
  async ({ mounted, bench, methods }) => {
    await mounted(async (mount) => {
      const stop = new AbortController();
      const first = bench.call(mount, "t", {}, { signal: stop.signal, cancelGraceMs: 100 });
      const second = bench.call(mount, "quick");
      await until(() => methods().filter((method) => method === "tools/call").length === 2);
      stop.abort();
      const outcome = await first;
      assert.ok(outcome.kind === "unknown" && outcome.cause === "cancelled");
      assert.equal(answerOf(await second), "unharmed");
      assert.equal(methods().filter((method) => method === "initialize").length, 1);
    });
  },
);

const ASKS: { ask: Ask; answer: RegExp }[] = [
  { ask: { method: "ping" }, answer: /"result":\{\}/ },
  { ask: { method: "roots/list" }, answer: /"roots":\[\]|-32601/ },
  {
    ask: { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } },
    answer: /"error"/,
  },
  {
    ask: {
      method: "elicitation/create",
      params: { message: "Who?", requestedSchema: { type: "object", properties: {} } },
    },
    answer: /"action":"decline"|"error"/,
  },
  { ask: { method: "nobody/knows" }, answer: /-32601/ },
];

for (const { ask, answer } of ASKS) {
  scene(
    `[B57] a server that asks ${ask.method} in the middle of a call is answered at once`,
    { on: { "tools/call": { ask } } },
    async ({ mounted, bench }) => {
      await mounted(async (mount) => {
        const began = performance.now();
        assert.match(answerOf(await bench.call(mount)), answer);
        // Nobody waits for the limit.
        assert.ok(performance.now() - began < LIMIT_MS);
      }, { timeoutMs: 2 * LIMIT_MS, maxTimeoutMs: 2 * LIMIT_MS });
    },
  );
}

scene(
  "[B59] a call that wants input nobody can give fails at once with the reason, and isn't made twice",
  ({ ledger }) => ({
    era: "modern",
    on: {
      "tools/call": {
        ledger,
        result: {
          resultType: "input_required",
          inputRequests: {
            who: { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } },
          },
        },
      },
    },
  }),
  async ({ mounted, bench, ledger }) => {
    await mounted(async (mount) => {
      const outcome = await bench.call(mount);
      assert.ok(outcome.kind === "answer" && outcome.isError);
      assert.match(textOf(outcome.content), /sampling\/createMessage.*was not completed/);
    });
    assert.equal(ledger().length, 1);
  },
);

scene(
  "[A05] a server that acts and goes before it answers: unknown, and done once",
  ({ ledger, starts }) => ({
    starts,
    on: { "tools/call": { ledger, exit: 1 } },
    lives: [{}, { on: { "tools/call": { ledger, text: "second life" } } }],
  }),
  async ({ mounted, bench, ledger }) => {
    await mounted(async (mount) => {
      const outcome = await bench.call(mount);
      assert.ok(outcome.kind === "unknown" && outcome.cause === "disconnected");
      assert.match(outcome.error.message, /exited with code 1/);
      assert.equal(ledger().length, 1);
      assert.equal(answerOf(await bench.call(mount)), "second life");
      assert.equal(ledger().length, 2);
    });
  },
  ["stdio"],
);

scene(
  "[A07] [A09] a tool's error and a protocol error are answers: neither is sent again, whatever it says of repeats",
  ({ ledger }) => ({
    on: {
      "tools/call": {
        ledger,
        result: { isError: true, content: [{ type: "text", text: "no such page" }] },
        then: { ledger, error: { code: -32603, message: "boom", data: { retryable: true } } },
      },
    },
  }),
  async ({ mounted, bench, ledger }) => {
    await mounted(async (mount) => {
      const refused = await bench.call(mount);
      assert.ok(refused.kind === "answer" && refused.isError);
      assert.equal(textOf(refused.content), "no such page");
      const failed = await bench.call(mount);
      assert.ok(failed.kind === "answer" && failed.isError);
      assert.match(textOf(failed.content), /MCP error -32603: boom/);
    });
    assert.equal(ledger().length, 2);
  },
);
