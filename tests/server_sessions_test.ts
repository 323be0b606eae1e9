/** Servers looked into outside of runs, over a real socket: opened, asked, cancelled, lost, and never left behind. */
import assert from "node:assert/strict";
import { readDaemonRecord } from "../src/base/daemon_files.ts";
import { disk } from "../src/base/disk.ts";
import { SysError } from "../src/base/errors.ts";
import type {
  ServerNews,
  ServerReference,
  ServerRequest,
  ServerSession,
} from "../src/base/server_operations.ts";
import type { DaemonStatus, ServerLine } from "../src/base/wire.ts";
import { DaemonSocket } from "../src/client/daemon_socket.ts";
import { DaemonClient } from "../src/client/mod.ts";
import { type DaemonOptions, runDaemon } from "../src/daemon/mod.ts";
import { processesNaming } from "./servers/marked_processes.ts";
import { removeFolder } from "./doubles/remove_folder.ts";

const LEDGER = new URL("./servers/ledger_server.ts", import.meta.url).pathname;
const SCRIPTED = new URL("./servers/scripted_server.ts", import.meta.url).pathname;

/** A home, a daemon in this very process, and one client of it. */
class Home {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-servers-" }));
  readonly env = {
    ...Deno.env.toObject(),
    RNIX_HOME: `${this.folder}/home`,
    TOKEN: "s3cr3t-value",
  };
  readonly news: ServerNews[] = [];
  readonly #open: DaemonSocket[] = [];
  #endDaemon = () => {};
  daemon: Promise<void> = Promise.resolve();

  async start(changes: Partial<DaemonOptions> = {}): Promise<DaemonSocket> {
    let failure: unknown;
    this.daemon = runDaemon({
      env: this.env,
      uid: Deno.uid() ?? 0,
      osPid: Deno.pid,
      onSignal: (_, heard) => {
        this.#endDaemon = heard;
        return () => {};
      },
      ...changes,
    });
    this.daemon.catch((thrown) => failure = thrown);
    const record = await until(async () => {
      if (failure !== undefined) throw failure;
      return await readDaemonRecord(disk, `${this.folder}/home/state`);
    });
    return this.socket(record.socket);
  }

  socket(path: string): DaemonSocket {
    const socket = new DaemonSocket(path);
    this.#open.push(socket);
    return socket;
  }

  /** The word that is in the command line of this home's servers alone. */
  get ledger(): string {
    return `${this.folder}/ledger`;
  }

  get ledgerServer(): ServerReference {
    const args = ["run", "--quiet", "-A", LEDGER, this.ledger];
    return { kind: "command", command: Deno.execPath(), args };
  }

  request(server: ServerReference = this.ledgerServer): ServerRequest {
    const client = { cwd: this.folder, env: this.env, interactive: false };
    return { server, client, elicit: { kind: "decline" }, trust: false };
  }

  connect(socket: DaemonSocket, request = this.request()): Promise<ServerSession> {
    return new DaemonClient(socket).openServer(request, { onNews: (news) => this.news.push(news) });
  }

  async close(): Promise<void> {
    this.#endDaemon();
    await this.daemon.catch(() => {});
    for (const socket of this.#open) socket.close();
    await removeFolder(this.folder);
  }
}

async function until<T>(found: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const value = await found();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function noneNaming(word: string): Promise<void> {
  await until(async () => (await processesNaming(word)).length === 0 ? true : undefined);
}

async function atHome(work: (home: Home) => Promise<void>): Promise<void> {
  const home = new Home();
  try {
    await work(home);
  } finally {
    await home.close();
  }
}

const pay = (note: string, more: object = {}) => ({
  method: "tools/call",
  params: { name: "pay", arguments: { note, ...more } },
});

async function failureOf(work: Promise<unknown>): Promise<SysError> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof SysError, String(thrown));
  return thrown;
}

