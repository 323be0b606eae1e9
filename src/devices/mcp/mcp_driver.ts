/**
 * Mounts MCP servers.
 *
 * One driver serves one run (its redaction and its storage). A server that another process of its tree has mounted is joined, not started again: the drivers of a tree have one pool. The MCP SDK and the schema validator are loaded when first needed.
 */
import type { Clock } from "../../base/clock.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import { type RandomSource, systemRandom } from "../../base/ids.ts";
import type { Storage } from "../../base/storage.ts";
import type { Mount, MountDriver, MountSpec } from "../../kernel/mount.ts";
import { connectServer } from "../../mcp/connect_server.ts";
import type { ServerConnection } from "../../mcp/connection.ts";
import { type EraCache, loadClient } from "../../mcp/handshake.ts";
import type { McpServerLaunch, ProcessKeeper } from "../../mcp/launch.ts";
import { McpSession } from "../../mcp/session.ts";
import { StderrLog } from "../../mcp/stderr_log.ts";
import { McpMount } from "./mcp_mount.ts";
import type { PingRules } from "./mount_state.ts";
import { loadCompilers } from "./schema_check.ts";
import { ServerPool } from "./server_pool.ts";
import type { SharedServer } from "./shared_server.ts";

export interface McpDriverDeps {
  clock: Clock;
  /** Resolves with the guard once it is up; no server is started before. The guard of `base/guard.ts` fits. Left out only in tests that see to their children themselves. */
  keeper?: () => Promise<ProcessKeeper>;
  /** For the stderr files; without it only the last lines are kept. */
  storage?: Storage;
  /** Takes secrets out of a line of stderr; must not harm text it has seen before. */
  redact?: (text: string) => string;
  /** Told to servers as the client. */
  clientInfo: { name: string; version: string };
  /** The servers of the tree; left out, the driver's own. */
  pool?: ServerPool;
  /** Verdicts on eras, where they are not the pool's. */
  eras?: EraCache;
  /** When and how silent servers are asked whether they live. */
  ping?: PingRules;
  /** For the jitter of pauses; the system's by default. */
  random?: RandomSource;
  /** Peculiarities worth a notice, as sentences. */
  onWarning?: (server: string, message: string) => void;
  /** How a server is reached, in place of `connectServer`. */
  connect?: (launch: McpServerLaunch, log: StderrLog) => Promise<ServerConnection>;
}

export class McpMountDriver implements MountDriver<McpServerLaunch> {
  readonly #deps: McpDriverDeps;
  readonly #pool: ServerPool;

  constructor(deps: McpDriverDeps) {
    this.#deps = deps;
    this.#pool = deps.pool ?? new ServerPool();
  }

  async mount(
    spec: MountSpec<McpServerLaunch>,
    options: { pid: number; signal: AbortSignal },
  ): Promise<Mount> {
    const launch = spec.config;
    loadAhead();
    const mount = new McpMount({
      launch,
      server: this.#take(launch),
      redact: this.#deps.redact,
      onWarning: (message) => this.#deps.onWarning?.(launch.server, message),
    });
    try {
      await mount.begin(options.signal);
      return mount;
    } catch (thrown) {
      throw toSysError(thrown, {
        syscall: "Mount",
        device: `/mnt/mcp/${options.pid}-${spec.server}`,
        pid: options.pid,
      });
    }
  }

  #take(launch: McpServerLaunch): SharedServer {
    const { clock, ping, storage } = this.#deps;
    const server: SharedServer = this.#pool.take(launch, {
      clock,
      ping,
      ...(launch.transport === "stdio" ? {} : { jitter: () => this.#jitter() }),
      log: (redact) => new StderrLog({ storage, redact }),
      start: (launch, log, signal) =>
        this.#start(launch, signal, () => this.#connect(launch, log, server)),
    });
    return server;
  }

  async #start(
    launch: McpServerLaunch,
    signal: AbortSignal,
    connect: () => Promise<ServerConnection>,
  ): Promise<McpSession> {
    if (signal.aborted) {
      throw new SysError("DRIVER", `The start of server "${launch.server}" was given up`);
    }
    return await McpSession.open({
      server: launch.server,
      startupTimeoutMs: launch.startupTimeoutMs,
      clock: this.#deps.clock,
      connect,
      signal,
      clientInfo: this.#deps.clientInfo,
      eras: this.#deps.eras ?? this.#pool.eras,
      eraKey: eraKeyOf(launch),
    });
  }

  async #connect(
    launch: McpServerLaunch,
    log: StderrLog,
    server: SharedServer,
  ): Promise<ServerConnection> {
    if (this.#deps.connect !== undefined) return await this.#deps.connect(launch, log);
    return await connectServer(launch, {
      clock: this.#deps.clock,
      keeper: this.#deps.keeper,
      log,
      transports: this.#pool.transports,
      onWarning: (message) => server.warn(message),
    });
  }

  /** Servers at an address that went down at the same moment are not asked all at once. */
  #jitter(): number {
    const [high = 0, low = 0] = (this.#deps.random ?? systemRandom)(new Uint8Array(2));
    return (high * 256 + low) / 65_536;
  }
}

/** What a verdict on a server's era holds for. */
function eraKeyOf(launch: McpServerLaunch): string {
  return JSON.stringify(
    launch.transport === "stdio"
      ? [launch.command, launch.args, launch.cwd]
      : [launch.transport, launch.url],
  );
}

/** The libraries load while the servers start, instead of after it. */
function loadAhead(): void {
  loadClient().catch(() => {});
  loadCompilers().catch(() => {});
}
