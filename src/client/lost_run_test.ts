import assert from "node:assert/strict";
import { FakeSystem, report } from "../../tests/doubles/fake_system.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import type { Reader, RunHandle, RunReport } from "../base/operations.ts";
import { withJournal } from "./lost_run.ts";

const LOST = report({
  state: "suspended",
  reason: "interrupted",
  result: "",
  exit_code: 8,
  turns: 0,
  tokens_used: 0,
  elapsed_ms: 0,
  error: { code: "DEVICE_DISCONNECTED", message: "The daemon was lost in mid-run" },
});
const CALL = {
  run_id: "r",
  call: "t3.1",
  tool: "pay",
  effect: "write",
  cause: "crash",
  attempt: 1,
};

function handleOf(done: RunReport): RunHandle {
  const none = () => {};
  return { pid: 1, runId: done.run_id, suspend: none, kill: none, done: Promise.resolve(done) };
}

async function told(done: RunReport, reader: Reader): Promise<RunReport> {
  const clock = new VirtualClock();
  return await clock.run(withJournal(handleOf(done), () => Promise.resolve(reader), clock).done);
}

Deno.test("after a lost daemon the journal says how far the run came and what is unknown", async () => {
  const reader = new FakeSystem();
  reader.ended = report({
    state: "suspended",
    reason: "interrupted",
    exit_code: 9,
    turns: 3,
    tokens_used: 99,
    elapsed_ms: 1234,
    unknown_calls: [CALL],
  });
  const made = await told(LOST, reader);
  assert.deepEqual(made, {
    ...LOST,
    turns: 3,
    tokens_used: 99,
    elapsed_ms: 1234,
    unknown_calls: [CALL],
  });
});

Deno.test("a run whose end was durable has ended, though the daemon was lost before it said so", async () => {
  const reader = new FakeSystem();
  reader.ended = report({ result: "Done." });
  assert.deepEqual(await told(LOST, reader), reader.ended);
});

Deno.test("a lease that is freed some moments later is waited for, one that isn't is not", async () => {
  const reader = new FakeSystem();
  let asked = 0;
  reader.report = () => {
    asked += 1;
    return Promise.resolve(asked < 4 ? undefined : report({ turns: 7 }));
  };
  assert.equal((await told(LOST, reader)).turns, 7);
  reader.report = () => Promise.resolve(undefined);
  assert.deepEqual(await told(LOST, reader), LOST);
});

Deno.test("what can't be read, and what wasn't lost, stays as it was told", async () => {
  const failing = new FakeSystem();
  failing.failure = new Error("no state folder");
  assert.deepEqual(await told(LOST, failing), LOST);
  const reader = new FakeSystem();
  assert.deepEqual(await told(report(), reader), report());
  assert.deepEqual(reader.asked, []);
});
