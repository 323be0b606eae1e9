/**
 * Keeps one server's session usable: drives the state machine of `mount_state.ts` with the clock, the session and those who wait for it.
 *
 * All decisions are the machine's; here are only the one timer, the waiters, the one start under way, and the look at the clocks. A jump is seen where wall clock and monotonic clock have drifted apart, or where the timer is long overdue: after a sleep of the machine, or when rnix itself was stopped.
 */
import type { Clock } from "../../base/clock.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import type { MountHealth } from "../../base/mount_health.ts";
import { untilAbort } from "../../mcp/deadline.ts";
import type { McpSession } from "../../mcp/session.ts";
import {
  connecting,
  HEALTHY_MS,
  type LineFacts,
  type MountEffect,
  type MountEvent,
  type MountState,
  PING_RULES,
  type PingRules,
  type Question,
  step,
} from "./mount_state.ts";

/** Drift of the clocks, or delay of a timer, that is taken for a jump. */
export const CLOCK_JUMP_MS = 5_000;

export interface SupervisorOptions {
  server: string;
  clock: Clock;
  ping?: PingRules | undefined;
  /** Part of the jitter to add to a pause, 0 to 1; by default none. */
  jitter?: (() => number) | undefined;
  /** Starts the server; the signal aborts when the mount is closed. */
  start(signal: AbortSignal): Promise<McpSession>;
  /** A session is up again; its tools are listed. */
  onRevived(session: McpSession): void;
  /** A change, as the end of a sentence that begins with the server; a warning is for who watches, too. */
  onNote?: ((text: string, isWarning: boolean) => void) | undefined;
}

interface Waiter {
  /** What the server is called where it is waited for. */
  server: string;
  cameMs: number;
  resolve(session: McpSession): void;
  reject(error: SysError): void;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #clock: Clock;
  readonly #rules: PingRules;
  readonly #closing = new AbortController();
  readonly #waiters = new Set<Waiter>();
  #state: MountState;
  #session: McpSession;
  /** The session whose end was told to the machine. */
  #lost: McpSession | undefined;
  #starting: Promise<void> = Promise.resolve();
  #cancelTimer: () => void = () => {};
  #timerMs: number | undefined;
  #isIdle = true;
  #driftMs: number;
  #lastHint: string | undefined;

  constructor(first: McpSession, options: SupervisorOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#rules = options.ping ?? PING_RULES;
    this.#driftMs = this.#drift();
    this.#state = connecting(this.#clock.monotonic());
    this.#session = first;
    this.#follow(first);
    this.#dispatch({ type: "started", nowMs: this.#clock.monotonic() });
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** The session as it is now, alive or not. */
  get latest(): McpSession {
    return this.#session;
  }

  get health(): MountHealth {
    const { phase, sinceMs, upMs, attempts, lastError } = this.#state;
    const nowMs = this.#clock.monotonic();
    const isHealthy = phase === "connected" && nowMs - upMs >= HEALTHY_MS;
    return {
      state: phase,
      sinceMs: Math.round(this.#clock.now() - (nowMs - sinceMs)),
      attempts: isHealthy ? 0 : attempts,
      lastError,
    };
  }

  /** A live session. Rejects with DEVICE_DISCONNECTED when there is none and none could be started, with the signal's reason once it aborts. `server`: its name in the error. */
  async current(
    signal?: AbortSignal,
    server: string = this.#options.server,
  ): Promise<McpSession> {
    this.#noticeEnd();
    const { promise, resolve, reject } = Promise.withResolvers<McpSession>();
    const waiter: Waiter = { server, cameMs: this.#clock.monotonic(), resolve, reject };
    this.#waiters.add(waiter);
    this.#dispatch({ type: "use", nowMs: waiter.cameMs, line: this.#line() });
    const hasVerdict = !this.#waiters.has(waiter);
    try {
      return await (hasVerdict || signal === undefined ? promise : untilAbort(promise, signal));
    } finally {
      this.#waiters.delete(waiter);
    }
  }

  /** Ends the server, a start under way included. Never rejects, idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("Unmounted"));
    this.#dispatch({ type: "close", nowMs: this.#clock.monotonic() });
    await this.#starting;
    await this.#session.close();
  }

  #dispatch(event: MountEvent): void {
    const { state, effects } = step(this.#state, event, this.#rules);
    this.#state = state;
    this.#setTimer(state.timerMs);
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: MountEffect): void {
    switch (effect.do) {
      case "start":
        this.#starting = this.#start();
        return;
      case "end":
        this.#lost = this.#session;
        void this.#session.close();
        return;
      case "ask":
        void this.#ask(this.#session, effect.method, effect.question);
        return;
      case "hand-out":
        for (const waiter of this.#waiters) waiter.resolve(this.#session);
        this.#waiters.clear();
        return;
      case "refuse":
        return this.#refuse(effect.cameUntilMs ?? Infinity, effect.why);
      case "note":
        // The lines of stderr that an error carries are in the log already.
        this.#options.onNote?.(effect.text.replace(/(; [^;\n]*:)?\n[^]*$/, ""), effect.warning);
    }
  }

  #refuse(cameUntilMs: number, why: string): void {
    const hint = this.closed ? undefined : this.#lastHint;
    for (const waiter of this.#waiters) {
      if (waiter.cameMs > cameUntilMs) continue;
      this.#waiters.delete(waiter);
      const message = `Server "${waiter.server}" is ${why}`;
      waiter.reject(new SysError("DEVICE_DISCONNECTED", message, { hint }));
    }
  }

  /** One start from the end of the old session to the verdict. Never rejects. */
  async #start(): Promise<void> {
    try {
      await this.#session.close();
      const session = await this.#options.start(this.#closing.signal);
      if (this.closed) return await session.close();
      this.#session = session;
      this.#lastHint = undefined;
      this.#options.onRevived(session);
      this.#dispatch({ type: "started", nowMs: this.#clock.monotonic() });
      this.#follow(session);
    } catch (thrown) {
      const { message, hint, code, retryAfterMs } = toSysError(thrown);
      this.#lastHint = hint;
      this.#dispatch({
        type: "failed",
        nowMs: this.#clock.monotonic(),
        reason: this.#clauseOf(message),
        retryAfterMs,
        needsPerson: code === "UNAUTHENTICATED",
        jitter: this.#jitter(),
      });
    }
  }