Deno.test("a server is connected, asked and ended: nothing of it is left", async () => {
  await atHome(async (home) => {
    const session = await home.connect(await home.start());
    const { connect_ms, ...facts } = session.facts;
    assert.ok(connect_ms > 0);
    assert.deepEqual(facts, {
      server: "deno",
      transport: "stdio",
      era: "legacy",
      protocol_version: "2025-11-25",
      server_info: { name: "ledger", version: "1.0.0" },
      capabilities: { tools: {} },
      tools: 8,
    });
    const paid = await session.ask(pay("rent"));
    assert.deepEqual(paid, {
      outcome: "ok",
      result: { content: [{ type: "text", text: "paid rent" }] },
    });
    assert.match(Deno.readTextFileSync(home.ledger), /^pay rent [0-9a-f-]{36}\/1\n$/);
    const listed = await session.ask({ method: "tools/list", params: {} });
    assert.ok(listed.outcome === "ok" && JSON.stringify(listed.result).includes('"upsert"'));
    const refused = await session.ask({ method: "prompts/get", params: { name: "x" } });
    assert.ok(refused.outcome === "error");
    assert.deepEqual(refused.rpc, { code: -32601 });
    await session.close();
    assert.deepEqual(await processesNaming(home.ledger), []);
    await assert.rejects(session.ask(pay("more")), SysError);
  });
});

Deno.test("a server that is tried twice is warned of once", async () => {
  await atHome(async (home) => {
    const socket = await home.start();
    const args = ["-c", "echo hello; exit 7"];
    await failureOf(home.connect(socket, home.request({ kind: "command", command: "sh", args })));
    const warnings = home.news.flatMap((news) => news.kind === "warning" ? [news.message] : []);
    assert.deepEqual(warnings.map((each) => /writes lines to stdout/.test(each)), [true]);
  });
});

Deno.test("a client that vanishes takes its server with it, connected or on the way", async () => {
  await atHome(async (home) => {
    const socket = await home.start({ aliveMs: 500 });
    const lines = (request: ServerRequest) => socket.lines<ServerLine>("openServer", request);
    const connected = lines(home.request());
    assert.equal((await connected.next()).value?.line, "accepted");
    assert.equal((await processesNaming(home.ledger)).length, 1);
    await connected.return(undefined);
    await noneNaming(home.ledger);
    const onTheWay = lines(home.request({
      kind: "command",
      command: Deno.execPath(),
      args: ["eval", "--quiet", "setTimeout(() => {}, 1e6)", home.ledger],
    }));
    assert.equal((await onTheWay.next()).value?.line, "alive");
    await until(async () => (await processesNaming(home.ledger)).length > 0 ? true : undefined);
    await onTheWay.return(undefined);
    await noneNaming(home.ledger);
  });
});

Deno.test("a connected server keeps the daemon up; daemon stop ends it", async () => {
  await atHome(async (home) => {
    const socket = await home.start({ idleMs: 1_000 });
    const session = await home.connect(socket);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const status = await socket.value<DaemonStatus>("status");
    assert.deepEqual([status.runs, status.clients], [0, 1]);
    await socket.value("stop");
    const { error, exit_code } = await session.ended;
    assert.deepEqual([error.code, exit_code], ["DEVICE_DISCONNECTED", 1]);
    assert.match(error.message, /rnix closed it/, "it was asked to end before it was killed");
    await home.daemon;
    assert.deepEqual(await processesNaming(home.ledger), []);
  });
});

Deno.test("a server that dies in a call leaves its outcome unknown, and its end is told", async () => {
  await atHome(async (home) => {
    const session = await home.connect(await home.start());
    const params = { name: "die", arguments: { note: "x" } };
    const answer = await session.ask({ method: "tools/call", params });
    assert.equal(answer.outcome, "unknown");
    assert.ok(answer.outcome === "unknown" && /was lost during a call/.test(answer.error.message));
    assert.match((await session.ended).error.message, /has gone: it exited with code 0/);
  });
});

Deno.test("a limit and a cancellation end one request; what it did is told as unknown", async () => {
  await atHome(async (home) => {
    const session = await home.connect(await home.start());
    const late = await session.ask({ ...pay("late", { after_ms: 60_000 }), timeout_ms: 300 });
    assert.ok(late.outcome === "unknown" && late.error.code === "TIMEOUT");
    const cancel = new AbortController();
    const asked = session.ask(pay("cancelled", { after_ms: 60_000 }), cancel.signal);
    await until(() =>
      Promise.resolve(
        Deno.readTextFileSync(home.ledger).includes("pay cancelled") ? true : undefined,
      )
    );
    cancel.abort();
    const cancelled = await asked;
    assert.ok(cancelled.outcome === "unknown" && cancelled.error.code === "UNKNOWN_OUTCOME");
    assert.equal((await session.ask(pay("after"))).outcome, "ok", "the others go on");
  });
});

