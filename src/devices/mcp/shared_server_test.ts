/** Processes of one tree on one server, on a virtual clock: started once, each with limits and names of its own, closed after the last. */
import assert from "node:assert/strict";
import { answering, call, notSent } from "../../../tests/doubles/mcp_mount.ts";
import { FaultyDisk } from "../../../tests/doubles/faulty_disk.ts";
import { MemoryServer, text, tool } from "../../../tests/doubles/mcp_connection.ts";
import { settle, VirtualClock } from "../../../tests/doubles/virtual_clock.ts";
import { launchOf } from "../../../tests/servers/launch_server.ts";
import { sleep } from "../../base/clock.ts";
import { SysError } from "../../base/errors.ts";
import type { Mount } from "../../kernel/mount.ts";
import type { McpServerLaunch } from "../../mcp/launch.ts";
import type { StderrLog } from "../../mcp/stderr_log.ts";
import { McpMountDriver } from "./mcp_driver.ts";
import { ServerPool } from "./server_pool.ts";

const rules = { effects: {}, risk: {}, sensitive: [] };
const never = new AbortController().signal;
const encoder = new TextEncoder();

/** A tree whose n-th start gives the n-th server after `startMs`, the last one stays; `undefined`: a failed start. */
class TreeStage {
  readonly clock = new VirtualClock();
  readonly disk = new FaultyDisk();
  readonly pool = new ServerPool();
  readonly starts: McpServerLaunch[] = [];
  readonly warnings: string[] = [];
  log: StderrLog | undefined;
  #pid = 0;
  readonly #servers: (MemoryServer | undefined)[];
  readonly #startMs: number;

  constructor(servers: (MemoryServer | undefined)[], startMs = 0) {
    this.#servers = servers;
    this.#startMs = startMs;
  }

  launch(more: Partial<McpServerLaunch> = {}, process = "a"): McpServerLaunch {
    const stderrLogPath = `/runs/${process}/mounts/s.stderr.log`;
    const launch = launchOf("x", [], { startupTimeoutMs: 10_000, stderrLogPath });
    return { ...launch, server: "s", ...more } as McpServerLaunch;
  }

