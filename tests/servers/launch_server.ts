/** How tests start the servers of this folder. */
import type { McpServerLaunch } from "../../src/mcp/launch.ts";
import type { Scenario } from "./scripted_server.ts";

const path = (name: string) => new URL(name, import.meta.url).pathname;

/** A launch of any command, with limits that a test can wait for. */
export function launchOf(
  command: string,
  args: string[],
  changes: Partial<McpServerLaunch> = {},
): McpServerLaunch {
  return {
    server: "s",
    command,
    args,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: Deno.env.get("HOME") ?? "/" },
    cwd: "/",
    startupTimeoutMs: 20_000,
    timeoutMs: 10_000,
    maxTimeoutMs: 20_000,
    ...changes,
  };
}

function denoArgs(file: string, ...args: string[]): string[] {
  return ["run", "-A", "--no-config", "--no-lock", "--no-check", path(file), ...args];
}

/** The scripted server with a scenario. */
export function scripted(
  scenario: Scenario,
  changes: Partial<McpServerLaunch> = {},
): McpServerLaunch {
  return launchOf(
    Deno.execPath(),
    denoArgs("scripted_server.ts", JSON.stringify(scenario)),
    changes,
  );
}

/** The ledger server over a file. */
export function ledgerServer(
  file: string,
  flags: string[] = [],
  changes: Partial<McpServerLaunch> = {},
): McpServerLaunch {
  return launchOf(Deno.execPath(), denoArgs("ledger_server.ts", file, ...flags), changes);
}
