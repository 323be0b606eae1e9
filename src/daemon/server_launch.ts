/** From a server that is ready in its environment to how it is mounted. */
import type { HttpLaunch, McpServerLaunch, StdioLaunch } from "../mcp/launch.ts";
import type { ReadyServer } from "../manifest/expand.ts";

/** How a server is reached, and its limits. `stderrLogPath`: where its stderr and notes on it go. */
export function serverLaunch(
  { config, expanded }: ReadyServer,
  stderrLogPath?: string,
): McpServerLaunch {
  const { name: server, startupTimeoutMs, timeoutMs, maxTimeoutMs } = config;
  const limits = {
    ...{ server, startupTimeoutMs, timeoutMs, maxTimeoutMs },
    ...stderrLogPath === undefined ? {} : { stderrLogPath },
    ...config.share === undefined ? {} : { share: config.share },
  };
  if (expanded.transport === "stdio") {
    const { transport, command, args, env, cwd } = expanded;
    return { ...limits, transport, command, args, env, cwd } satisfies StdioLaunch;
  }
  const { transport, url, headers, env } = expanded;
  return { ...limits, transport, url, headers, env } satisfies HttpLaunch;
}
