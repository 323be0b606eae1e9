/**
 * What can be mounted in the VFS, and what a tool behind it is.
 *
 * The kernel knows devices only through these types. A call's outcome says honestly what is known: `answer` (the device said something, an error included), `not-sent` (proven never to have run), or `unknown` (it may have run).
 */
import type { EffectClass } from "../base/effect.ts";
import type { SysError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";

/** A tool as its device defines it. */
export interface ToolDefinition {
  /** The device's own name. */
  name: string;
  /** Model-facing name: `[A-Za-z0-9_-]`, at most 64 characters, unique in the process. */
  modelName: string;
  title?: string;
  description?: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  annotations?: JsonObject;
  /** Class of a tool that rnix adds itself, where the manifest declares none; never what a server says. */
  effect?: EffectClass;
}

export type DeviceOutcome =
  | {
    kind: "answer";
    isError: boolean;
    content: Json[];
    structured?: Json;
    /** Things the user should know though the call worked, such as invalid structured output. */
    warnings?: string[];
  }
  | { kind: "not-sent"; error: SysError }
  | {
    kind: "unknown";
    cause: "timeout" | "disconnected" | "cancelled";
    error: SysError;
    /** Resolves with the answer if it comes after all, with undefined once it can't come any more. Never rejects. */
    late: Promise<DeviceOutcome | undefined>;
  };

export interface CallOptions {
  /** Aborting cancels this one call: the device tells its server, awaits an answer for `cancelGraceMs`, then gives `unknown`. */
  signal: AbortSignal;
  cancelGraceMs: number;
  /** rnix's name of the call, for logs. */
  callId: string;
  /** The same for every attempt; sent to the device's server. */
  idempotencyKey: string;
  /** W3C trace context of the call, where it is observed; passed on to the device's server. */
  traceparent?: string;
  /** Whether the caller makes it again where its outcome is unknown: then it may go a quicker way on which it is lost more easily. The device itself sends it once all the same. */
  repeatable?: boolean;
  onProgress?: (message: string) => void;
}

/**
 * An open node.
 *
 * **Contract.** `write` never throws for what the device's server does: it gives exactly one outcome. `read` before a `write` that brought an answer throws INVALID. Use after `close` throws INVALID; `close` is idempotent.
 */
export interface DeviceFile {
  write(input: Json, options: CallOptions): Promise<DeviceOutcome>;
  /** The last answer (or a node's listing) as bytes. */
  read(): Promise<Uint8Array>;
  close(): void;
}

/** What a node is. `folder`: a read gives its listing. `tool`: a write is a call, and a read gives its answer. `model`: looked at, and asked by programs alone. */
export interface NodeFacts {
  kind: "folder" | "tool" | "file" | "model";
  /** Below the mount point, in the one form that a tool's path has. */
  path: string;
  /** What it holds is had from the device's server, each time anew. */
  isRemote?: true;
}

export interface Device {
  /** Opens the node at `path` below the mount point, `""` for its root. Throws NOT_FOUND with the valid paths. */
  open(path: string): DeviceFile;
  /** What is at `path`; asks no server. Throws NOT_FOUND with the valid paths. */
  stat(path: string): NodeFacts;
  /** What is in the folder at `path`, each name fit to be appended to it. Throws NOT_FOUND, and INVALID for what is no folder. */
  list(path: string): Promise<string[]>;
}
