/**
 * The life of a mounted server's connection as a pure function: (state, event) → (state, effects).
 *
 * Invariants:
 * 1. At most one start is under way: `start` is given only on entering `reconnecting`, which only `started`, `failed` and `close` leave.
 * 2. A start is due by the row 0, 1, 2, 4 … 60 s after the loss or failure before it. The row starts anew after a healthy minute, not by a handshake. Retry-After, capped, comes before everything.
 * 3. A use brings the start forward to {@link USE_FLOOR_MS} after the last one began. So a server that is up again is in use after that time at the latest, and one that dies after every handshake, with a use after each, is started at 0, 0, 1, 3, 7, 15, 31, 56, 81, 106 s: ten times in two minutes.
 * 4. Never gone for good: a use is handed the connection, or refused by the failure of a start that began not before it (or told how long the server asked to be left alone). What joins a start under way that fails waits for the next.
 * 5. Between two uses at most {@link UNATTENDED_MAX} starts are made: a crashed server comes back by itself and its new tools are seen, but an idle run doesn't spin. Where a person must act first, none is.
 * 6. A connection is given up as silent only if `misses` questions and then one `tools/list` brought nothing: no answer of any kind, no other message.
 * 7. Nothing is asked while a request is on its way. Given-up requests hold the question back for {@link BUSY_INTERVALS} intervals of silence: the server may be at work on them.
 * 8. After a jump of the clocks, or once that patience with given-up requests is over, the connection is doubted: the next use, or the next timer, asks before anything is sent. So a server that hangs is found also where one call follows another.
 * 9. `closed` is final: no start, no question, no timer. All waiters are refused on entering it.
 * 10. What is noted and told is a change (lost, can't be started, connected again), never an attempt.
 */
import { formatDuration } from "../../base/duration.ts";
import type { MountPhase } from "../../base/mount_health.ts";

/** A connection that lived this long was healthy. */
export const HEALTHY_MS = 60_000;
/** Between the beginnings of two starts at least, however often the server is used. */
export const USE_FLOOR_MS = 25_000;
/** Starts without a use: the row once, about two minutes. */
export const UNATTENDED_MAX = 8;
/** A server that asks to be left alone for longer is asked again all the same. */
export const RETRY_AFTER_MS_MAX = 5 * 60_000;
/** So many intervals of silence are left to a server that may be at work on given-up requests. */
export const BUSY_INTERVALS = 5;
const DELAY_MS_MAX = 60_000;
/** A pause is lengthened by up to this part of it. */
const JITTER = 0.1;

/** How a silent server is asked whether it lives. */
export interface PingRules {
  /** Silence after which it is asked. */
  intervalMs: number;
  /** How long an answer may take. */
  timeoutMs: number;
  /** Questions without an answer before the last one. */
  misses: number;
}

export const PING_INTERVAL_MS = 30_000;
export const PING_TIMEOUT_MS = 5_000;
export const PING_MISSES = 3;
export const PING_RULES: PingRules = {
  intervalMs: PING_INTERVAL_MS,
  timeoutMs: PING_TIMEOUT_MS,
  misses: PING_MISSES,
};

/** Pause before the n-th start (from 0) since the server was last healthy. */
export function delayMs(attempt: number): number {
  return attempt === 0 ? 0 : Math.min(1000 * 2 ** (attempt - 1), DELAY_MS_MAX);
}

export type Question = "ping" | "tools/list";

/** All times are monotonic milliseconds. */
export interface MountState {
  readonly phase: MountPhase;
  /** When the phase began. */
  readonly sinceMs: number;
  /** Starts since the server was last healthy, the first one aside. */
  readonly attempts: number;
  /** Starts since the last use that no use asked for. */
  readonly unattended: number;
  /** When the last start began. */
  readonly attemptMs: number;
  /** When the row has the next start. */
  readonly retryMs: number;
  /** Before this nothing is started: the server asked for it. */
  readonly notBeforeMs: number;
  /** No start without a use: a person must act first. */
  readonly onUseOnly: boolean;
  /** Somebody waits whom the start or question under way may not satisfy. */
  readonly wanted: boolean;
  readonly upMs: number;
  /** The clocks jumped since the server was last heard. */
  readonly doubted: boolean;
  /** Number of the last question. */
  readonly question: number;
  readonly asked: Question;
  readonly askedMs: number;
  readonly misses: number;
  readonly missedPings: number;
  /** It doesn't answer ping; remembered over reconnects. */
  readonly noPing: boolean;
  /** When the one timer is due; undefined: none. */
  readonly timerMs: number | undefined;
  readonly lastError: string | undefined;
  /** The present outage's failure to start was told. */
  readonly toldFailure: boolean;
}

