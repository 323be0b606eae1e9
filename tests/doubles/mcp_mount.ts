/** A mount by the real driver over servers in memory, on a virtual clock. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { Json } from "../../src/base/json.ts";
import { type McpDriverDeps, McpMountDriver } from "../../src/devices/mcp/mcp_driver.ts";
import { loadCompilers } from "../../src/devices/mcp/schema_check.ts";
import type { McpServerLaunch } from "../../src/mcp/launch.ts";
import type { CallOptions, Device, DeviceOutcome } from "../../src/vfs/device.ts";
import { launchOf } from "../servers/launch_server.ts";
import { MemoryServer, type Responder, text, tool } from "./mcp_connection.ts";
import { VirtualClock } from "./virtual_clock.ts";

await loadCompilers();

/** A server for a start; `undefined`: the start fails. */
export type Starting = MemoryServer | undefined | (() => MemoryServer | undefined);

const signal = new AbortController().signal;
/** What every call is made with. */
export const options: CallOptions = {
  signal,
  cancelGraceMs: 2_000,
  callId: "t1.0",
  idempotencyKey: "r/t1.0",
};
const rules = { effects: {}, risk: {}, sensitive: [] };

/** A driver whose n-th start gives the n-th server; `undefined` is a failed start, the last one stays. */
export function driverOf(
  servers: Starting[],
  more: Partial<McpDriverDeps> & { launch?: McpServerLaunch } = {},
) {
  const clock = new VirtualClock();
  const starts: number[] = [];
  const { launch, ...deps } = more;
  const driver = new McpMountDriver({
    ...deps,
    clock,
    clientInfo: { name: "rnix", version: "0" },
    connect: () => {
      const next = servers[Math.min(starts.length, servers.length - 1)];
      starts.push(clock.monotonic());
      const server = typeof next === "function" ? next() : next;
      return server === undefined
        ? Promise.reject(new SysError("DRIVER", "it does not start"))
        : Promise.resolve(server);
    },
  });
  const config = launch ?? launchOf("x", [], {
    startupTimeoutMs: 10_000,
    stderrLogPath: "/run/mounts/s.stderr.log",
  });
  const mount = (stop = signal) =>
    driver.mount({ server: "s", required: true, rules, outputTokensMax: undefined, config }, {
      pid: 3,
      signal: stop,
    });
  return { clock, starts, mount };
}

/** Mounts the first of the servers. */
export async function mounted(...servers: Starting[]) {
  const made = driverOf(servers);
  const mount = await made.clock.run(made.mount());
  return { ...made, mount };
}

/** A call of a tool. */
export const call = (
  mount: Device,
  name = "t",
  input: Json = {},
  more: Partial<CallOptions> = {},
) => mount.open(`tools/${name}`).write(input, { ...options, ...more });

/** The error of a call that was not sent. */
export function notSent(outcome: DeviceOutcome): SysError {
  assert.ok(outcome.kind === "not-sent", JSON.stringify(outcome));
  return outcome.error;
}

/** A server that answers every call so. */
export const answering = (words: string, tools = [tool("t")]) =>
  new MemoryServer({ "tools/call": () => text(words) }, tools);
const dying: Responder = (_, server) => {
  server.die("it exited with code 1");
  return undefined;
};
/** A server that dies of every call. */
export const dyingServer = () => new MemoryServer({ "tools/call": dying });
