/** The transport against real processes that misbehave. */
import assert from "node:assert/strict";
import { launchOf, ledgerServer, scripted } from "../../tests/servers/launch_server.ts";
import type { Scenario } from "../../tests/servers/scripted_scenario.ts";
import { patientClock } from "../../tests/doubles/patient_clock.ts";
import { type Clock, sleep, systemClock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { StdioLaunch } from "./launch.ts";
import { groupAlive, STDIN_GRACE_MS, TERM_GRACE_MS } from "./process_group.ts";
import { McpSession } from "./session.ts";
import { StderrLog } from "./stderr_log.ts";
import { StdioTransport } from "./stdio_transport.ts";

const TOOLS = [{ name: "t", inputSchema: { type: "object" } }];

/** Far more than anything here takes on a loaded machine. */
const LIMIT_MS = 60_000;

async function start(launch: StdioLaunch, clock: Clock = systemClock) {
  const log = new StderrLog();
  const warnings: string[] = [];
  const pids: number[] = [];
  const session = await McpSession.open({
    server: launch.server,
    startupTimeoutMs: launch.startupTimeoutMs,
    clock,
    clientInfo: { name: "rnix", version: "0" },
    connect: async () => {
      const transport = await StdioTransport.spawn(launch, {
        clock,
        log,
        onWarning: (message) => warnings.push(message),
      });
      pids.push(transport.pid);
      return transport;
    },
  });
  const call = (tool = "t", args = {}) =>
    session.callTool({
      tool,
      arguments: args,
      callId: "t1.0",
      idempotencyKey: "k",
      signal: new AbortController().signal,
      cancelGraceMs: 500,
      timeoutMs: launch.timeoutMs,
      maxTimeoutMs: launch.maxTimeoutMs,
    });
  return { session, log, warnings, pids, call };
}

async function failure(work: Promise<unknown>): Promise<SysError> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof SysError, String(thrown));
  return thrown;
}

async function works(scenario: Scenario): Promise<void> {
  const { session, call } = await start(scripted({ tools: TOOLS, ...scenario }));
  const outcomes = await Promise.all([call(), call(), call()]);
  assert.deepEqual(outcomes.map((outcome) => outcome.kind), ["result", "result", "result"]);
  await session.close();
}

Deno.test("[B49] messages in pieces of one byte, with CRLF, with ids as text", async () => {
  await works({ chunkBytes: 1 });
  await works({ crlf: true, chunkBytes: 7 });
  await works({ idsAsText: true });
});

Deno.test("[B43] a flood on stderr at the start and at the probe holds nothing up", async () => {
  const { session, log } = await start(scripted({
    start: { stderrBytes: 300_000 },
    on: { "server/discover": { stderrBytes: 1_000_000 } },
  }));
  assert.ok(log.lastLines().length > 0);
  await session.close();
});

Deno.test("lines that are no messages go to the log, with one warning", async () => {
  const { session, warnings, call } = await start(scripted({
    tools: TOOLS,
    start: { noise: "Welcome to the server" },
    on: { "tools/call": { noise: '{"not":"rpc"}' } },
  }));
  assert.equal((await call()).kind, "result");
  assert.equal((await call()).kind, "result");
  assert.equal(warnings.length, 1);
  await session.close();
});

Deno.test("[B47] a line without end closes the connection with the reason, memory stays bounded", async () => {
  const { session, call } = await start(scripted({
    tools: TOOLS,
    on: { "tools/call": { floodBytes: 64 * 1024 * 1024 } },
  }));
  const outcome = await call();
  assert.ok(outcome.kind === "unknown" && outcome.cause === "disconnected");
  assert.match(outcome.error.message, /over 16777216 bytes/);
  await session.close();
});

Deno.test("a message of 15 MiB comes through", async () => {
  const { session, call } = await start(ledgerServer("/dev/null"));
  const outcome = await call("big", { bytes: 15 * 1024 * 1024 });
  assert.ok(outcome.kind === "result");
  assert.ok(JSON.stringify(outcome.result).length > 15 * 1024 * 1024);
  await session.close();
});

Deno.test("a lost server fails what is pending within a second and says how it exited", async () => {
  const scenario = {
    tools: TOOLS,
    on: { "tools/call:t": { silent: true }, "tools/call:die": { delayMs: 50, exit: 7 } },
  };
  // No limit passes on this clock within the minute: what fails, fails of the loss.
  const { session, call } = await start(scripted(scenario), patientClock);
  const pending = call();
  const began = performance.now();
  await call("die");
  const outcome = await pending;
  assert.ok(performance.now() - began < LIMIT_MS);
  assert.ok(outcome.kind === "unknown" && outcome.cause === "disconnected");
  assert.match(outcome.error.message, /it exited with code 7/);
  await session.close();
});

