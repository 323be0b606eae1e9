/** The daemon and its client over a real socket, in one process: start, second daemon, idle end, stop, runs, questions, clients that vanish. */
import assert from "node:assert/strict";
import { DaemonSocket } from "../src/client/daemon_socket.ts";
import { DaemonClient } from "../src/client/mod.ts";
import { LOCK_FILE, readDaemonRecord, RECORD_FILE, socketPath } from "../src/base/daemon_files.ts";
import { disk } from "../src/base/disk.ts";
import { SysError } from "../src/base/errors.ts";
import type { RunEvent, RunRequest } from "../src/base/operations.ts";
import type { Storage } from "../src/base/storage.ts";
import type { DaemonRecord, DaemonStatus, RunLine } from "../src/base/wire.ts";
import { type DaemonOptions, runDaemon } from "../src/daemon/mod.ts";
import { removeFolder } from "./doubles/remove_folder.ts";

const LEDGER = new URL("./servers/ledger_server.ts", import.meta.url).pathname;

/** A home with three agents, and a daemon in this very process. */
class Home {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-daemon-" }));
  readonly env = { ...Deno.env.toObject(), RNIX_HOME: `${this.folder}/home` };
  readonly signals = new Map<string, () => void>();
  readonly #open: DaemonSocket[] = [];
  daemon: Promise<void> | undefined;