Deno.test("what a server tells by itself comes through, and what it asks is answered", async () => {
  await atHome(async (home) => {
    const scenario = {
      tools: [{ name: "t", inputSchema: { type: "object" } }],
      on: {
        "tools/call:t": {
          send: [{ method: "notifications/message", params: { level: "info", data: "hello" } }],
          ask: [{ method: "elicitation/create", params: { message: "Sure?" } }],
        },
      },
    };
    const args = ["run", "--quiet", "-A", SCRIPTED, JSON.stringify(scenario)];
    const server: ServerReference = { kind: "command", command: Deno.execPath(), args };
    const policy = { kind: "content", content: { sure: true } } as const;
    const session = await home.connect(await home.start(), {
      ...home.request(server),
      elicit: policy,
    });
    const called = await session.ask({ method: "tools/call", params: { name: "t" } });
    assert.match(JSON.stringify(called), /accept.*sure.*true/);
    assert.deepEqual(home.news, [
      {
        kind: "notification",
        method: "notifications/message",
        params: { level: "info", data: "hello" },
      },
      {
        kind: "asked",
        method: "elicitation/create",
        params: { message: "Sure?" },
        answer: { result: { action: "accept", content: { sure: true } } },
      },
    ]);
    await session.close();
  });
});

Deno.test("secrets of a server's configuration are nowhere in what is shown", async () => {
  await atHome(async (home) => {
    Deno.mkdirSync(`${home.folder}/keeper`);
    Deno.writeTextFileSync(
      `${home.folder}/keeper/agent.yaml`,
      `name: keeper
instructions: x
models: { provider: scripted, script: s.yaml }
mcp: { servers: { ledger: { command: "${Deno.execPath()}",
  args: [run, --quiet, -A, "${LEDGER}", "${home.ledger}"], env: { KEY: "\${TOKEN}" } } } }\n`,
    );
    Deno.writeTextFileSync(`${home.folder}/keeper/s.yaml`, "turns: [{ text: x }]\n");
    const socket = await home.start();
    const agent = { kind: "agent", manifest: "./keeper", server: "ledger" } as const;
    const session = await home.connect(socket, home.request(agent));
    const answer = await session.ask(pay(home.env.TOKEN));
    assert.match(JSON.stringify(answer), /paid \[redacted\]|paid \*+|paid <redacted>/i);
    assert.doesNotMatch(JSON.stringify(answer), /s3cr3t/);
    const failed = await session.ask({
      method: "tools/call",
      params: { name: "fail", arguments: { message: home.env.TOKEN } },
    });
    assert.doesNotMatch(JSON.stringify(failed), /s3cr3t/);
    const unknown = await failureOf(
      home.connect(socket, home.request({ ...agent, server: "ledgr" })),
    );
    assert.deepEqual([unknown.code, unknown.exitCode], ["NOT_FOUND", 2]);
    assert.match(unknown.hint ?? "", /ledger/);
  });
});

Deno.test("[D19] an unknown server is exit 2, one that can't be connected exit 3", async () => {
  await atHome(async (home) => {
    const socket = await home.start();
    const open = (server: ServerReference) => failureOf(home.connect(socket, home.request(server)));
    const unknown = await open({ kind: "configured", name: "nowhere" });
    assert.deepEqual([unknown.code, unknown.exitCode], ["NOT_FOUND", 2]);
    const missing = await open({ kind: "command", command: "no-such-program-here", args: [] });
    assert.deepEqual([missing.code, missing.exitCode], ["NOT_FOUND", 3]);
    const exits = await open({ kind: "command", command: "sh", args: ["-c", "echo oh no >&2"] });
    assert.deepEqual([exits.code, exits.exitCode], ["DRIVER", 3]);
    assert.match(exits.message, /oh no/);
  });
});
