/**
 * One running server and the mounts that use it: all those of a process tree that mean the same.
 *
 * States: starting → up → over; or starting → over. Over is over: whoever comes later starts another one.
 *
 * Invariants
 * 1. It is started once, whoever comes meanwhile. A failed start fails all who wait for it; a start is given up only when nobody waits any more.
 * 2. It is closed once, when its last holder has gone. A holder goes once, however often it says so, and never takes another's with it.
 * 3. What happens to the connection or to the list of tools reaches every holder.
 * 4. Limits are each holder's own: it waits for the start as long as its own `startup_timeout`. Where there is one request for all, the longest holds.
 */
import type { Clock } from "../../base/clock.ts";
import { formatDuration } from "../../base/duration.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import { canonicalJson, type Json } from "../../base/json.ts";
import { Deadline, untilAbort } from "../../mcp/deadline.ts";
import type { McpServerLaunch } from "../../mcp/launch.ts";
import type { McpSession } from "../../mcp/session.ts";
import type { StderrLog } from "../../mcp/stderr_log.ts";
import type { PingRules } from "./mount_state.ts";
import { Supervisor } from "./supervisor.ts";

/** A mount, as the server that it uses sees it. No method may throw. */
export interface Holder {
  readonly launch: McpServerLaunch;
  /** Takes the secrets of its process out of a text. */
  redact(text: string): string;
  /** The tools are listed anew: they changed, or the server was started again. */
  onListed(): void;
  /** A peculiarity worth a notice, a sentence. */
  onWarning(message: string): void;
}

export interface SharedServerOptions {
  clock: Clock;
  ping?: PingRules | undefined;
  /** Part of the jitter to add to a pause, 0 to 1; by default none. */
  jitter?: (() => number) | undefined;
  /** Makes its log, redacted by what is handed in. */
  log(redact: (text: string) => string): StderrLog;
  /** Starts it. Rejects with a SysError, leaving nothing. */
  start(launch: McpServerLaunch, log: StderrLog, signal: AbortSignal): Promise<McpSession>;
  /** Resolves when one like it, that is being closed, is gone. */
  before?: Promise<void> | undefined;
  /** Nobody may join any more; `closed` resolves when nothing of it is left. */
  onOver?: ((closed: Promise<void>) => void) | undefined;
}

export class SharedServer {
  readonly #options: SharedServerOptions;
  readonly #log: StderrLog;
  readonly #holders = new Set<Holder>();
  /** One for all who redact the same in this server's own facts. */
  readonly #redactors = new Map<string, (text: string) => string>();
  /** Of the holder that came first. */
  #first: McpServerLaunch | undefined;
  readonly #givenUp = new AbortController();
  readonly #warned = new Set<string>();
  #starting: Promise<Supervisor> | undefined;
  #supervisor: Supervisor | undefined;
  #listed: readonly Json[] = [];
  #relisting = false;
  #relistAgain = false;
  #closed: Promise<void> | undefined;

  constructor(options: SharedServerOptions) {
    this.#options = options;
    this.#log = options.log((text) => this.#redact(text));
  }

  /** How many mounts use it. */
  get holders(): number {
    return this.#holders.size;
  }