  constructor() {
    this.#agent("talker", `turns: [{ text: done talking, delay: 300ms }]\n`, "");
    this.#agent("waiter", `turns: [{ text: done waiting, delay: 10m }]\n`, "");
    this.#agent(
      "dier",
      `turns: [{ calls: [{ tool: die, input: { note: x } }] }, { text: "it is over" }]\n`,
      `mcp: { servers: { ledger: { command: "${Deno.execPath()}",
        args: ["run", "--quiet", "-A", "${LEDGER}", "${this.folder}/ledger"] } } }\n`,
    );
  }

  #agent(name: string, script: string, more: string): void {
    Deno.mkdirSync(`${this.folder}/${name}`);
    Deno.writeTextFileSync(`${this.folder}/${name}/script.yaml`, script);
    Deno.writeTextFileSync(
      `${this.folder}/${name}/agent.yaml`,
      `name: ${name}\ninstructions: x\nmodels: { provider: scripted, script: script.yaml }\n${more}`,
    );
  }

  options(changes: Partial<DaemonOptions> = {}): DaemonOptions {
    return {
      env: this.env,
      uid: Deno.uid() ?? 0,
      osPid: Deno.pid,
      onSignal: (signal, heard) => {
        this.signals.set(signal, heard);
        return () => this.signals.delete(signal);
      },
      ...changes,
    };
  }

  async start(changes: Partial<DaemonOptions> = {}): Promise<DaemonSocket> {
    let failure: unknown;
    this.daemon = runDaemon(this.options(changes));
    this.daemon.catch((thrown) => failure = thrown);
    for (;;) {
      if (failure !== undefined) throw failure;
      const record = await readDaemonRecord(disk, `${this.folder}/home/state`);
      if (record !== undefined) return this.socket(record.socket);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  socket(path: string): DaemonSocket {
    const socket = new DaemonSocket(path);
    this.#open.push(socket);
    return socket;
  }

  request(agent: string, changes: Partial<RunRequest> = {}): RunRequest {
    return {
      manifest: `${this.folder}/${agent}`,
      intent: "go",
      client: { cwd: this.folder, env: this.env, interactive: false },
      trust: false,
      ...changes,
    };
  }

  /** Looks again and again until `found` gives something. */
  async until<T>(found: () => Promise<T | undefined>): Promise<T> {
    for (;;) {
      const value = await found();
      if (value !== undefined) return value;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async close(): Promise<void> {
    this.signals.get("SIGTERM")?.();
    await this.daemon?.catch(() => {});
    for (const socket of this.#open) socket.close();
    await removeFolder(this.folder);
  }
}

async function atHome(work: (home: Home) => Promise<void>): Promise<void> {
  const home = new Home();
  try {
    await work(home);
  } finally {
    await home.close();
  }
}

const silent = { onEvent: () => {} };

Deno.test("a run over the socket: events as they come, then its report", async () => {
  await atHome(async (home) => {
    const client = new DaemonClient(await home.start());
    const events: RunEvent[] = [];
    const handle = await client.run(home.request("talker"), { onEvent: (e) => events.push(e) });
    const report = await handle.done;
    assert.equal(report.result, "done talking");
    assert.equal(report.exit_code, 0);
    assert.equal(report.pid, handle.pid);
    assert.deepEqual(
      events.map(({ type }) => type).filter((type) => type !== "model.delta"),
      ["run.started", "model.started", "model.finished", "run.exited"],
    );
  });
});

Deno.test("what can't be started is the daemon's error, exit code and all", async () => {
  await atHome(async (home) => {
    const client = new DaemonClient(await home.start());
    const request = home.request("talker", { manifest: "nothing-there" });
    await assert.rejects(client.run(request, silent), (error) => {
      assert.ok(error instanceof SysError);
      assert.deepEqual([error.code, error.exitCode], ["NOT_FOUND", 2]);
      return true;
    });
  });
});

Deno.test("a second daemon is refused, and ends before it touches anything", async () => {
  await atHome(async (home) => {
    await home.start();
    await assert.rejects(runDaemon(home.options()), /Another daemon serves this state folder/);
    const record = await readDaemonRecord(disk, `${home.folder}/home/state`);
    assert.equal(record?.os_pid, Deno.pid);
  });
});

Deno.test("a daemon with nothing to do ends by itself, its socket and record gone", async () => {
  await atHome(async (home) => {
    const socket = await home.start({ idleMs: 100 });
    await home.daemon;
    assert.equal(await disk.stat(socket.path), undefined);
    assert.equal(await readDaemonRecord(disk, `${home.folder}/home/state`), undefined);
  });
});

Deno.test("who follows a run hears that the daemon is alive while nothing happens", async () => {
  await atHome(async (home) => {
    const socket = await home.start({ aliveMs: 10 });
    const said: string[] = [];
    for await (const { line } of socket.lines<RunLine>("run", home.request("talker"))) {
      said.push(line);
    }
    assert.ok(said.includes("alive"), said.join(" "));
    assert.equal(said.at(-1), "report");
  });
});

Deno.test("a record or socket that is lost, damaged or replaced is there again, and the run with it", async () => {
  await atHome(async (home) => {
    const first = await home.start({ checkMs: 10 });
    const record = `${home.folder}/home/state/${RECORD_FILE}`;
    const before = await readDaemonRecord(disk, `${home.folder}/home/state`);
    const client = new DaemonClient(first);
    const handle = await client.run(home.request("talker"), silent);
    const losses: (() => void)[] = [
      () => Deno.removeSync(record),
      () => Deno.writeTextFileSync(record, "{"),
      () => Deno.writeTextFileSync(record, JSON.stringify({ ...before, instance: "other" })),
      () => Deno.removeSync(first.path),
      () => {
        Deno.removeSync(first.path);
        Deno.writeTextFileSync(first.path, "");
      },
      () => Deno.removeSync(first.path.replace(/[^/]*$/, ""), { recursive: true }),
    ];
    for (const lose of losses) {
      lose();
      await backAgain(home, before);
    }
    // Who was connected through the first socket still is.
    assert.equal((await handle.done).result, "done talking");
    await home.socket(first.path).value("stop");
    await home.daemon;
    assert.equal(await disk.stat(first.path), undefined);
    assert.equal(await disk.stat(record), undefined);
  });
});

/** Until the record is what it was, and somebody answers where it says. */
async function backAgain(home: Home, before: DaemonRecord | undefined): Promise<void> {
  const record = await home.until(async () => {
    const record = await readDaemonRecord(disk, `${home.folder}/home/state`).catch(() => undefined);
    const socket = home.socket(before?.socket ?? "");
    const found = await socket.value<DaemonStatus>("status").catch(() => undefined);
    return found !== undefined && record?.instance === found.instance ? record : undefined;
  });
  assert.deepEqual(record, before);
}

Deno.test("a client that looks at the lock keeps no daemon from starting, whatever an old record says", async () => {
  await atHome(async (home) => {
    const state = `${home.folder}/home/state`;
    await (await home.start()).value("stop");
    await home.daemon;
    const record = { socket: "/none", os_pid: 1, instance: crypto.randomUUID(), version: "1" };
    Deno.writeTextFileSync(`${state}/${RECORD_FILE}`, JSON.stringify({ ...record, protocol: 1 }));
    await home.start({ storage: lookedAtOnce() });
    const started = home.until(async () =>
      (await readDaemonRecord(disk, state))?.instance !== record.instance ? true : undefined
    );
    await Promise.race([started, home.daemon]);
  });
});

/** A disk on which somebody else holds the daemon's lock at the first look, and then no more. */
function lookedAtOnce(): Storage {
  return {
    ...disk,
    async open(path, options) {
      const file = await disk.open(path, options);
      if (!path.endsWith(LOCK_FILE)) return file;
      const tryLock = file.tryLock.bind(file);
      let looks = 0;
      file.tryLock = (mode) => ++looks > 1 && tryLock(mode);
      return file;
    },
  };
}

Deno.test("a daemon refuses a state folder that others may write", async () => {
  await atHome(async (home) => {
    const state = `${home.folder}/home/state`;
    Deno.mkdirSync(state, { recursive: true });
    Deno.chmodSync(state, 0o777);
    await assert.rejects(runDaemon(home.options()), /can't be relied upon: others may write it/);
    assert.deepEqual([...Deno.readDirSync(state)], []);
    Deno.removeSync(state);
    await home.start();
    assert.equal((Deno.statSync(state).mode ?? 0) & 0o777, 0o700);
  });
});

Deno.test("a run at work keeps the daemon up; a suspended one doesn't", async () => {
  await atHome(async (home) => {
    const client = new DaemonClient(await home.start({ idleMs: 1_000 }));
    const handle = await client.run(home.request("waiter"), silent);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    handle.suspend("paused");
    const report = await handle.done;
    assert.deepEqual([report.state, report.reason, report.exit_code], ["suspended", "paused", 9]);
    await home.daemon;
  });
});

Deno.test("a foreground run whose client vanishes is suspended, a detached one goes on", async () => {
  await atHome(async (home) => {
    const socket = await home.start();
    const client = new DaemonClient(socket);
    for (const detached of [false, true]) {
      const lines = socket.lines<{ line: string; run_id: string }>("run", {
        ...home.request(detached ? "talker" : "waiter"),
        detached,
      });
      let runId = "";
      for await (const line of lines) {
        if (line.line === "accepted") runId = line.run_id;
        if (runId !== "") break;
      }
      const joined = await client.attach(runId, "now", silent).catch(() => undefined);
      const report = await joined?.done;
      if (report === undefined) continue; // suspended before it could be joined
      assert.equal(report.state, detached ? "dead" : "suspended");
      assert.equal(report.reason, detached ? undefined : "detached");
    }
  });
});

Deno.test("a question goes to the client's person, and the answer settles the call", async () => {
  await atHome(async (home) => {
    const client = new DaemonClient(await home.start());
    const asked: string[] = [];
    const request = home.request("dier");
    request.client.interactive = true;
    const handle = await client.run(request, {
      onEvent: () => {},
      decideUnknown: (call) => {
        asked.push(`${call.call} ${call.effect} ${call.cause}`);
        return Promise.resolve({ how: "done", result: "paid" });
      },
    });
    const report = await handle.done;
    assert.deepEqual(asked, ["t1.1 write disconnected"]);
    assert.equal(report.exit_code, 0, JSON.stringify(report));
  });
});

Deno.test("with nobody to ask the run suspends, and a signal to it then ends it", async () => {
  await atHome(async (home) => {
    const client = new DaemonClient(await home.start());
    const handle = await client.run(home.request("dier"), silent);
    const report = await handle.done;
    assert.equal(report.exit_code, 5);
    assert.equal(report.unknown_calls?.[0]?.call, "t1.1");
    await assert.rejects(client.signal(handle.runId, "PAUSE"), /is suspended/);
    await client.signal(handle.runId, "TERM");
    await assert.rejects(client.signal(handle.runId, "TERM"), /has ended already/);
  });
});

Deno.test("stop suspends what is at work and takes nothing new", async () => {
  await atHome(async (home) => {
    const socket = await home.start();
    const client = new DaemonClient(socket);
    const handle = await client.run(home.request("waiter"), silent);
    await socket.value("stop");
    const report = await handle.done;
    assert.deepEqual([report.state, report.reason], ["suspended", "shutdown"]);
    await home.daemon;
  });
});

Deno.test("a client that keeps its connection open, in the middle of a request, holds no end up", async () => {
  await atHome(async (home) => {
    const socket = await home.start();
    const { path } = socket;
    using connection = await Deno.connect({ transport: "unix", path });
    const half = "POST /v1/control HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{";
    await connection.write(new TextEncoder().encode(half));
    assert.equal((await socket.value<DaemonStatus>("status")).os_pid, Deno.pid);
    await socket.value("stop");
    await home.daemon;
    assert.equal(await disk.stat(path), undefined);
  });
});

Deno.test("status tells versions, runs and clients; unknown paths and bad bodies are refused in a sentence", async () => {
  await atHome(async (home) => {
    const socket = await home.start();
    const status = await socket.value<DaemonStatus>("status");
    assert.deepEqual([status.runs, status.clients, status.os_pid], [0, 0, Deno.pid]);
    const lines = socket.lines("run", { manifest: 1 });
    await assert.rejects(lines.next(), /The request can't be read: manifest: /);
  });
});

Deno.test("[A7] a socket path over the system's limit lands in the short folder", () => {
  const path = socketPath("/state", `/run/${"x".repeat(120)}`, 1000);
  assert.match(path, /^\/tmp\/rnix-1000\/[0-9a-f]{16}\.sock$/);
  assert.match(socketPath("/state", "/run/user/1000/rnix", 1000), /^\/run\/user\/1000\/rnix\//);
});
