/** Servers that are busy, deaf to ping, hung, stopped, or gone: what is alive is left alone, what is dead comes back, and nothing is done twice on the way. */
import assert from "node:assert/strict";
import { answerOf } from "../servers/mount_bench.ts";
import { scene, until } from "./fault_scene.ts";

/** Sooner than the real rules; an answer may take as long as a loaded machine needs. */
const QUICK = { ping: { intervalMs: 200, timeoutMs: 4_000, misses: 2 } };
const HASTY = { ping: { intervalMs: 200, timeoutMs: 800, misses: 3 } };
const PATIENT = { ping: { intervalMs: 200, timeoutMs: 20_000, misses: 3 } };
const STDIO = ["stdio"] as const;

scene(
  "[B15] a server that drops ping stays mounted and isn't asked so again",
  ({ starts }) => ({ starts, on: { ping: { silent: true } } }),
  async ({ mounted, bench, methods, starts, transport }) => {
    await mounted(async (mount) => {
      const lists = () => methods().filter((method) => method === "tools/list").length;
      await until(() => lists() > 2);
      assert.ok(lists() > 2, "tools/list is asked in place of ping");
      const pings = methods().filter((method) => method === "ping").length;
      assert.equal(pings, QUICK.ping.misses);
      assert.equal(answerOf(await bench.call(mount)), "called t");
      if (transport === "stdio") assert.equal(starts(), 1);
    });
  },
  undefined,
  QUICK,
);

scene(
  "[B15] a server that answers ping with method not found is alive",
  ({ starts }) => ({
    starts,
    on: { ping: { error: { code: -32601, message: "Method not found" } } },
  }),
  async ({ mounted, bench, methods, starts }) => {
    await mounted(async (mount) => {
      await until(() => methods().filter((method) => method === "ping").length > 5);
      assert.equal(methods().filter((method) => method === "tools/list").length, 1);
      assert.equal(answerOf(await bench.call(mount)), "called t");
      assert.equal(starts(), 1);
    });
  },
  undefined,
  PATIENT,
);

scene(
  "[B17] a single-threaded server that is busy in a call is not taken for dead",
  ({ ledger, starts }) => ({
    starts,
    on: { "tools/call": { ledger, blockMs: 5_000, text: "done after all" } },
  }),
  async ({ mounted, bench, starts, ledger }) => {
    await mounted(async (mount) => {
      assert.equal(answerOf(await bench.call(mount)), "done after all");
      assert.deepEqual([starts(), ledger().length], [1, 1]);
    });
  },
  undefined,
  HASTY,
);

scene(
  "a server that exits after handshake and discovery, a call after each, is not started in a storm",
  ({ starts }) => ({ starts, on: { "tools/list": { exitAfter: 0 } } }),
  async ({ mounted, bench, starts }) => {
    await mounted(async (mount) => {
      const began = performance.now();
      const passedMs = () => performance.now() - began;
      while (passedMs() < 4_000 || (starts() < 3 && passedMs() < 60_000)) {
        const outcome = await Promise.race([bench.call(mount), pausing(1_000)]);
        if (outcome !== undefined) assert.notEqual(outcome.kind, "answer");
      }
      // At 0, 0, 1, 3 and 7 s at the earliest; a busy machine makes none sooner.
      const startsMax = 3 + Math.log2(1 + passedMs() / 1_000);
      assert.ok(starts() >= 3 && starts() <= startsMax, `${starts()} starts in ${passedMs()} ms`);
    });
  },
  STDIO,
);

function pausing(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms));
}

scene(
  "a server that dies in every fifth call: the call is unknown, none is made twice, the others are answered",
  ({ ledger, starts }) => ({
    starts,
    on: { "tools/call": { uses: 4, ledger, text: "ok", then: { ledger, exit: 1 } } },
  }),
  async ({ mounted, bench, ledger }) => {
    await mounted(async (mount) => {
      const kinds: string[] = [];
      for (let call = 0; call < 12; call += 1) {
        const outcome = await bench.call(mount);
        kinds.push(outcome.kind);
      }
      assert.equal(kinds.filter((kind) => kind === "unknown").length, 2);
      assert.equal(ledger().length, 12);
      assert.equal(new Set(ledger()).size, 12, "each key once");
    });
  },
  STDIO,
);
