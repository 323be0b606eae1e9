/** The mount's state machine: every phase with every event, the row of starts, and its invariants over random lives. */
import assert from "node:assert/strict";
import type { MountPhase } from "../../base/mount_health.ts";
import {
  connecting,
  delayMs,
  HEALTHY_MS,
  type LineFacts,
  type MountEffect,
  type MountEvent,
  type MountState,
  PING_RULES,
  RETRY_AFTER_MS_MAX,
  step,
  UNATTENDED_MAX,
  USE_FLOOR_MS,
} from "./mount_state.ts";

const NOW = 1_000_000;
const quiet: LineFacts = { heardMs: 0, open: 0, abandoned: 0, jumped: false };
const busy: LineFacts = { ...quiet, open: 1 };

const base = connecting(0);
const inPhase = (phase: MountPhase, more: Partial<MountState> = {}): MountState => ({
  ...base,
  phase,
  upMs: NOW - 1_000,
  ...more,
});

/** One state per phase, as it is in the middle of it. */
const states: { [phase in MountPhase]: MountState } = {
  connecting: base,
  connected: inPhase("connected", { timerMs: NOW }),
  suspect: inPhase("suspect", { question: 7, askedMs: NOW - 5_000 }),
  reconnecting: inPhase("reconnecting", { attempts: 2, attemptMs: NOW - 100 }),
  waiting: inPhase("waiting", { attempts: 2, attemptMs: NOW - 100, retryMs: NOW, timerMs: NOW }),
  closed: inPhase("closed"),
};

const failure = { nowMs: NOW, reason: "it broke", jitter: 0 };
const verdict = { nowMs: NOW, question: 7, line: quiet, jitter: 0 };
const events: { [name: string]: MountEvent } = {
  started: { type: "started", nowMs: NOW },
  failed: { type: "failed", ...failure },
  lost: { type: "lost", ...failure },
  use: { type: "use", nowMs: NOW, line: quiet },
  timer: { type: "timer", nowMs: NOW, line: quiet },
  alive: { type: "verdict", ...verdict, isAlive: true },
  silent: { type: "verdict", ...verdict, isAlive: false },
  close: { type: "close", nowMs: NOW },
};

const stepped = (state: MountState, event: MountEvent) => step(state, event, PING_RULES);

function told(effects: MountEffect[]): string {
  return effects.map((effect) => effect.do === "ask" ? `ask ${effect.method}` : effect.do)
    .join(", ");
}

function after(state: MountState, event: MountEvent): string {
  const next = stepped(state, event);
  const doings = told(next.effects);
  return doings === "" ? next.state.phase : `${next.state.phase}: ${doings}`;
}

const closing = "closed: refuse";
/** Phase and effects after an event. */
const TABLE = {
  connecting: {
    started: "connected: hand-out",
    failed: "closed: refuse",
    lost: "connecting",
    use: "connecting",
    timer: "connecting",
    alive: "connecting",
    silent: "connecting",
    close: closing,
  },
  connected: {
    started: "connected",
    failed: "connected",
    lost: "reconnecting: note, start",
    use: "connected: hand-out",
    timer: "suspect: ask ping",
    alive: "connected",
    silent: "connected",
    close: closing,
  },
  suspect: {
    started: "suspect",
    failed: "suspect",
    lost: "reconnecting: note, start",
    use: "suspect: ask tools/list",
    timer: "suspect: ask ping",
    alive: "connected: hand-out",
    silent: "suspect",
    close: closing,
  },
  reconnecting: {
    started: "connected: note, hand-out",
    failed: "waiting: refuse, note",
    lost: "reconnecting",
    use: "reconnecting",
    timer: "reconnecting",
    alive: "reconnecting",
    silent: "reconnecting",
    close: closing,
  },
  waiting: {
    started: "waiting",
    failed: "waiting",
    lost: "waiting",
    use: "reconnecting: start",
    timer: "reconnecting: start",
    alive: "waiting",
    silent: "waiting",
    close: closing,
  },
  closed: {
    started: "closed",
    failed: "closed",
    lost: "closed",
    use: "closed: refuse",
    timer: "closed",
    alive: "closed",
    silent: "closed",
    close: "closed",
  },
};

Deno.test("every phase with every event", () => {
  const table = Object.fromEntries(
    Object.entries(states).map(([phase, state]) => [
      phase,
      Object.fromEntries(
        Object.entries(events).map(([name, event]) => [name, after(state, event)]),
      ),
    ]),
  );
  assert.deepEqual(table, TABLE);
});

Deno.test("[A07] a closed mount has no timer, and nothing opens it", () => {
  for (const state of Object.values(states)) {
    const closed = stepped(state, { type: "close", nowMs: NOW }).state;
    assert.equal(closed.timerMs, undefined);
    for (const event of Object.values(events)) assert.equal(stepped(closed, event).state, closed);
  }
});

