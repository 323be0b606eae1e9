/** How a server of any kind is reached: the one place that knows every transport. */
import type { Clock } from "../base/clock.ts";
import type { ServerConnection } from "./connection.ts";
import { connectHttp, type TransportMemory } from "./http_connect.ts";
import type { McpServerLaunch, ProcessKeeper } from "./launch.ts";
import type { StderrLog } from "./stderr_log.ts";
import { StdioTransport } from "./stdio_transport.ts";

export interface ConnectServerDeps {
  clock: Clock;
  /** Resolves with the guard once it is up; no server is started before. Left out only in tests that see to their children themselves. */
  keeper?: (() => Promise<ProcessKeeper>) | undefined;
  /** For what the server says beside the protocol, and for notes on it. */
  log: StderrLog;
  /** Which transport worked for which address; what isn't known is found out. */
  transports?: TransportMemory | undefined;
  /** One sentence per peculiarity, at most once each. */
  onWarning?: ((message: string) => void) | undefined;
}

/** Starts the server, or makes ready to speak to the one at its address. Throws NOT_FOUND, PERMISSION, DRIVER, INVALID. */
export async function connectServer(
  launch: McpServerLaunch,
  { clock, keeper, log, transports = new Map(), onWarning }: ConnectServerDeps,
): Promise<ServerConnection> {
  if (launch.transport !== "stdio") {
    return await connectHttp(launch, transports, { clock, log });
  }
  const guard = await keeper?.();
  log.forgetLines();
  return await StdioTransport.spawn(launch, { clock, keeper: guard, log, onWarning });
}
