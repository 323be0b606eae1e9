import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { Deadline, untilAbort } from "./deadline.ts";

Deno.test("a deadline aborts when the time is up, and says that it was the time", async () => {
  const clock = new VirtualClock();
  const deadline = new Deadline(clock, 1_000);
  await clock.advance(400);
  assert.equal(deadline.remainingMs, 600);
  assert.equal(deadline.signal.aborted, false);
  await clock.advance(600);
  assert.deepEqual([deadline.signal.aborted, deadline.expired, deadline.remainingMs], [
    true,
    true,
    0,
  ]);
});

Deno.test("the caller's abort is passed on and isn't the time", () => {
  const clock = new VirtualClock();
  const outer = new AbortController();
  const deadline = new Deadline(clock, 1_000, outer.signal);
  outer.abort(new Error("enough"));
  assert.deepEqual([deadline.signal.aborted, deadline.expired], [true, false]);
  assert.ok(new Deadline(clock, 1_000, outer.signal).signal.aborted);
});

Deno.test("a released deadline holds no timer and hears nothing more", () => {
  const clock = new VirtualClock();
  const outer = new AbortController();
  const deadline = new Deadline(clock, 1_000, outer.signal);
  deadline.release();
  outer.abort();
  assert.deepEqual([clock.pending, deadline.signal.aborted], [0, false]);
});

Deno.test("waiting until an abort gives the work's end or the abort's reason, whichever is first", async () => {
  const stop = new AbortController();
  assert.equal(await untilAbort(Promise.resolve(1), stop.signal), 1);
  await assert.rejects(() => untilAbort(Promise.reject(new Error("bad")), stop.signal), /bad/);
  const waiting = untilAbort(new Promise(() => {}), stop.signal);
  stop.abort(new Error("stop"));
  await assert.rejects(() => waiting, /stop/);
  await assert.rejects(() => untilAbort(Promise.reject(new Error("late")), stop.signal), /stop/);
});