  /** Mounts it for a process of its own. */
  mount(launch: McpServerLaunch = this.launch(), signal = never, secret = ""): Promise<Mount> {
    const pid = ++this.#pid;
    const driver = new McpMountDriver({
      clock: this.clock,
      storage: this.disk,
      pool: this.pool,
      clientInfo: { name: "rnix", version: "0" },
      redact: (text) => secret === "" ? text : text.replaceAll(secret, "***"),
      onWarning: (_, message) => this.warnings.push(`${pid}: ${message}`),
      connect: async (started, log) => {
        const server = this.#servers[Math.min(this.starts.length, this.#servers.length - 1)];
        this.starts.push(started);
        this.log = log;
        await log.write(encoder.encode(`start ${this.starts.length}\n`));
        await sleep(this.clock, this.#startMs);
        if (server === undefined) throw new SysError("DRIVER", `Server "s" does not start`);
        return server;
      },
    });
    const { server } = launch;
    const config = launch;
    return driver.mount({ server, required: true, rules, outputTokensMax: undefined, config }, {
      pid,
      signal,
    });
  }

  async logOf(process: string): Promise<string> {
    return new TextDecoder().decode(
      await this.disk.read(`/runs/${process}/mounts/s.stderr.log`),
    );
  }
}

Deno.test("[R10] processes that mount the same server at once start it once, and it ends after the last", async () => {
  const server = answering("hi");
  const stage = new TreeStage([server], 1_000);
  const [one, other] = await stage.clock.run(Promise.all([stage.mount(), stage.mount()]));
  assert.ok(one !== undefined && other !== undefined);
  assert.equal(stage.starts.length, 1);
  await one.close();
  await one.close();
  assert.equal(server.ended, undefined);
  assert.equal((await stage.clock.run(call(other))).kind, "answer");
  assert.match(notSent(await call(one)).message, /Server "s" is unmounted/);
  assert.equal(one.health.state, "closed");
  assert.equal(other.health.state, "connected");
  await stage.clock.run(other.close());
  assert.notEqual(server.ended, undefined);
  assert.equal(stage.pool.size, 0);
});

Deno.test("a failed start fails all who wait for it, and the next to come starts it anew", async () => {
  const stage = new TreeStage([undefined, answering("hi")], 1_000);
  const both = await stage.clock.run(Promise.allSettled([
    stage.mount(),
    stage.mount(stage.launch({ server: "other" })),
  ]));
  const reasons = both.map((end) => end.status === "rejected" ? String(end.reason) : "mounted");
  assert.match(reasons[0] ?? "", /Server "s" .*does not start/);
  assert.match(reasons[1] ?? "", /Server "other" .*does not start/);
  assert.equal(stage.starts.length, 1);
  assert.equal(stage.pool.size, 0);
  await stage.clock.run(stage.mount());
  assert.equal(stage.starts.length, 2);
});

Deno.test("a mount that is given up doesn't take the start from another that waits", async () => {
  const server = answering("hi");
  const stage = new TreeStage([server], 1_000);
  const stop = new AbortController();
  const first = stage.mount(stage.launch({}, "a"), stop.signal);
  const second = stage.mount(stage.launch({}, "b"));
  await stage.clock.advance(500);
  stop.abort();
  await assert.rejects(stage.clock.run(first));
  assert.equal(stage.pool.size, 1);
  const mount = await stage.clock.run(second);
  assert.equal((await stage.clock.run(call(mount))).kind, "answer");
  await stage.log?.write(encoder.encode("later\n"));
  assert.equal(await stage.logOf("b"), "start 1\nlater\n");
  assert.equal(stage.starts.length, 1);
  await stage.clock.run(mount.close());
});

Deno.test("a start that nobody waits for any more is given up, and nothing is left", async () => {
  const server = answering("hi");
  const stage = new TreeStage([server], 1_000);
  const stop = new AbortController();
  const both = [1, 2].map(() => stage.mount(stage.launch(), stop.signal));
  await stage.clock.advance(500);
  stop.abort();
  const ends = await stage.clock.run(Promise.allSettled(both));
  assert.deepEqual(ends.map(({ status }) => status), ["rejected", "rejected"]);
  await stage.clock.advance(5_000);
  assert.notEqual(server.ended, undefined);
  assert.equal(stage.pool.size, 0);
});

Deno.test("each waits for the start as long as its own startup_timeout", async () => {
  const stage = new TreeStage([answering("hi")], 4_000);
  const patient = stage.mount();
  const hasty = stage.mount(stage.launch({ startupTimeoutMs: 2_000 }));
  await assert.rejects(stage.clock.run(hasty), { code: "TIMEOUT", message: /within 2s/ });
  const mount = await stage.clock.run(patient);
  assert.equal(stage.starts.length, 1);
  await stage.clock.run(mount.close());
});

Deno.test("what differs in what it is started with is another server; limits, names and rules aren't", async () => {
  const stage = new TreeStage([answering("hi")]);
  const base = { transport: "stdio" as const };
  const mounts = await stage.clock.run(Promise.all([
    stage.mount(),
    stage.mount(stage.launch({ server: "other", timeoutMs: 1, maxTimeoutMs: 2 })),
    stage.mount(stage.launch({ ...base, args: ["--more"] })),
    stage.mount(stage.launch({ ...base, env: { A: "b" } })),
    stage.mount(stage.launch({ ...base, cwd: "/elsewhere" })),
    stage.mount(stage.launch({ share: false })),
    stage.mount(stage.launch({ share: false })),
  ]));
  assert.equal(stage.starts.length, 6);
  assert.equal(stage.pool.size, 4);
  assert.deepEqual(mounts[1]?.facts.tools.map(({ modelName }) => modelName), ["mcp__other__t"]);
  await stage.clock.run(Promise.all(mounts.map((mount) => mount.close())));
  assert.equal(stage.pool.size, 0);
});

Deno.test("a call's limit is that of the process it comes from", async () => {
  const silent = new MemoryServer({ "tools/call": () => undefined });
  const stage = new TreeStage([silent]);
  const [short, long] = await stage.clock.run(Promise.all([
    stage.mount(stage.launch({ timeoutMs: 1_000 })),
    stage.mount(stage.launch({ timeoutMs: 5_000 })),
  ]));
  assert.ok(short !== undefined && long !== undefined);
  const startMs = stage.clock.monotonic();
  const ends: number[] = [];
  await stage.clock.run(Promise.all([short, long].map(async (mount) => {
    const outcome = await call(mount);
    assert.equal(outcome.kind === "unknown" && outcome.cause, "timeout");
    ends.push(Math.round((stage.clock.monotonic() - startMs) / 1_000));
  })));
  assert.deepEqual(ends, [1, 5]);
  await stage.clock.run(Promise.all([short.close(), long.close()]));
});

Deno.test("changed tools and a server that comes back reach every holder", async () => {
  let tools = [tool("t")];
  const make = () =>
    new MemoryServer({
      "tools/list": () => ({ result: { tools } }),
      "tools/call": () => text("hi"),
    });
  const first = make();
  const stage = new TreeStage([first, make()]);
  const mounts = await stage.clock.run(Promise.all([stage.mount(), stage.mount(), stage.mount()]));
  const told: number[] = [];
  mounts.forEach((mount, index) => mount.onChange = () => told.push(index));
  tools = [tool("t"), tool("u")];
  first.deliver({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  await settle();
  assert.deepEqual(told, [0, 1, 2]);
  await mounts[2]?.close();
  tools = [tool("u")];
  first.die("it exited with code 1");
  await stage.clock.advance(5_000);
  assert.deepEqual(told, [0, 1, 2, 0, 1]);
  assert.equal(stage.starts.length, 2);
  assert.deepEqual(stage.warnings, [
    '1: Server "s" was lost: it exited with code 1',
    '2: Server "s" was lost: it exited with code 1',
    '1: Server "s" is connected again',
    '2: Server "s" is connected again',
  ]);
  const late = await stage.clock.run(stage.mount());
  assert.deepEqual(late.facts.tools.map(({ name }) => name), ["u"]);
  await stage.clock.run(Promise.all([...mounts, late].map((mount) => mount.close())));
});

Deno.test("a server is started again only when the one before is gone", async () => {
  const first = answering("hi");
  const stage = new TreeStage([first, answering("hi")]);
  const one = await stage.clock.run(stage.mount());
  const closed = Promise.withResolvers<void>();
  const close = first.close.bind(first);
  first.close = async () => (await closed.promise, await close());
  const closing = one.close();
  const next = stage.mount();
  await stage.clock.advance(1_000);
  assert.equal(stage.starts.length, 1);
  closed.resolve();
  await stage.clock.run(closing);
  const mount = await stage.clock.run(next);
  assert.equal(stage.starts.length, 2);
  await stage.clock.run(mount.close());
});

Deno.test("[C09] every holder's log is the server's, without the secrets of any, whoever goes first", async () => {
  const stage = new TreeStage([answering("hi")]);
  const env = { KEY: "s3cr3t-one", OTHER: "s3cr3t-two" };
  const launch = (process: string) => stage.launch({ transport: "stdio", env }, process);
  const one = await stage.clock.run(stage.mount(launch("a"), never, "s3cr3t-one"));
  const two = await stage.clock.run(stage.mount(launch("b"), never, "s3cr3t-two"));
  assert.equal(stage.starts.length, 1);
  await stage.log?.write(encoder.encode("keys s3cr3t-one s3cr3t-two\n"));
  assert.equal(await stage.logOf("a"), "start 1\nkeys *** ***\n");
  await one.close();
  await stage.disk.remove("/runs/a", { recursive: true });
  await stage.log?.write(encoder.encode("more\n"));
  assert.equal(await stage.logOf("b"), "start 1\nkeys *** ***\nmore\n");
  await stage.clock.run(two.close());
  assert.equal(await stage.disk.stat("/runs/a"), undefined);
});