  /** Its connection. Throws before `join` has resolved for the first time. */
  get supervisor(): Supervisor {
    if (this.#supervisor === undefined) throw new SysError("INTERNAL", "The server isn't up");
    return this.#supervisor;
  }

  /** Tools as they were last listed. */
  get listed(): readonly Json[] {
    return this.#listed;
  }

  /** Resolves once the server is up; the first one to come starts it. Rejects with a SysError, or the signal's reason: then it isn't held, and where nobody holds it nothing of it is left. */
  async join(holder: Holder, signal: AbortSignal): Promise<void> {
    const isFirst = this.#holders.size === 0;
    this.#holders.add(holder);
    this.#nameLog(holder);
    try {
      if (isFirst) await untilAbort(this.#start(), signal);
      else await this.#await(holder, signal);
    } catch (thrown) {
      await this.leave(holder);
      throw renamed(thrown, this.#firstName, holder.launch.server);
    }
  }

  /** Idempotent; never rejects. Resolves, for the last one, when nothing of the server is left. */
  async leave(holder: Holder): Promise<void> {
    if (!this.#holders.has(holder)) return await this.#closed;
    if (this.#holders.size === 1) return await this.#close(holder);
    this.#holders.delete(holder);
    const { stderrLogPath } = holder.launch;
    if (stderrLogPath !== undefined) await this.#log.dropName(stderrLogPath);
  }

  #close(last: Holder): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = this.#end().finally(() => this.#holders.delete(last));
      this.#options.onOver?.(this.#closed);
    }
    return this.#closed;
  }

  async #end(): Promise<void> {
    this.#givenUp.abort(new Error("Nobody waits for it any more"));
    const supervisor = await this.#starting?.catch(() => undefined);
    await supervisor?.close();
    await this.#log.close();
  }

  /** Waits for one that another holder has started, no longer than this one's own limit. */
  async #await(holder: Holder, signal: AbortSignal): Promise<void> {
    const { server, startupTimeoutMs } = holder.launch;
    const deadline = new Deadline(this.#options.clock, startupTimeoutMs, signal);
    try {
      const supervisor = await untilAbort(this.#start(), deadline.signal);
      await supervisor.current(deadline.signal, server);
    } catch (thrown) {
      if (!deadline.expired) throw thrown;
      throw new SysError(
        "TIMEOUT",
        `Server "${server}", which another process has started, was not up within ${
          formatDuration(startupTimeoutMs)
        } (startup_timeout)`,
        { hint: `If it is only slow, raise startup_timeout of server "${server}"` },
      );
    } finally {
      deadline.release();
    }
  }

  #start(): Promise<Supervisor> {
    this.#starting ??= this.#startOnce();
    return this.#starting;
  }

  async #startOnce(): Promise<Supervisor> {
    try {
      await this.#options.before;
      const session = await this.#open(this.#givenUp.signal);
      this.#listed = session.tools;
      this.#supervisor = new Supervisor(session, {
        server: this.#firstName,
        clock: this.#options.clock,
        ping: this.#options.ping,
        jitter: this.#options.jitter,
        start: (signal) => this.#open(signal),
        onRevived: (revived) => {
          this.#follow(revived);
          this.#take(revived.tools);
        },
        onNote: (text, isWarning) => this.#note(text, isWarning),
      });
      this.#follow(session);
      return this.#supervisor;
    } catch (thrown) {
      // Whoever comes from now on starts another one, once this one's log is closed.
      this.#options.onOver?.(this.#log.close());
      throw thrown;
    }
  }

  get #firstName(): string {
    return this.#first?.server ?? "";
  }

  /** How it is started: as the first one said, within the longest limit. */
  #open(signal: AbortSignal): Promise<McpSession> {
    const first = this.#first;
    if (first === undefined) throw new SysError("INTERNAL", "Nobody starts this server");
    const startupTimeoutMs = this.#longest((launch) => launch.startupTimeoutMs);
    return this.#options.start({ ...first, startupTimeoutMs }, this.#log, signal);
  }

  #longest(limitMs: (launch: McpServerLaunch) => number): number {
    return Math.max(...[...this.#holders].map(({ launch }) => limitMs(launch)));
  }

  #nameLog(holder: Holder): void {
    const { launch } = holder;
    this.#first ??= launch;
    const redacted = holder.redact(factsOf(launch));
    if (!this.#redactors.has(redacted)) {
      this.#redactors.set(redacted, (text) => holder.redact(text));
    }
    if (launch.stderrLogPath !== undefined) void this.#log.addName(launch.stderrLogPath);
  }

  #redact(text: string): string {
    let redacted = text;
    for (const redact of this.#redactors.values()) redacted = redact(redacted);
    return redacted;
  }

  #note(text: string, isWarning: boolean): void {
    void this.#log.note(`[rnix] server ${text}`);
    if (isWarning) this.#tell((server) => `Server "${server}" ${text}`);
  }

  /** A peculiarity, told to every holder; a sentence once, however often the server is started. */
  warn(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#tell(() => message);
  }

  /** Tells every holder, by its own name for the server. */
  #tell(message: (server: string) => string): void {
    for (const holder of this.#holders) holder.onWarning(message(holder.launch.server));
  }

  #follow(session: McpSession): void {
    session.onToolsChanged = () => void this.#relist(session);
  }

  /** Lists again; news during that lead to one more round, however many there were. */
  async #relist(session: McpSession): Promise<void> {
    if (this.#relisting) {
      this.#relistAgain = true;
      return;
    }
    this.#relisting = true;
    try {
      do {
        this.#relistAgain = false;
        const listed = await session.listTools(this.#longest((launch) => launch.timeoutMs));
        if (session === this.#supervisor?.latest) this.#take(listed);
      } while (this.#relistAgain && session.alive);
    } catch (thrown) {
      // Of a server that is gone there is nothing to list; one that comes back is listed anew.
      if (this.#closed !== undefined || !session.alive) return;
      const why = toSysError(thrown).message;
      this.warn(`The changed tools of "${this.#firstName}" could not be listed: ${why}`);
    } finally {
      this.#relisting = false;
    }
  }

  #take(listed: readonly Json[]): void {
    this.#listed = listed;
    for (const holder of this.#holders) holder.onListed();
  }
}

/** What makes two servers the same, as one text: everything expanded that it is started or reached with. */
export function factsOf(launch: McpServerLaunch): string {
  return canonicalJson(
    launch.transport === "stdio"
      ? [launch.command, launch.args, launch.cwd, launch.env]
      : [launch.transport, launch.url, launch.headers, launch.env],
  );
}

/** The error with the name that another process has for the server. */
function renamed(thrown: unknown, from: string, to: string): unknown {
  if (from === to || !(thrown instanceof SysError)) return thrown;
  const named = (text: string) => text.replaceAll(`"${from}"`, `"${to}"`);
  const { code, message, hint } = thrown;
  return new SysError(code, named(message), {
    ...thrown,
    hint: hint === undefined ? undefined : named(hint),
  });
}
