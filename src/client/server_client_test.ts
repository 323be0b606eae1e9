/** A server session whose daemon answers, hangs, or is lost. */
import assert from "node:assert/strict";
import { SERVER_FACTS } from "../../tests/doubles/fake_server.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { SysError } from "../base/errors.ts";
import type { ServerAsk, ServerNews, ServerRequest } from "../base/server_operations.ts";
import { OPERATIONS, type ServerLine } from "../base/wire.ts";
import { DaemonClient } from "./daemon_client.ts";
import { DaemonSocket } from "./daemon_socket.ts";

const REQUEST: ServerRequest = {
  server: { kind: "configured", name: "files" },
  client: { cwd: "/", env: {}, interactive: false },
  elicit: { kind: "decline" },
  trust: false,
};

/** A daemon with one connected server that never answers a request. */
class Hung implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "rnix-hung-" });
  readonly socket = new DaemonSocket(`${this.folder}/d.sock`);
  readonly clock = new VirtualClock();
  readonly asked = Promise.withResolvers<void>();
  readonly news: ServerNews[] = [];
  readonly #abort = new AbortController();
  readonly #server: Deno.HttpServer;

  constructor(...lines: ServerLine[]) {
    const body = () =>
      new ReadableStream<Uint8Array<ArrayBuffer>>({
        start(controller) {
          for (const line of lines) {
            controller.enqueue(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
          }
        },
      });
    const options = {
      path: `${this.folder}/d.sock`,
      onListen: () => {},
      signal: this.#abort.signal,
    };
    this.#server = Deno.serve(options, (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === OPERATIONS.openServer.path) return new Response(body());
      if (pathname !== OPERATIONS.askServer.path) return Response.json({});
      this.asked.resolve();
      return new Promise(() => {});
    });
  }

  connect() {
    const client = new DaemonClient(this.socket, { clock: this.clock });
    return client.openServer(REQUEST, { onNews: (news) => this.news.push(news) });
  }

  async die(): Promise<void> {
    this.#abort.abort();
    await this.#server.finished;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.close();
    this.#abort.abort();
    await this.#server.finished;
    Deno.removeSync(this.folder, { recursive: true });
  }
}

const ACCEPTED: ServerLine = { line: "accepted", session: "s1", facts: SERVER_FACTS };
const CALL = { method: "tools/call", params: { name: "pay" } };

Deno.test("a call that the daemon was lost with has an unknown outcome; other requests have failed", async () => {
  const lostWith = async (ask: ServerAsk): Promise<unknown> => {
    await using daemon: Hung = new Hung(ACCEPTED);
    const session = await daemon.connect();
    const answer = session.ask(ask).then(({ outcome }) => outcome, (thrown) => thrown);
    await daemon.asked.promise;
    await daemon.die();
    assert.equal((await session.ended).exit_code, 8);
    return await answer;
  };
  assert.equal(await lostWith(CALL), "unknown");
  const failure = await lostWith({ method: "tools/list", params: {} });
  assert.ok(failure instanceof SysError && failure.exitCode === 8);
});

Deno.test("a daemon that hangs is told of, and given up in the end: what it was asked is unknown", async () => {
  await using daemon = new Hung(ACCEPTED);
  const session = await daemon.connect();
  const answer = session.ask(CALL);
  await daemon.asked.promise;
  for (let looks = 0; looks < 31; looks += 1) await daemon.clock.advance(2_000);
  assert.equal((await answer).outcome, "unknown");
  assert.deepEqual(daemon.news, [
    { kind: "warning", message: "The daemon has said nothing for 10 s" },
  ]);
  assert.equal((await session.ended).exit_code, 8);
});

Deno.test("what the daemon refuses is its error, exit code and all", async () => {
  await using daemon = new Hung({
    line: "error",
    error: { code: "NOT_FOUND", message: 'Unknown server "files"' },
    exit_code: 2,
  });
  await assert.rejects(() => daemon.connect(), (thrown) => {
    assert.ok(thrown instanceof SysError);
    assert.deepEqual([thrown.code, thrown.exitCode], ["NOT_FOUND", 2]);
    return true;
  });
});
