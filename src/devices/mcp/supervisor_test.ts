/** Mounts whose servers crash, hang, are busy or far away, over servers in memory and on a virtual clock. */
import assert from "node:assert/strict";
import { FaultyDisk } from "../../../tests/doubles/faulty_disk.ts";
import { MemoryServer, type Responder, text, tool } from "../../../tests/doubles/mcp_connection.ts";
import {
  answering,
  call,
  driverOf,
  mounted,
  notSent,
  options,
} from "../../../tests/doubles/mcp_mount.ts";
import { settle, type VirtualClock } from "../../../tests/doubles/virtual_clock.ts";
import type { MountHealth } from "../../base/mount_health.ts";
import type { MountFacts } from "../../kernel/mount.ts";
import type { HttpLaunch } from "../../mcp/launch.ts";
import { UNATTENDED_MAX } from "./mount_state.ts";

const silent: Responder = () => undefined;
const HOUR_MS = 3_600_000;

/** A server that answers handshake and listing and then exits. */
function shortLived(clock: () => VirtualClock): MemoryServer {
  return new MemoryServer({
    "tools/list": (_, server) => {
      clock().after(5, () => server.die("it exited with code 1"));
      return { result: { tools: [tool("t")] } };
    },
    "tools/call": silent,
  });
}

const count = (server: MemoryServer, method: string) =>
  server.methods.filter((each) => each === method).length;

Deno.test("a server that exits after every discovery, with a call after each, is started ten times in two minutes", async () => {
  const made = driverOf([() => shortLived(() => made.clock)]);
  const { clock, starts } = made;
  const mount = await clock.run(made.mount());
  while (clock.monotonic() < 120_000) {
    await clock.run(call(mount));
    await clock.advance(50);
  }
  const early = starts.filter((at) => at < 120_000);
  assert.ok(early.length < 12, String(early));
  assert.deepEqual(early.map((at) => Math.round(at / 1_000)), [
    ...[0, 0, 1, 3, 7, 15, 31, 56, 81, 106],
  ]);
  await clock.run(mount.close());
});

Deno.test("[B09] the first use after an outage succeeds, however long it was and whether or not there were uses during it", async () => {
  for (const outageMs of [60_000, 10 * 60_000, 5 * HOUR_MS]) {
    for (const useEveryMs of [undefined, 500, 7_000, 59_000]) {
      await outage(outageMs, useEveryMs);
    }
  }
});

/** Loses the server, uses it while it is down, and once when it is up again. */
async function outage(outageMs: number, useEveryMs: number | undefined): Promise<void> {
  const first = answering("one");
  const made = driverOf([
    first,
    () => made.clock.monotonic() < outageMs ? undefined : answering("up"),
  ]);
  const { clock } = made;
  const mount = await clock.run(made.mount());
  first.die("it refused the connection");
  const rounds = useEveryMs === undefined ? 0 : Math.min(outageMs / useEveryMs, 100);
  for (let round = 0; round < rounds && clock.monotonic() < outageMs - 30_000; round += 1) {
    assert.match(notSent(await clock.run(call(mount))).message, /could not be started again/);
    await clock.advance(useEveryMs ?? 0);
  }
  await clock.advance(Math.max(0, outageMs + 1 - clock.monotonic()));
  const began = clock.monotonic();
  assert.equal((await clock.run(call(mount))).kind, "answer");
  assert.ok(clock.monotonic() - began <= 25_000);
  await clock.run(mount.close());
}

Deno.test("a crashed server comes back by itself, and its new tools are told", async () => {
  const first = answering("one");
  const { clock, mount, starts } = await mounted(first, answering("two", [tool("new")]));
  const told: MountFacts[] = [];
  mount.onChange = (facts) => told.push(facts);
  first.die("it was ended by SIGKILL");
  for (let turn = 0; turn < 20; turn += 1) await settle();
  assert.equal(starts.length, 2);
  assert.deepEqual(told.map((facts) => facts.tools.map((each) => each.name)), [["new"]]);
  assert.equal(mount.health.state, "connected");
  await clock.run(mount.close());
});

Deno.test("an idle mount of a server that is gone stops trying, keeps no timer and starts on use", async () => {
  const first = answering("one");
  const gone = Array.from({ length: UNATTENDED_MAX }, () => undefined);
  const { clock, mount, starts } = await mounted(first, ...gone, answering("back"));
  first.die("it exited with code 0");
  await clock.advance(HOUR_MS);
  assert.equal(starts.length, 1 + UNATTENDED_MAX);
  assert.equal(clock.pending, 0);
  assert.equal(mount.health.state, "waiting");
  const began = clock.monotonic();
  assert.equal((await clock.run(call(mount))).kind, "answer");
  assert.equal(clock.monotonic(), began, "at once");
  await clock.run(mount.close());
});