/** What is known of the line when something happens on it. */
export interface LineFacts {
  /** When the last message came. */
  heardMs: number;
  /** Requests that are awaited. */
  open: number;
  /** Requests given up that may still be worked on. */
  abandoned: number;
  /** Whether the clocks jumped since this was last looked at. */
  jumped: boolean;
}

interface Failure {
  nowMs: number;
  /** A clause: `it exited with code 1`. */
  reason: string;
  retryAfterMs?: number | undefined;
  /** It can't be otherwise until somebody does something, such as logging in. */
  needsPerson?: boolean;
  /** Part of the jitter to add, 0 to 1. */
  jitter: number;
}

export type MountEvent =
  | { type: "started"; nowMs: number }
  | { type: "failed" } & Failure
  | { type: "lost" } & Failure
  | { type: "use"; nowMs: number; line: LineFacts }
  | { type: "timer"; nowMs: number; line: LineFacts }
  | {
    type: "verdict";
    nowMs: number;
    question: number;
    isAlive: boolean;
    line: LineFacts;
    jitter: number;
  }
  | { type: "close"; nowMs: number };

export type MountEffect =
  /** End what is left of the old connection, start anew, report `started` or `failed`. */
  | { do: "start" }
  /** End the connection: it is given up. */
  | { do: "end" }
  | { do: "ask"; method: Question; question: number }
  /** Everybody who waits gets the connection. */
  | { do: "hand-out" }
  /** Those who came until then (undefined: all) are told that the server is `why`. */
  | { do: "refuse"; cameUntilMs?: number; why: string }
  /** A line for the server's log, and a sentence for who watches where it is one. */
  | { do: "note"; text: string; warning: boolean };

export interface Transition {
  state: MountState;
  effects: MountEffect[];
}

/** The state of a mount whose first start began at `nowMs`. */
export function connecting(nowMs: number): MountState {
  return {
    phase: "connecting",
    sinceMs: nowMs,
    attempts: 0,
    unattended: 0,
    attemptMs: nowMs,
    retryMs: nowMs,
    notBeforeMs: nowMs,
    onUseOnly: false,
    wanted: false,
    upMs: nowMs,
    doubted: false,
    question: 0,
    asked: "ping",
    askedMs: nowMs,
    misses: 0,
    missedPings: 0,
    noPing: false,
    timerMs: undefined,
    lastError: undefined,
    toldFailure: false,
  };
}

/** What comes of an event. Pure. */
export function step(state: MountState, event: MountEvent, rules: PingRules): Transition {
  if (state.phase === "closed") {
    return { state, effects: event.type === "use" ? [{ do: "refuse", why: "unmounted" }] : [] };
  }
  switch (event.type) {
    case "started":
      return started(state, event.nowMs, rules);
    case "failed":
      return failed(state, event);
    case "lost":
      return lost(state, event);
    case "use":
      return used(state, event, rules);
    case "timer":
      return timed(state, event, rules);
    case "verdict":
      return judged(state, event, rules);
    case "close":
      return {
        state: { ...enter(state, "closed", event.nowMs), timerMs: undefined, wanted: false },
        effects: [{ do: "refuse", why: "unmounted" }],
      };
  }
}

/** Whole seconds of a time, in milliseconds. */
const secondsOf = (ms: number): number => Math.ceil(ms / 1000) * 1000;

function enter(state: MountState, phase: MountPhase, nowMs: number): MountState {
  return state.phase === phase ? state : { ...state, phase, sinceMs: nowMs };
}

const unchanged = (state: MountState): Transition => ({ state, effects: [] });

/** `effects` come before those of `then`. */
const after = (effects: MountEffect[], then: Transition): Transition => ({
  state: then.state,
  effects: [...effects, ...then.effects],
});

function started(state: MountState, nowMs: number, rules: PingRules): Transition {
  if (state.phase !== "connecting" && state.phase !== "reconnecting") return unchanged(state);
  const again: MountEffect[] = state.phase === "connecting"
    ? []
    : [{ do: "note", text: "is connected again", warning: true }];
  const up = { ...state, upMs: nowMs, toldFailure: false, onUseOnly: false };
  return after(again, relieved(up, nowMs, rules));
}

