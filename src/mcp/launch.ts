/** How a server is started and how long it may take: everything expanded, nothing left to look up. */

/**
 * A server on stdio, ready to be started.
 *
 * `env` is the child's complete environment, allowlist and PATH included (the instance's mark is added when it is started). `command` is searched in the PATH of `env`, unless it has a `/`.
 */
export interface McpServerLaunch {
  /** Name in the manifest; used in messages and in model-facing names. */
  server: string;
  command: string;
  args: string[];
  env: { [name: string]: string };
  /** Absolute. */
  cwd: string;
  /** Spawn + handshake + discovery, in all (key `startup_timeout`). */
  startupTimeoutMs: number;
  /** One request, re-armed by progress (key `timeout`). */
  timeoutMs: number;
  /** One request, in all (key `max_timeout`). */
  maxTimeoutMs: number;
  /** Absolute path of the file for its stderr; undefined: only the last lines are kept, in memory. */
  stderrLogPath?: string;
}

/** Who makes sure that no child outlives rnix (the guard of `base/guard.ts` fits). */
export interface ProcessKeeper {
  /** Variables that every child must carry. */
  readonly mark: { readonly [name: string]: string };
  groupStarted(pgid: number): void;
  groupEnded(pgid: number): void;
}
