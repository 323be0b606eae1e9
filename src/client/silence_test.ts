import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { ALIVE_MS } from "../base/wire.ts";
import { Silence, SILENCE_LIMITS } from "./silence.ts";

function watched() {
  const clock = new VirtualClock();
  const told: string[] = [];
  const silence = new Silence(clock, { lookMs: 1_000, toldLooks: 3, lostLooks: 5 }, {
    silent: (seconds) => told.push(`silent ${seconds}`),
    back: () => told.push("back"),
    lost: (seconds) => told.push(`lost ${seconds}`),
  });
  return { clock, told, silence };
}

Deno.test("a silent daemon is told of once, then given up, and then nothing more", async () => {
  const { clock, told } = watched();
  await clock.advance(2_999);
  assert.deepEqual(told, []);
  await clock.advance(60_000);
  assert.deepEqual(told, ["silent 3", "lost 5"]);
  assert.equal(clock.pending, 0);
});

Deno.test("one that speaks in time is never told of, and one that comes back is", async () => {
  const { clock, told, silence } = watched();
  for (let second = 0; second < 20; second += 1) {
    await clock.advance(1_000);
    silence.heard();
  }
  assert.deepEqual(told, []);
  await clock.advance(4_000);
  silence.heard();
  silence.heard();
  await clock.advance(2_000);
  assert.deepEqual(told, ["silent 3", "back"]);
  silence.close();
  assert.equal(clock.pending, 0);
});

Deno.test("a client that was stopped itself doesn't take that for the daemon's silence", () => {
  const told: string[] = [];
  // An hour passes between two looks: a timer fires once for it.
  let nowMs = 0;
  let fire = () => {};
  const now = () => nowMs;
  const clock = { now, monotonic: now, after: (_: number, late: () => void) => (fire = late, now) };
  const silence = new Silence(clock, { lookMs: 1_000, toldLooks: 3, lostLooks: 5 }, {
    silent: () => told.push("silent"),
    back: () => told.push("back"),
    lost: () => told.push("lost"),
  });
  nowMs = 3_600_000;
  fire();
  silence.heard();
  silence.close();
  assert.deepEqual(told, []);
});

Deno.test("a daemon has several chances to say that it is alive before it is called silent", () => {
  const { lookMs, toldLooks, lostLooks } = SILENCE_LIMITS;
  assert.ok(lookMs * toldLooks >= 3 * ALIVE_MS);
  assert.ok(lostLooks > toldLooks);
});
