/** Servers judged over a real socket: verdicts as they come, each on its own, and nothing left behind. */
import assert from "node:assert/strict";
import { readDaemonRecord } from "../src/base/daemon_files.ts";
import { disk } from "../src/base/disk.ts";
import type { ServerReference } from "../src/base/server_operations.ts";
import type { JudgeRequest, ServerVerdict } from "../src/base/server_verdict.ts";
import type { JudgeLine } from "../src/base/wire.ts";
import { DaemonSocket } from "../src/client/daemon_socket.ts";
import { DaemonClient } from "../src/client/mod.ts";
import { runDaemon } from "../src/daemon/mod.ts";
import { processesNaming } from "./servers/marked_processes.ts";
import type { Scenario } from "./servers/scripted_scenario.ts";
import { removeFolder } from "./doubles/remove_folder.ts";

const SCRIPTED = new URL("./servers/scripted_server.ts", import.meta.url).pathname;

/** A home with a daemon in this very process. */
class Home {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-judge-" }));
  readonly env = {
    ...Deno.env.toObject(),
    RNIX_HOME: `${this.folder}/home`,
    TOKEN: "s3cr3t-value",
  };
  #endDaemon = () => {};
  #daemon: Promise<void> = Promise.resolve();
  #sockets: DaemonSocket[] = [];

  async start(): Promise<DaemonSocket> {
    this.#daemon = runDaemon({
      env: this.env,
      uid: Deno.uid() ?? 0,
      osPid: Deno.pid,
      onSignal: (_, heard) => {
        this.#endDaemon = heard;
        return () => {};
      },
    });
    const record = await until(() => readDaemonRecord(disk, `${this.folder}/home/state`));
    const socket = new DaemonSocket(record.socket);
    this.#sockets.push(socket);
    return socket;
  }

  put(path: string, text: string): void {
    const place = `${this.folder}/${path}`;
    Deno.mkdirSync(place.replace(/[^/]*$/, ""), { recursive: true });
    Deno.writeTextFileSync(place, text);
  }

  request(servers: ServerReference[], trust = false): JudgeRequest {
    return { servers, client: { cwd: this.folder, env: this.env, interactive: false }, trust };
  }

  async judge(socket: DaemonSocket, request: JudgeRequest): Promise<ServerVerdict[]> {
    const verdicts: ServerVerdict[] = [];
    await new DaemonClient(socket).judgeServers(request, {
      onVerdict: (index, verdict) => void (verdicts[index] = verdict),
    });
    return verdicts;
  }

  async close(): Promise<void> {
    this.#endDaemon();
    await this.#daemon.catch(() => {});
    for (const socket of this.#sockets) socket.close();
    await removeFolder(this.folder);
  }
}

async function until<T>(found: () => Promise<T | undefined>): Promise<T> {
  const endMs = performance.now() + 60_000;
  while (performance.now() < endMs) {
    const value = await found();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("It didn't come to pass within a minute");
}

async function atHome(work: (home: Home) => Promise<void>): Promise<void> {
  const home = new Home();
  try {
    await work(home);
  } finally {
    await home.close();
  }
}

/** `word` is in the command line of the process. */
function scripted(scenario: Scenario, word = "plain"): ServerReference {
  const args = ["run", "--quiet", "-A", "--no-config", "--no-lock", "--no-check", SCRIPTED];
  return {
    kind: "command",
    command: Deno.execPath(),
    args: [...args, JSON.stringify(scenario), word],
  };
}

const TOOLS = [{ name: "t", inputSchema: { type: "object" } }];

Deno.test("[N7] servers are judged at once, each gets its own verdict, and none is left", async () => {
  await atHome(async (home) => {
    home.put(
      "home/config/mcp.yaml",
      'servers:\n  lacking: { command: x, env: { A: "${NOT_SET_AT_ALL}" } }\n',
    );
    const socket = await home.start();
    const word = `${home.folder}/mark`;
    const verdicts = await home.judge(
      socket,
      home.request([
        scripted({ tools: TOOLS }, word),
        { kind: "command", command: "not-there-at-all", args: [] },
        { kind: "configured", name: "lacking" },
        { kind: "configured", name: "nosuch" },
        scripted({ tools: TOOLS, on: { ping: { silent: true } } }, word),
      ]),
    );
    assert.deepEqual(verdicts.map(({ result }) => result), [
      "ok",
      "faults",
      "faults",
      "faults",
      "warnings",
    ]);
    assert.deepEqual(verdicts.map(({ error }) => error?.code), [
      undefined,
      "NOT_FOUND",
      "INVALID",
      "NOT_FOUND",
      undefined,
    ]);
    assert.match(verdicts[2]?.error?.message ?? "", /NOT_SET_AT_ALL/);
    assert.equal(verdicts[2]?.server, "lacking");
    assert.deepEqual(await processesNaming(word), []);
  });
});

Deno.test("servers of a project that nobody trusts are not started, and are once they are trusted", async () => {
  await atHome(async (home) => {
    const started = `${home.folder}/started`;
    home.put(
      ".rnix/mcp.yaml",
      `servers:\n  s: { command: sh, args: ["-c", "touch ${started}; exit 1"] }\n`,
    );
    Deno.chmodSync(`${home.folder}/.rnix`, 0o755);
    const socket = await home.start();
    const reference: ServerReference = { kind: "configured", name: "s" };
    const [refused] = await home.judge(socket, home.request([reference, reference]));
    assert.equal(refused?.error?.code, "UNTRUSTED");
    assert.throws(() => Deno.statSync(started));
    const [tried] = await home.judge(socket, home.request([reference], true));
    assert.equal(tried?.error?.code, "DRIVER");
    Deno.statSync(started);
  });
});

Deno.test("a person is asked once for what starts several servers", async () => {
  await atHome(async (home) => {
    home.put(".rnix/mcp.yaml", "servers: { a: { command: sh }, b: { command: sh } }\n");
    Deno.chmodSync(`${home.folder}/.rnix`, 0o755);
    const socket = await home.start();
    const { client, ...request } = home.request([
      { kind: "configured", name: "a" },
      { kind: "configured", name: "b" },
    ]);
    const asked: string[] = [];
    const codes: (string | undefined)[] = [];
    await new DaemonClient(socket).judgeServers(
      { ...request, client: { ...client, interactive: true } },
      {
        onVerdict: (_, { error }) => void codes.push(error?.code),
        confirmTrust(question) {
          asked.push(...question.files.map(({ path }) => path.replace(/^.*\//, "")));
          return Promise.resolve(false);
        },
      },
    );
    assert.deepEqual(asked, ["mcp.yaml"]);
    assert.deepEqual(codes, ["UNTRUSTED", "UNTRUSTED"]);
  });
});

Deno.test("when the client goes, what was started for it is ended", async () => {
  await atHome(async (home) => {
    const word = `${home.folder}/mark`;
    // Left to itself it would be waited for much longer than this test waits.
    home.put(
      "home/config/mcp.yaml",
      `servers:\n  t: { command: sh, args: ["-c", "sleep 3600", "${word}"], startup_timeout: 1h }\n`,
    );
    const socket = await home.start();
    const request = home.request([{ kind: "configured", name: "t" }]);
    const lines = socket.lines<JudgeLine>("judgeServers", request);
    const reading = lines.next();
    await until(async () => (await processesNaming(word)).length > 0 ? true : undefined);
    // The first line that comes is that the daemon is alive: the server is still silent.
    assert.equal((await reading).value?.line, "alive");
    await lines.return(undefined);
    await until(async () => (await processesNaming(word)).length === 0 ? true : undefined);
  });
});