Deno.test("an idle server that exits every five minutes isn't started for ever", async () => {
  const made = driverOf([() => {
    const server = answering("x");
    made.clock.after(5 * 60_000, () => server.die("it exited with code 0"));
    return server;
  }]);
  const mount = await made.clock.run(made.mount());
  await made.clock.advance(24 * HOUR_MS);
  assert.equal(made.starts.length, 1 + UNATTENDED_MAX);
  assert.equal((await made.clock.run(call(mount))).kind, "answer");
  await made.clock.run(mount.close());
});

Deno.test("[B73] calls during a restart wait for it", async () => {
  const first = answering("one");
  const made = driverOf([
    first,
    () => {
      const slow = answering("two");
      slow.busyUntil(new Promise<void>((resolve) => made.clock.after(8_000, resolve)));
      return slow;
    },
  ]);
  const { clock } = made;
  const mount = await clock.run(made.mount());
  first.die("it exited with code 0");
  await clock.advance(1_000);
  assert.equal(mount.health.state, "reconnecting");
  const outcomes = await clock.run(Promise.all([call(mount), call(mount)]));
  assert.deepEqual(outcomes.map((outcome) => outcome.kind), ["answer", "answer"]);
  assert.equal(made.starts.length, 2);
  await clock.run(mount.close());
});

Deno.test("[B11] starts of a server that doesn't come up are made one at a time, whoever waits", async () => {
  let open = 0;
  const stuck = () => {
    assert.equal(open, 0, "one start at a time");
    open += 1;
    const server = new MemoryServer({ initialize: silent });
    server.onEnd = () => open -= 1;
    return server;
  };
  const first = answering("one");
  const { clock, mount } = await mounted(first, stuck);
  first.die("it exited with code 0");
  const calls = Array.from({ length: 20 }, () => call(mount));
  await clock.advance(2_000);
  calls.push(...Array.from({ length: 20 }, () => call(mount)));
  const outcomes = await clock.run(Promise.all(calls));
  assert.ok(outcomes.every((outcome) => outcome.kind === "not-sent"));
  await clock.run(mount.close());
  assert.equal(open, 0);
});

Deno.test("[B17] closing refuses all who wait at once, and nothing starts afterwards", async () => {
  const first = answering("one");
  const { clock, mount, starts } = await mounted(first, undefined);
  first.die("it exited with code 0");
  await clock.advance(40_000);
  const started = starts.length;
  const calls = [call(mount), call(mount)];
  await settle();
  assert.equal(mount.health.state, "waiting");
  const began = clock.monotonic();
  await mount.close();
  for (const outcome of await Promise.all(calls)) {
    assert.match(notSent(outcome).message, /is unmounted/);
  }
  await clock.advance(HOUR_MS);
  assert.deepEqual([starts.length, clock.pending, began], [started, 0, 40_000]);
  assert.equal(mount.health.state, "closed");
});

Deno.test("a cancelled call waits no longer, and is not sent to the server that comes up", async () => {
  const first = answering("one");
  const back = answering("two");
  const { clock, mount } = await mounted(first, undefined, undefined, undefined, undefined, back);
  first.die("it exited with code 0");
  await clock.advance(8_000);
  const stop = new AbortController();
  const cancelled = call(mount, "t", {}, { signal: stop.signal });
  await settle();
  stop.abort();
  const began = clock.monotonic();
  assert.match(notSent(await cancelled).message, /cancelled before it was sent/);
  assert.equal(clock.monotonic(), began);
  await clock.advance(60_000);
  assert.equal(mount.health.state, "connected");
  assert.equal(count(back, "tools/call"), 0);
  await clock.run(mount.close());
});

Deno.test("[B15] a server that drops ping, or refuses it, stays mounted", async () => {
  for (const ping of [silent, () => ({ error: { code: -32601, message: "Method not found" } })]) {
    const server = new MemoryServer({ ping, "tools/call": () => text("ok") });
    const { clock, mount, starts } = await mounted(server);
    await clock.advance(HOUR_MS);
    assert.deepEqual([starts.length, mount.health.state], [1, "connected"]);
    assert.equal(count(server, "ping"), ping === silent ? 3 : 120, "no ping is remembered");
    assert.ok(count(server, "tools/list") > (ping === silent ? 60 : 0));
    assert.equal((await clock.run(call(mount))).kind, "answer");
    await clock.run(mount.close());
    assert.equal(clock.pending, 0);
  }
});

Deno.test("traffic is life: a server that talks isn't asked", async () => {
  const server = answering("x");
  const { clock, mount } = await mounted(server);
  for (let round = 0; round < 100; round += 1) {
    server.deliver({ jsonrpc: "2.0", method: "notifications/message", params: {} });
    await clock.advance(20_000);
  }
  assert.equal(count(server, "ping"), 0);
  await clock.run(mount.close());
});

