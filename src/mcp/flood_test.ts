import assert from "node:assert/strict";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { Allowance, Pace, TURN_MS_MAX } from "./flood.ts";

/** A clock that work moves on by itself. */
function workingClock() {
  const virtual = new VirtualClock();
  let workedMs = 0;
  const clock = {
    now: () => virtual.now() + workedMs,
    monotonic: () => virtual.monotonic() + workedMs,
    after: virtual.after.bind(virtual),
  };
  return { virtual, clock, work: (ms: number) => void (workedMs += ms) };
}

Deno.test("a pace lets all else have its turn after a few milliseconds of work, in pieces or in one", () => {
  const { clock, work } = workingClock();
  const pace = new Pace(clock);
  pace.begin();
  pace.useful();
  for (let ms = 1; ms < TURN_MS_MAX; ms += 1) {
    work(1);
    assert.equal(pace.rest(), undefined);
  }
  work(1);
  assert.ok(pace.rest() instanceof Promise);
});

Deno.test("a pace counts from when it was made, not from the clock's beginning", () => {
  const { clock, work } = workingClock();
  work(3_600_000);
  assert.equal(new Pace(clock).rest(), undefined);
});

Deno.test("pieces that cost no time are counted all the same", () => {
  const { clock } = workingClock();
  const pace = new Pace(clock);
  let pieces = 0;
  do {
    pace.begin();
    pieces += 1;
  } while (pace.rest() === undefined);
  assert.ok(pieces > 1 && pieces <= 4 * TURN_MS_MAX, String(pieces));
});

Deno.test("reading of use goes on at once, useless reading gets a quarter of the time", async () => {
  for (const [useful, pauseMs] of [[true, 0], [false, 30]] as const) {
    const { virtual, clock, work } = workingClock();
    const pace = new Pace(clock);
    pace.begin();
    work(9.75);
    if (useful) pace.useful();
    let rested = false;
    pace.rest()?.then(() => rested = true);
    if (pauseMs > 0) {
      await virtual.advance(pauseMs - 1);
      assert.equal(rested, false);
    }
    await virtual.advance(1);
    await settle();
    assert.equal(rested, true);
    assert.equal(pace.rest(), undefined, "a new turn has begun");
  }
});

Deno.test("an allowance is used up, comes back with time and is never more than its all", async () => {
  const clock = new VirtualClock();
  const allowance = new Allowance(clock, { max: 12, perSecond: 2 });
  assert.equal(allowance.take(13), false);
  assert.equal(allowance.take(12), true);
  assert.equal(allowance.take(1), false);
  await clock.advance(1_000);
  assert.equal(allowance.take(1), false, "not before a quarter is back");
  await clock.advance(500);
  assert.equal(allowance.take(1), true);
  assert.equal(allowance.take(2), true);
  assert.equal(allowance.take(1), false);
  await clock.advance(60_000);
  assert.equal(allowance.take(13), false);
  assert.equal(allowance.take(12), true);
  allowance.refill();
  assert.equal(allowance.take(12), true);
});