/** Connected, nothing missed; whoever waits gets the connection. */
function relieved(state: MountState, nowMs: number, rules: PingRules): Transition {
  const calm = { wanted: false, doubted: false, misses: 0, missedPings: 0 };
  return {
    state: {
      ...enter(state, "connected", nowMs),
      ...calm,
      timerMs: nowMs + rules.intervalMs,
    },
    effects: [{ do: "hand-out" }],
  };
}

function failed(state: MountState, event: Failure): Transition {
  const { nowMs, reason } = event;
  if (state.phase === "connecting") {
    return {
      state: { ...enter(state, "closed", nowMs), lastError: reason, wanted: false },
      effects: [{ do: "refuse", why: `down, it could not be started: ${reason}` }],
    };
  }
  if (state.phase !== "reconnecting") return unchanged(state);
  const effects: MountEffect[] = [{
    do: "refuse",
    cameUntilMs: state.attemptMs,
    why: `down, it could not be started again: ${reason}`,
  }];
  if (!state.toldFailure) {
    effects.push({ do: "note", text: `could not be started again: ${reason}`, warning: true });
  }
  return after(effects, schedule(withPause({ ...state, toldFailure: true }, event), nowMs));
}

function lost(state: MountState, event: Failure): Transition {
  if (state.phase !== "connected" && state.phase !== "suspect") return unchanged(state);
  const isHealthy = event.nowMs - state.upMs >= HEALTHY_MS;
  const before = { ...state, attempts: isHealthy ? 0 : state.attempts };
  return after(
    [{ do: "note", text: `was lost: ${event.reason}`, warning: true }],
    schedule(withPause(before, event), event.nowMs),
  );
}

/** The row's pause and what the server asked for, from now on. */
function withPause(state: MountState, event: Failure): MountState {
  const { nowMs, reason, retryAfterMs = 0, needsPerson = false, jitter } = event;
  return {
    ...state,
    lastError: reason,
    onUseOnly: needsPerson,
    retryMs: nowMs + Math.round(delayMs(state.attempts) * (1 + JITTER * jitter)),
    notBeforeMs: nowMs + Math.min(Math.max(retryAfterMs, 0), RETRY_AFTER_MS_MAX),
  };
}

/** Starts if a start is due and wanted; else waits for its time, or for a use. Nobody waits for as long as the server asked for. */
function schedule(state: MountState, nowMs: number): Transition {
  if (state.wanted && state.notBeforeMs - nowMs > USE_FLOOR_MS) {
    const pause = formatDuration(secondsOf(state.notBeforeMs - nowMs));
    const why = `down and asked to be left alone, next attempt in ${pause}: ${state.lastError}`;
    return after([{ do: "refuse", why }], schedule({ ...state, wanted: false }, nowMs));
  }
  const rowMs = state.wanted
    ? Math.min(state.retryMs, state.attemptMs + USE_FLOOR_MS)
    : state.retryMs;
  const dueMs = Math.max(rowMs, state.notBeforeMs);
  const isMade = state.wanted || (!state.onUseOnly && state.unattended < UNATTENDED_MAX);
  if (isMade && dueMs <= nowMs) return begin(state, nowMs);
  return unchanged({ ...enter(state, "waiting", nowMs), timerMs: isMade ? dueMs : undefined });
}

function begin(state: MountState, nowMs: number): Transition {
  return {
    state: {
      ...enter(state, "reconnecting", nowMs),
      attempts: state.attempts + 1,
      unattended: state.wanted ? 0 : state.unattended + 1,
      attemptMs: nowMs,
      wanted: false,
      timerMs: undefined,
    },
    effects: [{ do: "start" }],
  };
}

type UseEvent = Extract<MountEvent, { type: "use" }>;

function used(before: MountState, { nowMs, line }: UseEvent, rules: PingRules): Transition {
  const state = { ...before, unattended: 0 };
  switch (state.phase) {
    case "connected": {
      const doubted = state.doubted || line.jumped || isOverdue(line, nowMs, rules);
      if (doubted && line.open === 0) return ask({ ...state, doubted, wanted: true }, nowMs, rules);
      return { state: { ...state, doubted }, effects: [{ do: "hand-out" }] };
    }
    case "suspect":
      if (line.open > 0) return relieved(state, nowMs, rules);
      // Whoever waits isn't kept by a ping that may be ignored.
      return state.wanted ? unchanged(state) : ask({ ...state, wanted: true }, nowMs, rules);
    case "reconnecting":
      return unchanged({ ...state, wanted: state.wanted || nowMs > state.attemptMs });
    case "waiting":
      return schedule({ ...state, wanted: true }, nowMs);
    default:
      return unchanged({ ...state, wanted: true });
  }
}

