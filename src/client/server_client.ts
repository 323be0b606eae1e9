/**
 * A server session over the daemon's socket: its news and its end come over the connection that opened it, requests go by themselves.
 *
 * Closing the connection tells the daemon that the client is gone. A daemon that says nothing for too long is given up, as for a run.
 */
import { type Clock, within } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_FAILED, EXIT_UNREACHABLE } from "../base/exit.ts";
import type {
  ServerAnswer,
  ServerAsk,
  ServerEnd,
  ServerObserver,
  ServerRequest,
  ServerSession,
} from "../base/server_operations.ts";
import type { Question, ServerLine } from "../base/wire.ts";
import { type DaemonSocket, errorOf } from "./daemon_socket.ts";
import { Silence, SILENCE_LIMITS, type SilenceLimits } from "./silence.ts";

/** A request may take as long as its server is allowed to (`max_timeout`); the daemon ends it, this is for one that doesn't. */
const ASK_MS_MAX = 24 * 60 * 60 * 1000;
/** How long a server may take to end. */
const CLOSE_MS_MAX = 10_000;

export interface ServerClientFacts {
  clock: Clock;
  silence?: SilenceLimits | undefined;
}

/** Connects. Rejects with the daemon's error, or DEVICE_DISCONNECTED and TIMEOUT (exit 8) where it was lost. */
export async function openServer(
  socket: DaemonSocket,
  request: ServerRequest,
  observer: ServerObserver,
  facts: ServerClientFacts,
): Promise<ServerSession> {
  const client = new ServerClient(socket, observer, facts);
  await client.open(request);
  return client;
}

class ServerClient implements ServerSession {
  readonly #socket: DaemonSocket;
  readonly #observer: ServerObserver;
  readonly #clock: Clock;
  readonly #gaveUp = new AbortController();
  readonly #silence: Silence;
  readonly #ended = Promise.withResolvers<ServerEnd>();
  #accepted: Extract<ServerLine, { line: "accepted" }> | undefined;
  #reading: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;
  #asked = 0;

  constructor(socket: DaemonSocket, observer: ServerObserver, facts: ServerClientFacts) {
    this.#socket = socket;
    this.#observer = observer;
    this.#clock = facts.clock;
    this.#silence = new Silence(facts.clock, facts.silence ?? SILENCE_LIMITS, {
      silent: (seconds) => this.#warn(`The daemon has said nothing for ${seconds} s`),
      back: () => this.#warn("The daemon is back"),
      lost: (seconds) => this.#gaveUp.abort(silentError(seconds)),
    });
  }

  get facts() {
    return this.#opened.facts;
  }

  get ended(): Promise<ServerEnd> {
    return this.#ended.promise;
  }

  async open(request: ServerRequest): Promise<void> {
    const lines = this.#socket.lines<ServerLine>("openServer", request, this.#gaveUp.signal);
    try {
      while (this.#accepted === undefined) {
        const line = await this.#next(lines);
        if (line.line === "accepted") this.#accepted = line;
        else if (line.line === "error") throw errorOf(line);
        else this.#take(line);
      }
    } catch (thrown) {
      this.#silence.close();
      throw thrown;
    }
    this.#reading = this.#read(lines);
  }

  async ask(ask: ServerAsk, signal?: AbortSignal): Promise<ServerAnswer> {
    const { session } = this.#opened;
    const id = String(++this.#asked);
    const cancel = () => {
      this.#socket.value("cancelAsk", { session, id }).catch(() => {});
    };
    const answer = this.#socket.value<ServerAnswer>("askServer", { session, id, ask }, ASK_MS_MAX);
    // A daemon that hangs keeps its connections: its silence is what ends the wait.
    const given = this.#whenGivenUp();
    answer.catch(() => {});
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await Promise.race([answer, given.lost]);
    } catch (thrown) {
      const isLost = thrown instanceof SysError && thrown.exitCode === EXIT_UNREACHABLE;
      if (!isLost || ask.method !== "tools/call") throw thrown;
      const { code, message } = thrown;
      return { outcome: "unknown", error: { code, message } };
    } finally {
      given.forget();
      signal?.removeEventListener("abort", cancel);
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { session } = this.#opened;
    await this.#socket.value("closeServer", { session }, CLOSE_MS_MAX).catch(() => {});
    await within(this.#clock, CLOSE_MS_MAX, this.#reading, () => {});
    this.#gaveUp.abort(new SysError("DEVICE_DISCONNECTED", "The server was disconnected"));
    this.#silence.close();
  }

  get #opened(): Extract<ServerLine, { line: "accepted" }> {
    if (this.#accepted !== undefined) return this.#accepted;
    throw new SysError("INTERNAL", "The server isn't connected");
  }

  /** To the end of the session, however it comes. */
  async #read(lines: AsyncGenerator<ServerLine>): Promise<void> {
    try {
      for (;;) {
        const line = await this.#next(lines);
        if (line.line === "ended") return this.#end({ error: line.error, exit_code: EXIT_FAILED });
        if (line.line === "error") return this.#end(line);
        this.#take(line);
      }
    } catch (thrown) {
      const { code, message, hint } = thrown instanceof SysError ? thrown : lostError();
      const error = { code, message, ...(hint === undefined ? {} : { hint }) };
      this.#end({ error, exit_code: EXIT_UNREACHABLE });
    } finally {
      this.#silence.close();
      await lines.return(undefined).catch(() => {});
    }
  }

  #end({ error, exit_code }: ServerEnd): void {
    if (this.#closing === undefined) this.#ended.resolve({ error, exit_code });
  }

  async #next(lines: AsyncGenerator<ServerLine>): Promise<ServerLine> {
    const { done, value } = await lines.next();
    if (done) throw lostError();
    this.#silence.heard();
    return value;
  }

  #take(line: ServerLine): void {
    if (line.line === "news") this.#observer.onNews(line.news);
    else if (line.line === "missed") this.#observer.onMissed?.(line.events);
    else if (line.line === "question") void this.#answer(line.id, line.question);
  }

  async #answer(id: string, question: Question): Promise<void> {
    const answer = question.kind === "trust"
      ? await this.#observer.confirmTrust?.(question.question).catch(() => false)
      : undefined;
    await this.#socket.value("answer", { id, answer: answer ?? null }).catch(() => {});
  }

  #warn(message: string): void {
    this.#observer.onNews({ kind: "warning", message });
  }

  #whenGivenUp(): { lost: Promise<never>; forget(): void } {
    const { signal } = this.#gaveUp;
    const { promise: lost, reject } = Promise.withResolvers<never>();
    lost.catch(() => {});
    const give = () => reject(signal.reason);
    if (signal.aborted) give();
    signal.addEventListener("abort", give, { once: true });
    return { lost, forget: () => signal.removeEventListener("abort", give) };
  }
}

function lostError(): SysError {
  return new SysError("DEVICE_DISCONNECTED", "The daemon was lost while a server was connected", {
    exitCode: EXIT_UNREACHABLE,
    hint: "rnix daemon status tells about it",
  });
}

function silentError(seconds: number): SysError {
  return new SysError("TIMEOUT", `The daemon has said nothing for ${seconds} s`, {
    exitCode: EXIT_UNREACHABLE,
    hint: "rnix daemon status tells about it",
  });
}