Deno.test("[B17] a server that is busy for a minute in a call is not asked and not ended, though the call gave up", async () => {
  const made = driverOf([
    new MemoryServer({
      "tools/call": (_, server) => {
        server.busyUntil(new Promise((resolve) => made.clock.after(60_000, () => resolve(0))));
        return text("done");
      },
    }),
  ], { ping: { intervalMs: 10_000, timeoutMs: 2_000, misses: 3 } });
  const { clock, starts } = made;
  const mount = await clock.run(made.mount());
  const outcome = await clock.run(call(mount));
  assert.ok(outcome.kind === "unknown" && outcome.cause === "timeout");
  await clock.advance(120_000);
  assert.deepEqual([starts.length, mount.health.state], [1, "connected"]);
  assert.equal((await outcome.late)?.kind, "answer");
  await clock.run(mount.close());
});

Deno.test("a server that hangs is found out and started anew; the log has a line per change, not per question", async () => {
  const storage = new FaultyDisk();
  const warnings: string[] = [];
  const hung = answering("one");
  const made = driverOf([hung, answering("two")], {
    storage,
    onWarning: (_, message) => warnings.push(message),
  });
  const { clock, starts } = made;
  const mount = await clock.run(made.mount());
  hung.busyUntil(new Promise(() => {}));
  await clock.advance(10 * 60_000);
  assert.equal(starts.length, 2);
  assert.deepEqual(hung.methods.slice(-4), ["ping", "ping", "ping", "tools/list"]);
  assert.equal(hung.ended, "rnix closed it");
  assert.deepEqual(warnings, [
    'Server "s" was lost: it gave no sign of life for 1m40s',
    'Server "s" is connected again',
  ]);
  await clock.run(mount.close());
  const log = new TextDecoder().decode(await storage.read("/run/mounts/s.stderr.log"));
  assert.deepEqual(log.split("\n"), [
    "[rnix] server was lost: it gave no sign of life for 1m40s",
    "[rnix] server is connected again",
    "",
  ]);
});

Deno.test("a modern server is asked with server/discover", async () => {
  const server = new MemoryServer({
    "server/discover": () => ({
      result: {
        resultType: "complete",
        supportedVersions: ["2026-07-28"],
        capabilities: { tools: {} },
        ttlMs: 0,
        cacheScope: "private",
      },
    }),
  });
  const { clock, mount } = await mounted(server);
  assert.equal(mount.facts.era, "modern");
  await clock.advance(10 * 60_000);
  assert.deepEqual([count(server, "ping"), count(server, "server/discover")], [0, 1 + 20]);
  await clock.run(mount.close());
});

Deno.test("[B71] after a sleep the next call asks first: a live server gets it, a dead one doesn't", async () => {
  const alive = answering("one");
  const awake = await mounted(alive);
  awake.clock.jump(600_000);
  assert.equal((await awake.clock.run(call(awake.mount))).kind, "answer");
  assert.deepEqual(alive.methods.slice(-2), ["tools/list", "tools/call"]);
  await awake.clock.run(call(awake.mount));
  assert.deepEqual(alive.methods.slice(-2), ["tools/call", "tools/call"], "asked once");
  await awake.clock.run(awake.mount.close());

  const stopped = answering("one");
  const asleep = await mounted(stopped, answering("two"));
  stopped.busyUntil(new Promise(() => {}));
  asleep.clock.jump(600_000);
  const outcome = await asleep.clock.run(call(asleep.mount));
  assert.ok(outcome.kind === "answer" && JSON.stringify(outcome.content).includes("two"));
  assert.equal(count(stopped, "tools/call"), 0);
  await asleep.clock.run(asleep.mount.close());
});

Deno.test("pauses of a server at an address have a jitter, those of a child have none", async () => {
  const url: HttpLaunch = {
    server: "s",
    transport: "http",
    url: "http://127.0.0.1:9/",
    headers: {},
    env: {},
    startupTimeoutMs: 10_000,
    timeoutMs: 10_000,
    maxTimeoutMs: 20_000,
  };
  for (const launch of [url, undefined]) {
    const first = answering("one");
    const { clock, starts, mount } = driverOf([first, undefined], {
      ...(launch === undefined ? {} : { launch }),
      random: (bytes) => bytes.fill(255),
    });
    const made = await clock.run(mount());
    first.die("it refused the connection");
    await clock.advance(HOUR_MS);
    const gaps = starts.slice(2).map((at, index) => at - (starts[index + 1] ?? 0));
    const factor = launch === undefined ? 1 : 1.1;
    const row = [1, 2, 4, 8, 16, 32, 60].map((seconds) => Math.round(seconds * 1_000 * factor));
    assert.deepEqual(gaps, row);
    await clock.run(made.close());
  }
});