type TimerEvent = Extract<MountEvent, { type: "timer" }>;

function timed(state: MountState, { nowMs, line }: TimerEvent, rules: PingRules): Transition {
  switch (state.phase) {
    case "waiting":
      return state.timerMs === undefined || state.timerMs > nowMs
        ? unchanged(state)
        : schedule({ ...state, retryMs: Math.min(state.retryMs, nowMs) }, nowMs);
    case "connected": {
      const doubted = state.doubted || line.jumped;
      const dueMs = line.heardMs + patienceMs(line, rules);
      if (line.open > 0) {
        return unchanged({ ...state, doubted, timerMs: nowMs + rules.intervalMs });
      }
      if (doubted || dueMs <= nowMs) return ask({ ...state, doubted }, nowMs, rules);
      return unchanged({ ...state, timerMs: dueMs });
    }
    case "suspect":
      return line.open > 0 || line.heardMs > state.askedMs
        ? relieved(state, nowMs, rules)
        : ask(state, nowMs, rules);
    default:
      return unchanged(state);
  }
}

/** Silence that is left to the server. */
function patienceMs(line: LineFacts, rules: PingRules): number {
  return rules.intervalMs * (line.abandoned > 0 ? BUSY_INTERVALS : 1);
}

/** Whether requests were given up and the server has been silent for longer than it may be at work on them. */
function isOverdue(line: LineFacts, nowMs: number, rules: PingRules): boolean {
  return line.abandoned > 0 && nowMs - line.heardMs >= patienceMs(line, rules);
}

function ask(state: MountState, nowMs: number, rules: PingRules): Transition {
  const isLast = state.misses >= rules.misses;
  const method = state.noPing || state.wanted || isLast ? "tools/list" : "ping";
  const question = state.question + 1;
  return {
    state: {
      ...enter(state, "suspect", nowMs),
      question,
      asked: method,
      askedMs: nowMs,
      timerMs: undefined,
    },
    effects: [{ do: "ask", method, question }],
  };
}

type VerdictEvent = Extract<MountEvent, { type: "verdict" }>;

function judged(state: MountState, event: VerdictEvent, rules: PingRules): Transition {
  if (state.phase !== "suspect") return unchanged(state);
  const { nowMs, line } = event;
  if (event.isAlive) return alive(state, event, rules);
  if (event.question !== state.question) return unchanged(state);
  const mayBeBusy = line.open > 0 ||
    (line.abandoned > 0 && nowMs - line.heardMs < patienceMs(line, rules));
  if (mayBeBusy || line.heardMs > state.askedMs) return relieved(state, nowMs, rules);
  if (state.misses >= rules.misses) return silent(state, event);
  const missed = {
    ...state,
    misses: state.misses + 1,
    missedPings: state.missedPings + (state.asked === "ping" ? 1 : 0),
  };
  if (missed.wanted || missed.misses >= rules.misses) return ask(missed, nowMs, rules);
  return unchanged({ ...missed, timerMs: Math.max(nowMs, state.askedMs + rules.intervalMs) });
}

/** Only an answer to the list after missed pings says that it is ping that is ignored. */
function alive(state: MountState, event: VerdictEvent, rules: PingRules): Transition {
  const ignoresPing = !state.noPing && event.question === state.question &&
    state.asked === "tools/list" && state.missedPings > 0 && state.missedPings >= rules.misses;
  if (!ignoresPing) return relieved(state, event.nowMs, rules);
  const text = "doesn't answer ping; it is asked for its tools instead";
  return after(
    [{ do: "note", text, warning: false }],
    relieved({ ...state, noPing: true }, event.nowMs, rules),
  );
}

function silent(state: MountState, { nowMs, line, jitter }: VerdictEvent): Transition {
  const reason = `it gave no sign of life for ${formatDuration(secondsOf(nowMs - line.heardMs))}`;
  return after([{ do: "end" }], lost(state, { nowMs, reason, jitter }));
}