  async #ask(session: McpSession, method: Question, question: number): Promise<void> {
    const verdict = await session.probe(method, this.#rules.timeoutMs);
    if (session !== this.#session || session === this.#lost) return;
    this.#noticeEnd();
    this.#dispatch({
      type: "verdict",
      nowMs: this.#clock.monotonic(),
      question,
      isAlive: verdict === "alive",
      line: this.#line(),
      jitter: this.#jitter(),
    });
  }

  #follow(session: McpSession): void {
    session.ended.then(() => this.#noticeEnd());
  }

  /** Tells the machine of the present session's end, once, and before anything else happens on it. */
  #noticeEnd(): void {
    const session = this.#session;
    if (session.alive || this.#lost === session) return;
    this.#lost = session;
    const { endedReason, endedCode, retryAfterMs } = session;
    this.#dispatch({
      type: "lost",
      nowMs: this.#clock.monotonic(),
      reason: endedReason ?? "its connection ended",
      retryAfterMs,
      needsPerson: endedCode === "UNAUTHENTICATED",
      jitter: this.#jitter(),
    });
  }

  /** One timer at most, which holds the process only while somebody waits. */
  #setTimer(timerMs: number | undefined): void {
    const isIdle = this.#waiters.size === 0;
    if (timerMs === this.#timerMs && isIdle === this.#isIdle) return;
    this.#cancelTimer();
    this.#timerMs = timerMs;
    this.#isIdle = isIdle;
    if (timerMs === undefined) return;
    const fire = () => {
      const line = this.#line();
      this.#timerMs = undefined;
      this.#dispatch({ type: "timer", nowMs: this.#clock.monotonic(), line });
    };
    const leftMs = timerMs - this.#clock.monotonic();
    this.#cancelTimer = this.#clock.after(leftMs, fire, { idle: isIdle });
  }

  #line(): LineFacts {
    const { heardMs, inFlight } = this.#session;
    return { heardMs, ...inFlight, jumped: this.#hasJumped() };
  }

  /** Whether the clocks jumped since this was last asked. */
  #hasJumped(): boolean {
    const driftMs = this.#drift();
    const isDrifted = Math.abs(driftMs - this.#driftMs) > CLOCK_JUMP_MS;
    this.#driftMs = driftMs;
    const isOverdue = this.#timerMs !== undefined &&
      this.#clock.monotonic() - this.#timerMs > CLOCK_JUMP_MS;
    return isDrifted || isOverdue;
  }

  #drift(): number {
    return this.#clock.now() - this.#clock.monotonic();
  }

  /** An error of a start as a clause. */
  #clauseOf(message: string): string {
    const server = `Server "${this.#options.server}" `;
    return message.startsWith(server) ? `it ${message.slice(server.length)}` : message;
  }

  #jitter(): number {
    return this.#options.jitter?.() ?? 0;
  }
}
