/** What comes over the wire in odd shapes, and messages that nobody asked for: all of it leaves calls as they are. */
import assert from "node:assert/strict";
import type { Fields } from "../servers/rpc_stdio.ts";
import { answerOf } from "../servers/mount_bench.ts";
import type { Scenario } from "../servers/scripted_scenario.ts";
import { scene, until } from "./fault_scene.ts";

const STDIO = ["stdio"] as const;
const WORDS = "naïve 😀 字";

const SHAPES: { [shape: string]: Scenario } = {
  "in pieces of one byte": { chunkBytes: 1 },
  "in pieces of three bytes, lines ending in CRLF": { chunkBytes: 3, crlf: true },
  "in lists of one": { batches: true },
  "several in one write": { mergeMs: 50 },
  "several in one write, cut anywhere": { mergeMs: 50, chunkBytes: 1000 },
};

for (const [shape, scenario] of Object.entries(SHAPES)) {
  scene(
    `[B49] messages ${shape} are the same messages`,
    { ...scenario, on: { "tools/call": { text: WORDS } } },
    async ({ mounted, bench }) => {
      await mounted(async (mount) => {
        const outcomes = await Promise.all([1, 2, 3, 4].map(() => bench.call(mount)));
        assert.deepEqual(outcomes.map(answerOf), [WORDS, WORDS, WORDS, WORDS]);
      });
    },
    STDIO,
  );
}

scene(
  "[B49] a line of 12 MB is a message, and the one after it too",
  { on: { "tools/call": { text: "x", textTimes: 12_000_000, then: { text: "after" } } } },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      assert.equal(answerOf(await bench.call(mount)).length, 12_000_000);
      assert.equal(answerOf(await bench.call(mount)), "after");
    });
  },
);

scene(
  "[B47] an answer of 20 MB is over the cap: the call is unknown with the reason, the next one is served",
  ({ ledger, starts }) => ({
    starts,
    lives: [
      { on: { "tools/call": { ledger, text: "x", textTimes: 20_000_000 } } },
      { on: { "tools/call": { ledger, text: "after" } } },
    ],
  }),
  async ({ mounted, bench, ledger }) => {
    await mounted(async (mount) => {
      const outcome = await bench.call(mount);
      assert.ok(outcome.kind === "unknown" && outcome.cause === "disconnected");
      assert.match(outcome.error.message, /16777216 bytes/);
      assert.equal(ledger().length, 1);
      assert.equal(answerOf(await bench.call(mount)), "after");
    });
    assert.equal(ledger().length, 2);
  },
  ["stdio"],
);

scene(
  "[B47] an endless line ends the connection at the cap, the next call is served",
  ({ starts }) => ({
    starts,
    lives: [{ on: { "tools/call": { floodBytes: 200 * 1024 * 1024 } } }, {}],
  }),
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const outcome = await bench.call(mount);
      assert.ok(outcome.kind === "unknown" && outcome.cause === "disconnected");
      assert.match(outcome.error.message, /over 16777216 bytes/);
      assert.equal(answerOf(await bench.call(mount)), "called t");
    });
  },
  STDIO,
);

scene(
  "[B55] ids that come back as text find their calls",
  { idsAsText: true },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const outcomes = await Promise.all([1, 2, 3].map(() => bench.call(mount)));
      assert.deepEqual(outcomes.map(answerOf), ["called t", "called t", "called t"]);
    });
  },
  STDIO,
);

const UNASKED: Fields[] = [
  { id: 9_000, result: { content: [{ type: "text", text: "not yours" }] } },
  { id: "nobody", error: { code: -32000, message: "not yours" } },
  { id: null, error: { code: -32700, message: "Parse error" } },
  { method: "notifications/message", params: { level: "info", data: "hello" } },
  { method: "notifications/progress", params: { progressToken: 77, progress: 1 } },
  { method: "notifications/nobody-knows" },
  { method: "notifications/cancelled", params: { requestId: 1, reason: "mine" } },
];

scene(
  "answers that nobody asked for, unknown notifications and progress of nothing are dropped",
  { on: { "tools/call": { send: UNASKED, text: "mine" } } },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      assert.equal(answerOf(await bench.call(mount)), "mine");
      assert.equal(answerOf(await bench.call(mount)), "mine");
    });
  },
);

scene(
  "requests of the server with the ids of our own are answered, and no call takes them for its answer",
  {
    on: {
      "tools/call": {
        send: Array.from({ length: 12 }, (_, id) => ({ id, method: "ping" })),
        text: "mine",
      },
    },
  },
  async ({ mounted, bench, received }) => {
    await mounted(async (mount) => {
      const outcomes = [await bench.call(mount), await bench.call(mount)];
      assert.deepEqual(outcomes.map(answerOf), ["mine", "mine"]);
      const answers = () => received().filter((message) => "result" in message);
      await until(() => answers().length === 24);
      assert.deepEqual(new Set(answers().map(({ id }) => id)).size, 12);
    });
  },
);

scene(
  "an answer that comes three times counts once",
  ({ ledger }) => ({ on: { "tools/call": { ledger, answers: 3, text: "mine" } } }),
  async ({ mounted, bench, ledger }) => {
    await mounted(async (mount) => {
      const outcomes = [await bench.call(mount), await bench.call(mount)];
      assert.deepEqual(outcomes.map(answerOf), ["mine", "mine"]);
    });
    assert.equal(ledger().length, 2);
  },
);

scene(
  "notifications and requests before the handshake disturb nothing, a ping is answered",
  {
    start: {
      send: [
        { method: "notifications/tools/list_changed" },
        { method: "notifications/message", params: { level: "info", data: "starting" } },
        { id: "early", method: "ping" },
      ],
    },
  },
  async ({ mounted, bench, received }) => {
    await mounted(async (mount) => {
      assert.equal(answerOf(await bench.call(mount)), "called t");
    });
    const answer = received().find(({ id }) => id === "early");
    assert.deepEqual(answer?.["result"], {});
  },
  STDIO,
);

scene(
  "[B45] a call that finds the server's stdin shut is made on a new server, once",
  ({ ledger, starts }) => ({
    starts,
    lives: [
      { on: { "tools/call": { ledger, closeStdin: true, text: "closing" } } },
      { on: { "tools/call": { ledger, text: "anew" } } },
    ],
  }),
  async ({ mounted, bench, ledger }) => {
    await mounted(async (mount) => {
      assert.equal(answerOf(await bench.call(mount)), "closing");
      // The pipe proves that nothing was sent: the call is made on a new server instead, once.
      assert.equal(answerOf(await bench.call(mount)), "anew");
      assert.equal(ledger().length, 2);
    });
  },
  STDIO,
);