/** Lets starts fail without a use until none is made any more; times between the failure and the next start. */
function pauses(first: MountState, jitter = 0): number[] {
  let state = first;
  let nowMs = NOW;
  const waited = [];
  while (state.phase === "reconnecting") {
    state = stepped(state, { type: "failed", nowMs, reason: "no", jitter }).state;
    if (state.timerMs === undefined) break;
    waited.push(state.timerMs - nowMs);
    nowMs = state.timerMs;
    state = stepped(state, { type: "timer", nowMs, line: quiet }).state;
  }
  assert.equal(state.phase, "waiting");
  return waited;
}

Deno.test("[B2] the row is 0, 1, 2, 4 … 60 s; without a use it is made once", () => {
  assert.deepEqual(Array.from({ length: 10 }, (_, n) => delayMs(n) / 1_000), [
    ...[0, 1, 2, 4, 8, 16, 32, 60, 60, 60],
  ]);
  const lost = stepped(states.connected, { type: "lost", ...failure }).state;
  assert.equal(lost.phase, "reconnecting", "the first start has no pause");
  assert.deepEqual(pauses(lost), [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
  assert.equal(pauses(lost).length, UNATTENDED_MAX - 1);
  assert.deepEqual(pauses(lost, 1), [1_100, 2_200, 4_400, 8_800, 17_600, 35_200, 66_000]);
});

Deno.test("[B09] a healthy minute starts the row anew, a handshake doesn't", () => {
  const late = { ...states.connected, attempts: 6, attemptMs: NOW - HEALTHY_MS };
  const young = stepped({ ...late, upMs: NOW - HEALTHY_MS + 1 }, { type: "lost", ...failure });
  assert.deepEqual([young.state.phase, young.state.timerMs], ["waiting", NOW + 32_000]);
  const healthy = stepped({ ...late, upMs: NOW - HEALTHY_MS }, { type: "lost", ...failure });
  assert.deepEqual([healthy.state.phase, healthy.state.attempts], ["reconnecting", 1]);
});

Deno.test("a use brings a start forward, but not closer to the last one than the floor", () => {
  const long = { ...states.waiting, retryMs: NOW + 60_000, timerMs: NOW + 60_000 };
  const recent = stepped(long, { type: "use", nowMs: NOW, line: quiet });
  assert.deepEqual(recent.effects, []);
  assert.equal(recent.state.timerMs, long.attemptMs + USE_FLOOR_MS);
  const old = { ...long, attemptMs: NOW - USE_FLOOR_MS };
  assert.equal(after(old, { type: "use", nowMs: NOW, line: quiet }), "reconnecting: start");
});

Deno.test("who joins a start under way waits for the next when it fails", () => {
  const joined = stepped(states.reconnecting, { type: "use", nowMs: NOW, line: quiet }).state;
  const { state, effects } = stepped(joined, { type: "failed", ...failure, nowMs: NOW + 1 });
  assert.deepEqual([state.phase, state.wanted], ["waiting", true]);
  const [refusal] = effects;
  assert.ok(refusal?.do === "refuse" && refusal.cameUntilMs === joined.attemptMs);
});

Deno.test("Retry-After comes before the row, the floor and the first start, and is capped", () => {
  const asked = (retryAfterMs: number) =>
    stepped(states.connected, { type: "lost", ...failure, retryAfterMs }).state;
  assert.equal(asked(20_000).timerMs, NOW + 20_000);
  assert.equal(asked(24 * 3_600_000).timerMs, NOW + RETRY_AFTER_MS_MAX);
  const use = (state: MountState) => stepped(state, { type: "use", nowMs: NOW, line: quiet });
  assert.equal(use(asked(20_000)).state.timerMs, NOW + 20_000, "it is waited for");
  const told = use(asked(90_000)).effects[0];
  assert.ok(told?.do === "refuse" && /asked to be left alone.* 1m30s: it broke/.test(told.why));
  const joined = { ...states.reconnecting, wanted: true };
  const failed = stepped(joined, { type: "failed", ...failure, retryAfterMs: 90_000 });
  assert.deepEqual(failed.state.wanted, false);
  assert.equal(failed.effects.filter((effect) => effect.do === "refuse").length, 2);
});

Deno.test("where a person must act first, only a use starts it", () => {
  const failed = stepped(states.reconnecting, { type: "failed", ...failure, needsPerson: true });
  assert.equal(failed.state.timerMs, undefined);
  const used = stepped(failed.state, { type: "use", nowMs: NOW + 90_000, line: quiet });
  assert.equal(used.state.phase, "reconnecting");
});

/** Answers questions with `verdicts` until the machine asks no more; the questions asked, and where it ended. */
function questioned(first: MountState, verdicts: boolean[], line = quiet) {
  const asked: string[] = [];
  let next = stepped(first, { type: "timer", nowMs: NOW, line });
  let nowMs = NOW;
  for (;;) {
    const question = next.effects.find((effect) => effect.do === "ask");
    if (question?.do === "ask") {
      asked.push(question.method);
      nowMs += PING_RULES.timeoutMs;
      const isAlive = verdicts.shift() ?? false;
      const number = question.question;
      const verdict = {
        type: "verdict",
        nowMs,
        question: number,
        isAlive,
        line,
        jitter: 0,
      } as const;
      next = stepped(next.state, verdict);
    } else if (next.state.phase === "suspect" && next.state.timerMs !== undefined) {
      nowMs = next.state.timerMs;
      next = stepped(next.state, { type: "timer", nowMs, line });
    } else return { asked, next, tookMs: nowMs - NOW };
  }
}

Deno.test("[B15] three unanswered pings, then one tools/list; its answer is life and ping isn't asked again", () => {
  const { asked, next } = questioned(states.connected, [false, false, false, true]);
  assert.deepEqual(asked, ["ping", "ping", "ping", "tools/list"]);
  assert.deepEqual([next.state.phase, next.state.noPing], ["connected", true]);
  assert.deepEqual(questioned(next.state, [true]).asked, ["tools/list"]);
  const again = stepped(next.state, { type: "lost", ...failure }).state;
  const { state } = stepped(again, { type: "started", nowMs: NOW + 1 });
  assert.equal(state.noPing, true, "also of the server started anew");
});

Deno.test("silence on all of it ends the connection; an answer on the way begins the count anew", () => {
  const { asked, next, tookMs } = questioned(states.connected, []);
  assert.deepEqual(asked, ["ping", "ping", "ping", "tools/list"]);
  assert.equal(told(next.effects), "end, note, start");
  assert.equal(tookMs, 2 * PING_RULES.intervalMs + 2 * PING_RULES.timeoutMs);
  assert.match(next.state.lastError ?? "", /^it gave no sign of life for /);
  const saved = questioned(states.connected, [false, false, true]).next.state;
  assert.deepEqual([saved.phase, saved.misses, saved.noPing], ["connected", 0, false]);
});

Deno.test("who waits for a silent server isn't kept by pauses", () => {
  const waited = { ...states.suspect, wanted: true };
  const { asked, next, tookMs } = questioned(waited, []);
  assert.deepEqual(asked, Array.from({ length: PING_RULES.misses + 1 }, () => "tools/list"));
  assert.equal(tookMs, 4 * PING_RULES.timeoutMs);
  assert.equal(next.state.phase, "reconnecting");
  assert.equal(questioned(waited, [true]).next.state.noPing, false, "no ping was missed");
});

Deno.test("[B17] nothing is asked while a request is on its way, nor is silence held against it", () => {
  const { state, effects } = stepped(states.connected, { type: "timer", nowMs: NOW, line: busy });
  assert.deepEqual([state.phase, effects.length, state.timerMs], [
    ...["connected", 0],
    NOW + PING_RULES.intervalMs,
  ]);
  const silent = { type: "verdict", ...verdict, isAlive: false, line: busy } as const;
  const last = { ...states.suspect, misses: PING_RULES.misses };
  assert.equal(after(last, silent), "connected: hand-out");
  const paused = { ...states.suspect, timerMs: NOW };
  assert.equal(after(paused, { type: "timer", nowMs: NOW, line: busy }), "connected: hand-out");
});

Deno.test("[B17] given-up requests hold the question back for five intervals, not for ever", () => {
  const timer = (quietMs: number) =>
    after(states.connected, {
      type: "timer",
      nowMs: NOW,
      line: { ...quiet, abandoned: 1, heardMs: NOW - quietMs },
    });
  assert.equal(timer(5 * PING_RULES.intervalMs - 1), "connected");
  assert.equal(timer(5 * PING_RULES.intervalMs), "suspect: ask ping");
});

Deno.test("a server that hangs is asked before the next use once its time for given-up requests is over", () => {
  const use = (quietMs: number, open = 0) =>
    after(states.connected, {
      type: "use",
      nowMs: NOW,
      line: { ...quiet, open, abandoned: 3, heardMs: NOW - quietMs },
    });
  assert.equal(use(5 * PING_RULES.intervalMs - 1), "connected: hand-out");
  assert.equal(use(5 * PING_RULES.intervalMs), "suspect: ask tools/list");
  assert.equal(use(5 * PING_RULES.intervalMs, 1), "connected: hand-out");
});

Deno.test("any message since the question is life", () => {
  const heard = { ...quiet, heardMs: NOW - 1 };
  const silent = { type: "verdict", ...verdict, isAlive: false, line: heard } as const;
  assert.equal(after({ ...states.suspect, misses: 3 }, silent), "connected: hand-out");
  const young = { ...quiet, heardMs: NOW - 10_000 };
  const { state } = stepped(states.connected, { type: "timer", nowMs: NOW, line: young });
  assert.deepEqual([state.phase, state.timerMs], ["connected", NOW + 20_000]);
});

Deno.test("[B71] after a jump of the clocks a use asks before it sends, unless calls are in flight", () => {
  const use = (line: LineFacts) => after(states.connected, { type: "use", nowMs: NOW, line });
  assert.equal(use({ ...quiet, heardMs: NOW, jumped: true }), "suspect: ask tools/list");
  assert.equal(use({ ...busy, jumped: true }), "connected: hand-out");
  const timed = stepped(states.connected, {
    type: "timer",
    nowMs: NOW,
    line: { ...busy, jumped: true },
  });
  assert.equal(
    after(timed.state, { type: "use", nowMs: NOW, line: { ...quiet, heardMs: NOW } }),
    "suspect: ask tools/list",
  );
});
