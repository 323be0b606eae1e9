/** How a server is reached and how long it may take: everything expanded, nothing left to look up. */

/** What holds for a server of any kind. */
export interface ServerLimits {
  /** Name in the manifest; used in messages and in model-facing names. */
  server: string;
  /** Spawn + handshake + discovery, in all (key `startup_timeout`). */
  startupTimeoutMs: number;
  /** One request, re-armed by progress (key `timeout`). */
  timeoutMs: number;
  /** One request, in all (key `max_timeout`). */
  maxTimeoutMs: number;
  /** Absolute path of the file for its stderr and for notes on it; undefined: only the last lines are kept, in memory. */
  stderrLogPath?: string;
  /** `false`: it is nobody else's, even where another process of the tree has the same one (key `share`). */
  share?: false;
}

/**
 * A server on stdio, ready to be started.
 *
 * `env` is the child's complete environment, allowlist and PATH included (the instance's mark is added when it is started). `command` is searched in the PATH of `env`, unless it has a `/`.
 */
export interface StdioLaunch extends ServerLimits {
  transport: "stdio";
  command: string;
  args: string[];
  env: { [name: string]: string };
  /** Absolute. */
  cwd: string;
}

/** A server at an address. `auto`: Streamable HTTP first, then legacy HTTP+SSE. */
export interface HttpLaunch extends ServerLimits {
  transport: "http" | "sse" | "auto";
  /** Absolute, http or https. */
  url: string;
  headers: { [name: string]: string };
  /** Of the client's environment only what concerns proxies and certificates. */
  env: { [name: string]: string };
}

export type McpServerLaunch = StdioLaunch | HttpLaunch;

/** Who makes sure that no child outlives rnix (the guard of `base/guard.ts` fits). */
export interface ProcessKeeper {
  /** Variables that every child must carry. */
  readonly mark: { readonly [name: string]: string };
  /** Arguments to start a server's program with; the keeper may add to them. */
  launchArguments?(
    program: string,
    args: readonly string[],
    env: { readonly [name: string]: string },
  ): string[];
  groupStarted(pgid: number): void;
  groupEnded(pgid: number): void;
}
