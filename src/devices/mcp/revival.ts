/**
 * Keeps one server's session usable: a dead server is started again on its next use, once for all who wait.
 *
 * Between attempts pass 0, 1, 2, 4, 8 … 60 seconds; a healthy minute, not a handshake, starts that row anew. It never gives up for good: every use may lead to an attempt once its time has come.
 */
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { formatDuration } from "../../base/duration.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import type { McpSession } from "../../mcp/session.ts";

/** A session that lived this long was healthy. */
export const HEALTHY_MS = 60_000;
const DELAY_MS_MAX = 60_000;
/** A use waits this long for the next attempt; longer, and it is told when that is. */
export const PATIENCE_MS = 4_000;

/** Pause before the n-th attempt (from 0) since the server was last healthy. */
export function delayMs(attempt: number): number {
  return attempt === 0 ? 0 : Math.min(1000 * 2 ** (attempt - 1), DELAY_MS_MAX);
}

export interface RevivalOptions {
  server: string;
  clock: Clock;
  /** Starts the server; the signal aborts when the mount is closed. */
  start(signal: AbortSignal): Promise<McpSession>;
  /** A session is up again. */
  onRevived(session: McpSession): void;
}

export class Revival {
  readonly #options: RevivalOptions;
  readonly #closing = new AbortController();
  #session: McpSession;
  #starting: Promise<McpSession> | undefined;
  #attempts = 0;
  #nextAttemptMs = 0;
  #lastError = "";

  constructor(first: McpSession, options: RevivalOptions) {
    this.#options = options;
    this.#session = first;
    this.#follow(first);
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** The session as it is now, alive or not. */
  get latest(): McpSession {
    return this.#session;
  }

  /** A live session. Rejects with DEVICE_DISCONNECTED when there is none and none could be started. */
  current(): Promise<McpSession> {
    if (this.closed) {
      const message = `Server "${this.#options.server}" is unmounted`;
      return Promise.reject(new SysError("DEVICE_DISCONNECTED", message));
    }
    if (this.#session.alive) return Promise.resolve(this.#session);
    this.#starting ??= this.#restart().finally(() => this.#starting = undefined);
    return this.#starting;
  }

  /** Ends the server, a start under way included. Never rejects, idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("Unmounted"));
    await this.#starting?.catch(() => {});
    await this.#session.close();
  }

  async #restart(): Promise<McpSession> {
    const { clock, server } = this.#options;
    await this.#session.close();
    const waitMs = this.#nextAttemptMs - clock.monotonic();
    if (waitMs > PATIENCE_MS) throw this.#down(`next attempt in ${formatDuration(waitMs)}`);
    try {
      if (waitMs > 0) await sleep(clock, waitMs, this.#closing.signal);
      this.#attempts += 1;
      const session = await this.#options.start(this.#closing.signal);
      if (this.closed) {
        await session.close();
        throw new Error(`Server "${server}" is unmounted`);
      }
      this.#session = session;
      this.#follow(session);
      this.#options.onRevived(session);
      return session;
    } catch (thrown) {
      this.#nextAttemptMs = clock.monotonic() + delayMs(this.#attempts);
      const error = toSysError(thrown);
      this.#lastError = error.message;
      throw this.#down("it could not be started again", error.hint);
    }
  }

  #follow(session: McpSession): void {
    const { clock } = this.#options;
    const sinceMs = clock.monotonic();
    session.ended.then(() => {
      if (clock.monotonic() - sinceMs >= HEALTHY_MS) this.#attempts = 0;
      this.#nextAttemptMs = clock.monotonic() + delayMs(this.#attempts);
    });
  }

  #down(what: string, hint?: string): SysError {
    const cause = this.#lastError === "" ? "" : `: ${this.#lastError}`;
    return new SysError(
      "DEVICE_DISCONNECTED",
      `Server "${this.#options.server}" is down, ${what}${cause}`,
      { hint },
    );
  }
}
