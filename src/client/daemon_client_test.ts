/** Following a run of a daemon that is alive, goes silent, comes back, or never does. */
import assert from "node:assert/strict";
import { SysError } from "../base/errors.ts";
import type { RunEvent } from "../base/operations.ts";
import type { RunLine } from "../base/wire.ts";
import { report } from "../../tests/doubles/fake_system.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { DaemonClient } from "./daemon_client.ts";
import { DaemonSocket } from "./daemon_socket.ts";

const ACCEPTED: RunLine = { line: "accepted", pid: 7, run_id: report().run_id };

/** A daemon that says what a test makes it say, line by line. */
class Spoken implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "rnix-spoken-" });
  readonly gone = Promise.withResolvers<void>();
  readonly socket = new DaemonSocket(`${this.folder}/d.sock`);
  readonly clock = new VirtualClock();
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  readonly #server: Deno.HttpServer;

  constructor(...first: RunLine[]) {
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        this.#controller = controller;
        for (const line of first) this.say(line);
      },
      cancel: () => this.gone.resolve(),
    });
    const path = `${this.folder}/d.sock`;
    this.#server = Deno.serve({ path, onListen: () => {} }, () => new Response(body));
  }

  say(line: RunLine): void {
    this.#controller?.enqueue(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
  }

  /** Its time is the test's, so nothing is silent before a test says so. */
  get client(): DaemonClient {
    return new DaemonClient(this.socket, { osPid: Deno.pid, clock: this.clock });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.close();
    await this.#server.shutdown();
    Deno.removeSync(this.folder, { recursive: true });
  }
}

/** Notices as they come, to be awaited. */
class Notices {
  readonly told: string[] = [];
  #waiting: (() => void)[] = [];

  onEvent(event: RunEvent): void {
    this.told.push(event.type === "notice" ? `${event.pid} ${event.message}` : event.type);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async until(count: number): Promise<string[]> {
    while (this.told.length < count) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.told;
  }
}

const NAME = `The daemon (process ${Deno.pid})`;

Deno.test("a run whose daemon falls silent for good ends as lost, exit 8, after it was told", async () => {
  await using spoken = new Spoken(ACCEPTED);
  const notices = new Notices();
  const handle = await spoken.client.attach("7", "now", notices);
  await spoken.clock.advance(10_000);
  const [told = ""] = await notices.until(1);
  assert.ok(told.startsWith(`7 ${NAME} has said nothing for 10 s. Process ${Deno.pid} `), told);
  await spoken.clock.advance(50_000);
  const { exit_code, error, reason } = await handle.done;
  assert.deepEqual([exit_code, reason, error?.code], [8, "interrupted", "TIMEOUT"]);
  assert.equal(error?.message, `${NAME} has said nothing for 60 s`);
  assert.match(error?.hint ?? "", new RegExp(`kill -9 ${Deno.pid}`));
  assert.equal(notices.told.length, 1);
  assert.equal(spoken.clock.pending, 0);
  await spoken.gone.promise;
});

Deno.test("a daemon that is silent before there is a run is given up as well", async () => {
  await using spoken = new Spoken();
  const refused = assert.rejects(
    spoken.client.attach("7", "now", new Notices()),
    (thrown) => thrown instanceof SysError && thrown.code === "TIMEOUT" && thrown.exitCode === 8,
  );
  await spoken.clock.advance(60_000);
  await refused;
});

Deno.test("a daemon that comes back is told of, and the run goes on to its report", async () => {
  await using spoken = new Spoken(ACCEPTED);
  const notices = new Notices();
  const handle = await spoken.client.attach("7", "now", notices);
  await spoken.clock.advance(59_000);
  await notices.until(1);
  spoken.say({ line: "alive" });
  assert.equal((await notices.until(2))[1], `7 ${NAME} is back`);
  await spoken.clock.advance(8_000);
  spoken.say({ line: "report", report: report() });
  assert.equal((await handle.done).exit_code, 0);
  assert.equal(notices.told.length, 2);
});
