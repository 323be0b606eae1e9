/**
 * Servers that clients look into outside of runs: opened over a connection, asked by requests of their own, ended with the connection.
 *
 * 1. A session belongs to the connection that opened it. When that goes, by `closeServer`, by its client's end or by a cut line, the session and its server are ended.
 * 2. A server that is still being connected when its client goes is ended as well.
 * 3. Whoever names a session by its id may ask it; ids can't be guessed, and the socket is the user's.
 * 4. After `close` nothing is opened any more and nothing is left.
 */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_MOUNT, EXIT_USAGE } from "../base/exit.ts";
import type { JsonObject } from "../base/json.ts";
import type { RunObserver } from "../base/operations.ts";
import { redactError } from "../base/redacted_error.ts";
import type { ServerAnswer, ServerAsk, ServerRequest } from "../base/server_operations.ts";
import { VERSION } from "../base/version.ts";
import type { ServerLine } from "../base/wire.ts";
import { connectServer } from "../mcp/connect_server.ts";
import type { TransportMemory } from "../mcp/http_connect.ts";
import type { McpServerLaunch, ProcessKeeper } from "../mcp/launch.ts";
import { ServerRequests } from "../mcp/server_requests.ts";
import { McpSession } from "../mcp/session.ts";
import { StderrLog } from "../mcp/stderr_log.ts";
import { beat, type Questions } from "./connection.ts";
import { failureAnswer } from "./failure_answer.ts";
import { LineQueue } from "./line_queue.ts";
import { cleanNews, ServedServer } from "./server_session.ts";
import { type NamedServer, namedServer, type ServerSourceDeps } from "./server_source.ts";

export interface ServerSessionsDeps extends ServerSourceDeps {
  clock: Clock;
  /** The guard that ends what the daemon leaves behind. */
  keeper: () => Promise<ProcessKeeper>;
}

/** How one client is served. */
export interface OpenOptions {
  questions: Questions;
  /** In place of `ALIVE_MS`. */
  aliveMs?: number;
  /** Called once, when the connection is over. */
  onOver(): void;
}

type Lines = LineQueue<ServerLine>;