Deno.test("a child that keeps the dead server's stdout open doesn't hide its death", async () => {
  const launch = scripted({ tools: TOOLS, on: { "tools/call": { exit: 1 } } });
  const command = [launch.command, ...launch.args].map((word) => `'${word}'`).join(" ");
  const { session, call } = await start(
    launchOf("sh", ["-c", `sleep 600 & exec ${command}`]),
    patientClock,
  );
  const began = performance.now();
  assert.equal((await call()).kind, "unknown");
  assert.ok(performance.now() - began < LIMIT_MS);
  await session.close();
});

Deno.test("a server that shuts its stdout and lives on is lost at once, however long rnix has been up", async () => {
  const launch = scripted({ tools: TOOLS, on: { "tools/call": { exit: 1 } } });
  const command = [launch.command, ...launch.args].map((word) => `'${word}'`).join(" ");
  const longUp = { ...patientClock, monotonic: () => patientClock.monotonic() + 24 * 3_600_000 };
  const { session, call } = await start(
    launchOf("sh", ["-c", `${command} | cat; exec sleep 600 >&-`]),
    longUp,
  );
  const outcome = await call();
  assert.ok(outcome.kind === "unknown" && outcome.cause === "disconnected", outcome.kind);
  assert.equal(await session.ended, "it closed its stdout");
  await session.close();
});

Deno.test("[B45] a closed stdin is an outcome, not a crash", async () => {
  const { session, call } = await start(scripted({
    tools: TOOLS,
    on: { "tools/call": { closeStdin: true, text: "closing" } },
  }));
  assert.equal((await call()).kind, "result");
  const outcome = await call();
  assert.ok(outcome.kind === "not-sent" && outcome.lost, JSON.stringify(outcome));
  assert.ok(!session.alive, "whoever learns of it finds the session ended");
  assert.equal(await session.ended, "it closed its stdin");
  await session.close();
});

Deno.test("calls that wait to be written as the server exits say how it went, and those that were not begun that they never left", async () => {
  const { session, call } = await start(
    scripted({ tools: TOOLS, on: { "tools/call:die": { exit: 7 } } }),
    patientClock,
  );
  const calls = [call("die"), ...[1, 2, 3].map(() => call("t", { text: "x".repeat(1 << 20) }))];
  const outcomes = await Promise.all(calls);
  const kinds = outcomes.map(({ kind }) => kind);
  assert.deepEqual(kinds, ["unknown", "unknown", "not-sent", "not-sent"]);
  for (const outcome of outcomes) {
    assert.ok(outcome.kind === "unknown" || outcome.kind === "not-sent");
    assert.match(outcome.error.message, /it exited with code 7/);
  }
  await session.close();
});

Deno.test("[C05] closing ends a wrapper, its server and a stubborn grandchild in the group", async () => {
  const launch = scripted({ ignoreTerm: true, ignoreEof: true });
  const command = [launch.command, ...launch.args].map((word) => `'${word}'`).join(" ");
  const { session, pids } = await start(launchOf("sh", ["-c", `exec 3<&0; ${command} <&3 & wait`]));
  const [pid = 0] = pids;
  assert.ok(await groupAlive(pid));
  const began = performance.now();
  await session.close();
  const tookMs = performance.now() - began;
  assert.ok(tookMs >= TERM_GRACE_MS && tookMs < LIMIT_MS, `${tookMs} ms`);
  assert.equal(await groupAlive(pid), false);
});

Deno.test("[C05] a server that goes by itself is gone at once", async () => {
  // A clock on which the pause between the end of stdin and SIGTERM is as long as a test.
  const after: Clock["after"] = (ms, fire) =>
    systemClock.after(ms === STDIN_GRACE_MS ? LIMIT_MS : ms, fire);
  const { session, pids } = await start(scripted({}), { ...systemClock, after });
  const began = performance.now();
  await Promise.all([session.close(), session.close()]);
  assert.ok(performance.now() - began < LIMIT_MS);
  assert.equal(await groupAlive(pids[0] ?? 0), false);
});

Deno.test("a server that dies of the probe is started again, one child at a time", async () => {
  const { session, pids } = await start(scripted({
    tools: TOOLS,
    on: { "server/discover": { exit: 1 } },
  }));
  assert.equal(session.era, "legacy");
  assert.equal(pids.length, 2);
  assert.equal(await groupAlive(pids[0] ?? 0), false);
  await session.close();
});

