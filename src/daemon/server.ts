/** The daemon's HTTP side: the table of operations on the running system. */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { BODY_BYTES_MAX, type DaemonStatus, type OperationName, OPERATIONS } from "../base/wire.ts";
import { followRun, Questions } from "./connection.ts";
import { failureAnswer } from "./failure_answer.ts";
import type { Judge } from "./judge.ts";
import {
  answerRequest,
  askServerRequest,
  attachRequest,
  cancelAskRequest,
  closeServerRequest,
  controlRequest,
  decode,
  judgeServersRequest,
  openServerRequest,
  resumeRequest,
  runRequest,
  vfsRequest,
} from "./requests.ts";
import type { RunSystem } from "./run_system.ts";
import { answerVfs } from "./vfs_lines.ts";
import type { ServerSessions } from "./server_sessions.ts";

export interface ServerDeps {
  clock: Clock;
  /** How often followers hear that the daemon is alive, in place of `ALIVE_MS`. */
  aliveMs?: number;
  system: RunSystem;
  /** Servers that are looked into outside of runs. */
  servers: ServerSessions;
  judge: Judge;
  status(): DaemonStatus;
  /** Begins to stop; the answer goes out before. */
  stop(): void;
  /** Called whenever the number of connected clients changes. */
  onClients(clients: number): void;
}

type Handler = (body: string) => Promise<Response> | Response;

/** The handler for `Deno.serve`. */
export function createHandler(deps: ServerDeps): (request: Request) => Promise<Response> {
  const server = new Server(deps);
  const byPath = new Map<string, { method: string; handle: Handler }>(
    Object.entries(OPERATIONS).map(([name, { method, path }]) => [
      path,
      { method, handle: server.handlers[name as OperationName] },
    ]),
  );
  return async (request) => {
    const operation = byPath.get(new URL(request.url).pathname);
    if (operation?.method !== request.method) {
      return failed(new SysError("NOT_FOUND", "This daemon knows no such operation"), 404);
    }
    try {
      return await operation.handle(request.method === "GET" ? "" : await bodyOf(request));
    } catch (thrown) {
      return failed(thrown, 400);
    }
  };
}

class Server {
  readonly #deps: ServerDeps;
  readonly #questions = new Questions();
  #clients = 0;

  constructor(deps: ServerDeps) {
    this.#deps = deps;
  }

  readonly handlers: Record<OperationName, Handler> = {
    status: () => Response.json({ ...this.#deps.status(), clients: this.#clients }),
    stop: () => {
      this.#deps.stop();
      return Response.json({});
    },
    run: (body) => {
      const request = decode(runRequest, body);
      return this.#follow(
        (observer) => this.#deps.system.run(request, observer),
        request.client.interactive,
        request.detached !== true,
      );
    },
    resume: (body) => {
      const request = decode(resumeRequest, body);
      return this.#follow(
        (observer) => this.#deps.system.resume(request, observer),
        request.client.interactive,
        request.detached !== true,
      );
    },
    attach: (body) => {
      const { run, from, interactive } = decode(attachRequest, body);
      return this.#follow(
        (observer) => this.#deps.system.attach(run, from, observer),
        interactive,
        false,
      );
    },
    control: async (body) => {
      const request = decode(controlRequest, body);
      if ("signal" in request) await this.#deps.system.signal(request.run, request.signal);
      else await this.#deps.system.suspend(request.run, request.suspend);
      return Response.json({});
    },
    answer: (body) => {
      const { id, answer } = decode(answerRequest, body);
      return Response.json({ taken: this.#questions.answer(id, answer) });
    },
    openServer: (body) => {
      const request = decode(openServerRequest, body);
      this.#count(1);
      const { aliveMs } = this.#deps;
      return ndjson(this.#deps.servers.open(request, {
        questions: this.#questions,
        ...(aliveMs === undefined ? {} : { aliveMs }),
        onOver: () => this.#count(-1),
      }));
    },
    mountHealth: async () => Response.json({ rows: await this.#deps.system.mountHealth() }),
    vfs: (body) => {
      const request = decode(vfsRequest, body);
      this.#count(1);
      const { clock, aliveMs, system } = this.#deps;
      return ndjson(answerVfs((signal) => system.vfs(request, signal), {
        clock,
        ...(aliveMs === undefined ? {} : { aliveMs }),
        onOver: () => this.#count(-1),
      }));
    },
    judgeServers: (body) => {
      const request = decode(judgeServersRequest, body);
      this.#count(1);
      const { aliveMs } = this.#deps;
      return ndjson(this.#deps.judge.open(request, {
        questions: this.#questions,
        ...(aliveMs === undefined ? {} : { aliveMs }),
        onOver: () => this.#count(-1),
      }));
    },
    askServer: async (body) => {
      const { session, id, ask } = decode(askServerRequest, body);
      return Response.json(await this.#deps.servers.ask(session, id, ask));
    },
    cancelAsk: (body) => {
      const { session, id } = decode(cancelAskRequest, body);
      return Response.json({ cancelled: this.#deps.servers.cancel(session, id) });
    },
    closeServer: async (body) => {
      await this.#deps.servers.closeSession(decode(closeServerRequest, body).session);
      return Response.json({});
    },
  };

  /** `owned`: the run is suspended when its client goes. */
  #follow(
    start: Parameters<typeof followRun>[0],
    interactive: boolean,
    owned: boolean,
  ): Response {
    this.#count(1);
    const { clock, aliveMs } = this.#deps;
    const body = followRun(start, {
      clock,
      ...(aliveMs === undefined ? {} : { aliveMs }),
      questions: this.#questions,
      interactive,
      onGone: (handle) => owned && handle.suspend("detached"),
      onOver: () => this.#count(-1),
    });
    return ndjson(body);
  }

  #count(change: 1 | -1): void {
    this.#clients += change;
    this.#deps.onClients(this.#clients);
  }
}

function ndjson(body: ReadableStream<Uint8Array<ArrayBuffer>>): Response {
  return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
}

async function bodyOf(request: Request): Promise<string> {
  const size = Number(request.headers.get("content-length") ?? 0);
  if (size > BODY_BYTES_MAX) throw tooLarge();
  const text = await request.text();
  if (text.length > BODY_BYTES_MAX) throw tooLarge();
  return text;
}

function tooLarge(): SysError {
  return new SysError("INVALID", `The request is larger than ${BODY_BYTES_MAX} bytes`, {
    exitCode: EXIT_USAGE,
  });
}

function failed(thrown: unknown, status: number): Response {
  return Response.json(failureAnswer(thrown), { status });
}