export class ServerSessions {
  readonly #deps: ServerSessionsDeps;
  readonly #served = new Map<string, ServedServer>();
  /** Everything that is being opened or is open, until nothing is left of it. */
  readonly #open = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(deps: ServerSessionsDeps) {
    this.#deps = deps;
  }

  /** Connects; the body is what the client reads. */
  open(request: ServerRequest, options: OpenOptions): ReadableStream<Uint8Array<ArrayBuffer>> {
    const lines: Lines = new LineQueue();
    const gone = new AbortController();
    const stopBeating = beat(lines, { clock: this.#deps.clock, ...options });
    lines.onGone = () => gone.abort();
    const ended = AbortSignal.any([gone.signal, this.#closing.signal]);
    const work = this.#serve(request, { lines, ended, questions: options.questions })
      .catch((thrown) => lines.end({ line: "error", ...failureAnswer(thrown) }))
      .finally(() => {
        stopBeating();
        this.#open.delete(work);
        options.onOver();
      });
    this.#open.add(work);
    return lines.body;
  }

  /** Rejects with NOT_FOUND (exit 2) for a session that there isn't. */
  async ask(session: string, id: string, ask: ServerAsk): Promise<ServerAnswer> {
    return await this.#find(session).ask(id, ask);
  }

  /** Whether there was something to cancel. */
  cancel(session: string, id: string): boolean {
    return this.#served.get(session)?.cancel(id) ?? false;
  }

  /** Resolves once the server is gone. */
  async closeSession(session: string): Promise<void> {
    await this.#served.get(session)?.close();
  }

  /** Ends all of them. Never rejects; bounded by the end of the slowest server. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The daemon stops"));
    await Promise.all(this.#open);
  }

  #find(session: string): ServedServer {
    const served = this.#served.get(session);
    if (served !== undefined) return served;
    throw new SysError("NOT_FOUND", "This server isn't connected any more", {
      exitCode: EXIT_USAGE,
    });
  }

  /** From the request to the end of the server. */
  async #serve(
    request: ServerRequest,
    { lines, ended, questions }: { lines: Lines; ended: AbortSignal; questions: Questions },
  ): Promise<void> {
    this.#refuseWhenStopping();
    const { client, trust } = request;
    const named = await namedServer(this.#deps, request.server, {
      client,
      consent: {
        trust,
        observer: client.interactive ? trustBy(lines, questions, ended) : {},
        notice: (message) => lines.event({ line: "news", news: { kind: "warning", message } }),
      },
    });
    const startedMs = this.#deps.clock.monotonic();
    const transports: TransportMemory = new Map();
    const session = await this.#connect(request, named, { lines, ended, transports });
    const served = new ServedServer({
      ...named,
      transport: transportOf(named.launch, transports),
      id: crypto.randomUUID(),
      session,
      connectMs: Math.round(this.#deps.clock.monotonic() - startedMs),
      onNews: (news) => lines.event({ line: "news", news }),
    });
    this.#served.set(served.id, served);
    const leave = () => void served.close();
    ended.addEventListener("abort", leave, { once: true });
    if (ended.aborted) leave();
    lines.push({ line: "accepted", session: served.id, facts: served.facts });
    try {
      const error = await served.ended;
      lines.end({ line: "ended", error });
    } finally {
      ended.removeEventListener("abort", leave);
      this.#served.delete(served.id);
      await served.close();
    }
  }

  async #connect(
    request: ServerRequest,
    { launch, redaction }: NamedServer,
    { lines, ended, transports }: {
      lines: Lines;
      ended: AbortSignal;
      transports: TransportMemory;
    },
  ): Promise<McpSession> {
    const { clock, keeper } = this.#deps;
    const log = new StderrLog({ redact: (text) => redaction.sink.redact(text) });
    // A server that is started again to be spoken to otherwise does the same again.
    const warned = new Set<string>();
    const onWarning = (message: string) => {
      const told = redaction.sink.redact(message);
      if (warned.has(told)) return;
      warned.add(told);
      lines.event({ line: "news", news: { kind: "warning", message: told } });
    };
    const requests = new ServerRequests(request.elicit, ({ method, params, answer }) => {
      const shown = params === undefined ? {} : { params: cleanNews(params, redaction) };
      const told: JsonObject = { ...answer };
      lines.event({ line: "news", news: { kind: "asked", method, ...shown, answer: told } });
    });
    try {
      return await McpSession.open({
        server: launch.server,
        startupTimeoutMs: launch.startupTimeoutMs,
        clock,
        connect: () => connectServer(launch, { clock, keeper, log, transports, onWarning }),
        signal: ended,
        clientInfo: { name: "rnix", version: VERSION },
        requests,
        hearsAll: true,
      });
    } catch (thrown) {
      throw redactError(thrown, redaction.sink).with({ exitCode: EXIT_MOUNT });
    }
  }

  #refuseWhenStopping(): void {
    if (!this.#closing.signal.aborted) return;
    throw new SysError("INTERRUPTED", "rnix is shutting down and starts nothing any more", {
      hint: "Try again in a moment",
    });
  }
}

/** Asks the person at the client whether something of the project may be started. */
export function trustBy(
  lines: Parameters<Questions["ask"]>[0],
  questions: Questions,
  ended: AbortSignal,
): Pick<RunObserver, "confirmTrust"> {
  return {
    confirmTrust: async (question) =>
      await questions.ask(lines, { kind: "trust", question }, ended) === true,
  };
}

/** What is spoken with the server; only HTTP+SSE is found out otherwise than by what was tried first. */
function transportOf(launch: McpServerLaunch, transports: TransportMemory): string {
  if (launch.transport !== "auto") return launch.transport;
  return transports.get(launch.url) ?? "http";
}