Deno.test("a server of 2026-07-28 over stdio", async () => {
  const { session, call } = await start(scripted({ era: "modern", tools: TOOLS }));
  assert.equal(session.era, "modern");
  assert.equal(session.protocolVersion, "2026-07-28");
  assert.equal((await call()).kind, "result");
  await session.close();
});

Deno.test("[D23] a failed start carries the last lines of stderr and the exit code", async () => {
  const error = await failure(start(scripted({
    start: { stderr: "Error: no token\n  set GITHUB_TOKEN", exit: 3 },
  })));
  assert.match(error.message, /exited with code 3/);
  assert.match(error.message, /Error: no token\n {4}set GITHUB_TOKEN/);
});

Deno.test("a program that is no MCP server is told to be none", async () => {
  const error = await failure(start(launchOf("echo", ["hello"])));
  assert.match(error.message, /it wrote "hello" to stdout, which is no MCP message/);
  assert.match(error.hint ?? "", /an MCP server on stdio waits for JSON-RPC/);
  const echo = await failure(start(launchOf("cat", [])));
  assert.equal(echo.code, "DRIVER");
});

Deno.test("[B03] the start limit ends the server and names itself", async () => {
  const error = await failure(start(launchOf("sleep", ["60"], { startupTimeoutMs: 300 })));
  assert.equal(error.code, "TIMEOUT");
  assert.match(error.message, /within 300ms \(startup_timeout\)/);
});

Deno.test("a folder that isn't there is named", async () => {
  const error = await failure(start(launchOf("cat", [], { cwd: "/no/such/folder" })));
  assert.equal(error.code, "DRIVER");
  assert.match(error.message, /"\/no\/such\/folder"/);
});

Deno.test("[C13] the child's environment is what the launch says, and the mark", async () => {
  const log = new StderrLog();
  const transport = await StdioTransport.spawn(
    launchOf("sh", ["-c", "env >&2"], { env: { PATH: "/usr/bin:/bin", A: "1" } }),
    {
      clock: systemClock,
      log,
      keeper: {
        mark: { RNIX_INSTANCE: "abc" },
        groupStarted: () => {},
        groupEnded: () => {},
      },
    },
  );
  await transport.start();
  const { promise, resolve } = Promise.withResolvers<void>();
  transport.onclose = resolve;
  await promise;
  await transport.drained();
  const names = log.lastLines().map((line) => line.split("=")[0]).sort();
  assert.deepEqual(names.filter((name) => name !== "_"), ["A", "PATH", "PWD", "RNIX_INSTANCE"]);
  await transport.close();
});

/** Until `over`: how often the event loop came round, at 5 ms a round. */
async function roundsUntil(over: Promise<unknown>): Promise<number> {
  let going = true;
  over.finally(() => going = false).catch(() => {});
  let rounds = 0;
  for (; going; rounds += 1) await sleep(systemClock, 5);
  return rounds;
}

Deno.test("[B43] a server that only floods its stdout fails with the reason, and the loop goes round all the while", async () => {
  const opening = failure(start(launchOf("yes", [], { startupTimeoutMs: 30_000 })));
  const rounds = await roundsUntil(opening);
  const error = await opening;
  assert.match(
    error.message,
    /it flooded its stdout: \d+ lines \(\d+ bytes\) without one MCP message/,
  );
  assert.match(error.message, /it wrote "y" to stdout, which is no MCP message/);
  // In turns of 8 ms; a loop held up by it would come round once or twice.
  assert.ok(rounds > 10, String(rounds));
});

Deno.test("[B43] floods on stderr and of messages nobody asked for hold no call up and are kept in bounds", async () => {
  const flood = [
    'while :; do printf "%1000s\\n" e; done >&2 &',
    `yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}' | head -n 100000`,
    `yes '{"jsonrpc":"2.0","id":77,"result":{}}' | head -n 100000`,
    "read -r line; read -r line; [[ $line =~ '\"id\":'([0-9]+) ]]",
    `printf '{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"f","version":"1"}}}\\n' "\${BASH_REMATCH[1]}"`,
    "read -r line",
    "kill %1",
  ].join("\n");
  const { session, log } = await start(
    launchOf("/bin/bash", ["-c", flood], { startupTimeoutMs: 60_000 }),
  );
  const lines = log.lastLines();
  assert.ok(lines.some((line) => /^ {500}$/.test(line)));
  await session.close();
});
