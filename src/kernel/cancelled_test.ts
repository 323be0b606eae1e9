import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import type { DeviceOutcome } from "../vfs/device.ts";
import { outcomeWithin } from "./cancelled.ts";

const ANSWER: DeviceOutcome = { kind: "answer", isError: false, content: [] };

function facts(clock: VirtualClock) {
  const abort = new AbortController();
  return { abort, options: { clock, signal: abort.signal, graceMs: 2_000, device: "/mnt/x" } };
}

Deno.test("without a cancel an outcome takes as long as it takes", async () => {
  const clock = new VirtualClock();
  const { options } = facts(clock);
  const work = Promise.withResolvers<DeviceOutcome>();
  clock.after(1e9, () => work.resolve(ANSWER));
  assert.equal(await clock.run(outcomeWithin(work.promise, options)), ANSWER);
  assert.equal(clock.pending, 0);
});

Deno.test("an outcome within the grace is the outcome", async () => {
  const clock = new VirtualClock();
  const { abort, options } = facts(clock);
  const work = Promise.withResolvers<DeviceOutcome>();
  clock.after(100, () => abort.abort());
  clock.after(2_100, () => work.resolve(ANSWER));
  assert.equal(await clock.run(outcomeWithin(work.promise, options)), ANSWER);
  assert.equal(clock.pending, 0);
});

Deno.test("silence beyond grace and slack is an unknown outcome; what comes then is its late answer", async () => {
  for (const before of [true, false]) {
    const clock = new VirtualClock();
    const { abort, options } = facts(clock);
    const work = Promise.withResolvers<DeviceOutcome>();
    if (before) abort.abort();
    else clock.after(0, () => abort.abort());
    const outcome = await clock.run(outcomeWithin(work.promise, options));
    assert.ok(outcome.kind === "unknown" && outcome.cause === "cancelled");
    assert.equal(outcome.error.device, "/mnt/x");
    assert.equal(clock.monotonic(), 3_000);
    work.resolve(ANSWER);
    assert.equal(await outcome.late, ANSWER);
  }
});

Deno.test("a device that fails late fails nobody", async () => {
  const clock = new VirtualClock();
  const { abort, options } = facts(clock);
  const work = Promise.withResolvers<DeviceOutcome>();
  abort.abort();
  const outcome = await clock.run(outcomeWithin(work.promise, options));
  work.reject(new Error("Bug"));
  assert.equal(outcome.kind === "unknown" && await outcome.late, undefined);
});
