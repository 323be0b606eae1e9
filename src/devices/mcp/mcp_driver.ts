/**
 * Mounts MCP servers.
 *
 * One driver serves one run (its redaction and its storage); what is known of servers' eras can be shared between drivers. The MCP SDK and the schema validator are loaded when first needed.
 */
import type { Clock } from "../../base/clock.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import { type RandomSource, systemRandom } from "../../base/ids.ts";
import type { Storage } from "../../base/storage.ts";
import type { Mount, MountDriver, MountSpec } from "../../kernel/mount.ts";
import { connectServer } from "../../mcp/connect_server.ts";
import type { ServerConnection } from "../../mcp/connection.ts";
import { type EraCache, loadClient } from "../../mcp/handshake.ts";
import type { TransportMemory } from "../../mcp/http_connect.ts";
import type { McpServerLaunch, ProcessKeeper } from "../../mcp/launch.ts";
import { McpSession } from "../../mcp/session.ts";
import { StderrLog } from "../../mcp/stderr_log.ts";
import { McpMount } from "./mcp_mount.ts";
import type { PingRules } from "./mount_state.ts";
import { loadCompilers } from "./schema_check.ts";

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
  /** Shared between drivers so that a legacy server isn't probed at every mount. */
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
  readonly #eras: EraCache;
  readonly #transports: TransportMemory = new Map();
  readonly #warned = new Set<string>();

  constructor(deps: McpDriverDeps) {
    this.#deps = deps;
    this.#eras = deps.eras ?? new Map();
  }

  async mount(
    spec: MountSpec<McpServerLaunch>,
    options: { pid: number; signal: AbortSignal },
  ): Promise<Mount> {
    const launch = spec.config;
    loadAhead();
    const log = new StderrLog({
      storage: this.#deps.storage,
      path: launch.stderrLogPath,
      redact: this.#deps.redact,
    });
    log.begin();
    const start = (signal: AbortSignal) => this.#start(launch, log, signal);
    try {
      const session = await start(options.signal);
      return new McpMount({
        launch,
        clock: this.#deps.clock,
        session,
        start,
        ping: this.#deps.ping,
        ...(launch.transport === "stdio" ? {} : { jitter: () => this.#jitter() }),
        onWarning: (message) => this.#warn(launch.server, message),
        onNote: (text, isWarning) => {
          log.note(`[rnix] server ${text}`);
          if (!isWarning) return;
          this.#deps.onWarning?.(launch.server, `Server "${launch.server}" ${text}`);
        },
        onClosed: () => log.close(),
      });
    } catch (thrown) {
      throw toSysError(thrown, {
        syscall: "Mount",
        device: `/mnt/mcp/${options.pid}-${spec.server}`,
        pid: options.pid,
      });
    }
  }

  async #start(
    launch: McpServerLaunch,
    log: StderrLog,
    signal: AbortSignal,
  ): Promise<McpSession> {
    if (signal.aborted) {
      throw new SysError("DRIVER", `The start of server "${launch.server}" was given up`);
    }
    return await McpSession.open({
      server: launch.server,
      startupTimeoutMs: launch.startupTimeoutMs,
      clock: this.#deps.clock,
      connect: () => this.#connect(launch, log),
      signal,
      clientInfo: this.#deps.clientInfo,
      eras: this.#eras,
      eraKey: eraKeyOf(launch),
    });
  }

  async #connect(launch: McpServerLaunch, log: StderrLog): Promise<ServerConnection> {
    if (this.#deps.connect !== undefined) return await this.#deps.connect(launch, log);
    return await connectServer(launch, {
      clock: this.#deps.clock,
      keeper: this.#deps.keeper,
      log,
      transports: this.#transports,
      onWarning: (message) => this.#warn(launch.server, message),
    });
  }

  /** Servers at an address that went down at the same moment are not asked all at once. */
  #jitter(): number {
    const [high = 0, low = 0] = (this.#deps.random ?? systemRandom)(new Uint8Array(2));
    return (high * 256 + low) / 65_536;
  }

  /** Once per server and sentence, however often the server is started. */
  #warn(server: string, message: string): void {
    const key = JSON.stringify([server, message]);
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    this.#deps.onWarning?.(server, message);
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