Deno.test("health says what the connection does, since when and why", async () => {
  const first = answering("one");
  const made = driverOf([first, undefined, answering("two")]);
  const { clock } = made;
  const mount = await clock.run(made.mount());
  const health = (): MountHealth => mount.health;
  const sinceMs = clock.now();
  assert.deepEqual(health(), {
    state: "connected",
    sinceMs,
    attempts: 0,
    lastError: undefined,
  });
  await clock.advance(10_000);
  first.die("it exited with code 3");
  await clock.advance(500);
  assert.deepEqual(health(), {
    state: "waiting",
    sinceMs: sinceMs + 10_000,
    attempts: 1,
    lastError: "it does not start",
  });
  await clock.advance(1_000);
  assert.deepEqual([health().state, health().attempts], ["connected", 2]);
  await clock.advance(60_000);
  assert.equal(health().attempts, 0, "healthy");
  await clock.run(mount.close());
});

Deno.test("[A07] an error of a tool is an answer: nothing is asked, started or sent again", async () => {
  const server = new MemoryServer({
    "tools/call": () => ({ error: { code: -32603, message: "fs: no such file" } }),
  });
  const { clock, mount, starts } = await mounted(server);
  const outcome = await clock.run(mount.open("tools/t").write({}, options));
  assert.ok(outcome.kind === "answer" && outcome.isError);
  assert.deepEqual([starts.length, count(server, "tools/call")], [1, 1]);
  await clock.run(mount.close());
});

Deno.test("[B71] when rnix itself was stopped, too, the next call asks first", async () => {
  const server = answering("one");
  const { clock, mount } = await mounted(server);
  await clock.run(call(mount));
  clock.stall(600_000);
  assert.equal((await clock.run(call(mount))).kind, "answer");
  assert.deepEqual(server.methods.slice(-2), ["tools/list", "tools/call"]);
  await clock.run(mount.close());
});

Deno.test("[B11] an outage is told once, however many starts it takes to end", async () => {
  const warnings: string[] = [];
  const first = answering("one");
  const made = driverOf([first, undefined, undefined, undefined, answering("two")], {
    onWarning: (_, message) => warnings.push(message),
  });
  const mount = await made.clock.run(made.mount());
  first.die("it exited with code 1");
  await made.clock.advance(HOUR_MS);
  assert.equal(made.starts.length, 5);
  assert.deepEqual(warnings, [
    'Server "s" was lost: it exited with code 1',
    'Server "s" could not be started again: it does not start',
    'Server "s" is connected again',
  ]);
  await made.clock.run(mount.close());
});

Deno.test("closing waits for what a start has begun", async () => {
  const first = answering("one");
  const stubborn = new MemoryServer({ initialize: silent });
  const { clock, mount } = await mounted(first, stubborn);
  first.die("it exited with code 0");
  await clock.advance(1_000);
  const end = stubborn.close.bind(stubborn);
  stubborn.close = () => new Promise<void>((resolve) => clock.after(5_000, resolve)).then(end);
  await clock.run(mount.close());
  assert.equal(stubborn.ended, "rnix closed it");
});

Deno.test("a person must act before a server is started again that refuses who asks", async () => {
  const first = answering("one");
  const { clock, mount, starts } = await mounted(first, answering("two"));
  first.endedCode = "UNAUTHENTICATED";
  first.die("it answered 401");
  await clock.advance(HOUR_MS);
  assert.equal(starts.length, 1);
  assert.equal((await clock.run(call(mount))).kind, "answer");
  await clock.run(mount.close());
});

Deno.test("[B73] a call that joins a start which fails waits for the next one", async () => {
  const first = answering("one");
  const made = driverOf([
    first,
    () => {
      const failing = new MemoryServer({ initialize: silent });
      made.clock.after(5_000, () => failing.die("it exited with code 1"));
      return failing;
    },
    answering("two"),
  ]);
  const mount = await made.clock.run(made.mount());
  first.die("it exited with code 0");
  await made.clock.advance(1_000);
  assert.equal(mount.health.state, "reconnecting");
  assert.equal((await made.clock.run(call(mount))).kind, "answer");
  await made.clock.run(mount.close());
});

Deno.test("[B13] a server that ends its connection when idle is no failure: its tools stay listed, the next call is answered", async () => {
  const first = answering("one");
  const gone = Array.from({ length: UNATTENDED_MAX }, () => undefined);
  const { clock, mount } = await mounted(first, ...gone, answering("two"));
  const listed = JSON.stringify(mount.facts.tools);
  await clock.advance(5 * 60_000);
  first.die("it closed its stdout");
  await clock.advance(HOUR_MS);
  assert.equal(JSON.stringify(mount.facts.tools), listed);
  assert.equal(new TextDecoder().decode(await mount.open("tools").read()), listed);
  assert.equal((await clock.run(call(mount))).kind, "answer");
  await clock.run(mount.close());
});
