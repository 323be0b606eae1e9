/** Random lives of a mount: what its state machine asks for happens some time later, well or badly, and the invariants hold. */
import assert from "node:assert/strict";
import {
  connecting,
  type LineFacts,
  type MountEffect,
  type MountEvent,
  type MountState,
  PING_RULES,
  step,
  UNATTENDED_MAX,
  USE_FLOOR_MS,
} from "./mount_state.ts";

const quiet: LineFacts = { heardMs: 0, open: 0, abandoned: 0, jumped: false };
const stepped = (state: MountState, event: MountEvent) => step(state, event, PING_RULES);

/** A small generator of random numbers (mulberry32), 0 to 1. */
function randomOf(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A random life: what the machine asked for happens some time later, well or badly. Checks the invariants at each step. */
class Life {
  state = stepped(connecting(0), { type: "started", nowMs: 0 }).state;
  nowMs = 0;
  readonly starts: number[] = [0];
  readonly #random: () => number;
  #starting = false;
  #question: number | undefined;
  #unattended = 0;
  #waiting: number[] = [];

  constructor(seed: number) {
    this.#random = randomOf(seed);
  }

  turn(): void {
    this.nowMs += Math.floor(this.#random() * this.#random() * 20_000);
    const line: LineFacts = {
      heardMs: this.nowMs - Math.floor(this.#random() * 90_000),
      open: this.#random() < 0.3 ? 1 : 0,
      abandoned: this.#random() < 0.1 ? 1 : 0,
      jumped: this.#random() < 0.05,
    };
    const { timerMs } = this.state;
    if (timerMs !== undefined && timerMs <= this.nowMs) {
      return this.take({ type: "timer", nowMs: this.nowMs, line }, line);
    }
    this.take(this.#event(line), line);
  }

  #event(line: LineFacts): MountEvent {
    const { nowMs } = this;
    const failure = { nowMs, reason: "no", jitter: this.#random() };
    const chance = this.#random();
    if (this.#starting && chance < 0.5) {
      this.#starting = false;
      return chance < 0.25 ? { type: "started", nowMs } : { type: "failed", ...failure };
    }
    if (this.#question !== undefined && chance < 0.6) {
      const question = this.#question;
      this.#question = undefined;
      return { type: "verdict", ...failure, question, isAlive: chance < 0.3, line };
    }
    return chance < 0.7 ? { type: "lost", ...failure } : { type: "use", nowMs, line };
  }

  take(event: MountEvent, line: LineFacts): void {
    const before = this.state;
    const { state, effects } = stepped(before, event);
    this.state = state;
    if (event.type === "use") {
      this.#unattended = 0;
      this.#waiting.push(event.nowMs);
    }
    for (const effect of effects) this.#check(effect, line);
    if (state.phase !== "suspect") this.#question = undefined;
    const isTimed = ["connected", "suspect", "waiting"].includes(state.phase);
    assert.ok(state.timerMs === undefined || isTimed, `a timer in ${state.phase}`);
    assert.ok(state.phase === "closed" || (state.phase === "reconnecting") === this.#starting);
    if (state.phase === "connected") assert.deepEqual(this.#waiting, [], "all have it");
    if (this.#waiting.length > 0 && state.phase === "waiting") {
      assert.ok(state.timerMs !== undefined, "who waits is not forgotten");
      assert.ok(state.timerMs <= state.attemptMs + USE_FLOOR_MS || state.timerMs <= this.nowMs);
    }
  }

  #check(effect: MountEffect, line: LineFacts): void {
    switch (effect.do) {
      case "start":
        assert.ok(!this.#starting, "one start at a time");
        this.#starting = true;
        this.starts.push(this.nowMs);
        this.#unattended += 1;
        assert.ok(this.#waiting.length > 0 || this.#unattended <= UNATTENDED_MAX);
        break;
      case "ask":
        assert.equal(line.open, 0, "nothing is asked while a request is on its way");
        this.#question = effect.question;
        break;
      case "hand-out":
        this.#waiting = [];
        break;
      case "refuse":
        this.#waiting = this.#waiting.filter((came) => came > (effect.cameUntilMs ?? Infinity));
        break;
      case "end":
        assert.ok(line.open === 0);
    }
  }
}

Deno.test("the invariants hold over random lives", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const life = new Life(seed);
    for (let turn = 0; turn < 400; turn += 1) life.turn();
    life.take({ type: "close", nowMs: life.nowMs }, quiet);
    assert.equal(life.state.phase, "closed");
  }
});
