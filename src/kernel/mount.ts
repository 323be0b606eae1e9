/** Mounting as the kernel sees it: a driver per kind of server is handed in, the kernel mounts all at once and rolls back. */
import type { MountHealth } from "../base/mount_health.ts";
import type { ToolRules } from "../base/effect.ts";
import type { SysError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Device, ToolDefinition } from "../vfs/device.ts";

export interface MountSpec<C = unknown> {
  /** Name of the server in the manifest: the last part of the mount path. */
  server: string;
  required: boolean;
  rules: ToolRules;
  /** Results over this many tokens are cut; undefined: never. */
  outputTokensMax: number | undefined;
  /** What the driver needs; the kernel doesn't look inside. */
  config: C;
}

/** What is known of a server once it is up; goes into `mount.ready`. */
export interface MountFacts {
  era: "modern" | "legacy";
  protocolVersion: string;
  serverInfo?: JsonObject;
  /** Sorted by name; those that the driver adds to the server's own come last. */
  tools: ToolDefinition[];
  /** Tools that can't be offered, with the reason. */
  setAside: { [tool: string]: string };
}

/**
 * A mounted server.
 *
 * **Contract.** A server that has gone is started again by itself for a while, then on its next use; a call waits for the next attempt (one at a time for all waiters, bounded by the start-up limit) before it gives `not-sent`. `onChange` is called when the tools differ after that, or the server says so. `close` never throws, is bounded in time, kills what doesn't go, and is idempotent.
 */
export interface Mount extends Device {
  readonly facts: MountFacts;
  readonly health: MountHealth;
  onChange: ((facts: MountFacts) => void) | undefined;
  close(): Promise<void>;
}

export interface MountDriver<C = unknown> {
  /** Starts and discovers the server within its own limit. Throws a SysError that carries the last lines of the server's stderr; nothing is left running then. */
  mount(spec: MountSpec<C>, options: { pid: number; signal: AbortSignal }): Promise<Mount>;
}

export interface MountFailure {
  server: string;
  required: boolean;
  error: SysError;
}
