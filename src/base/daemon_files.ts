/**
 * Where a daemon is found. The truth is in the state folder: the lock `daemon.lock` says whether there is one, `daemon.json` where it listens.
 *
 * One daemon per state folder, wherever its socket is; the socket's name is a hash of the state folder's real path.
 */
import { join } from "./posix_path.ts";
import { storageError } from "./disk.ts";
import { SysError } from "./errors.ts";
import { EXIT_UNREACHABLE } from "./exit.ts";
import { sha256Hex } from "./json.ts";
import { readJsonStateFile } from "./state_file.ts";
import type { FileFacts, Storage } from "./storage.ts";
import type { DaemonRecord } from "./wire.ts";

export const LOCK_FILE = "daemon.lock";
export const RECORD_FILE = "daemon.json";

/** Where an instance writes down the container engines that it uses. */
export function enginesPath(state: string, instance: string): string {
  return join(state, `containers-${instance}`);
}

/** Longest path of a unix socket, bytes, its final NUL aside. */
export const SOCKET_BYTES_MAX = 107;
const HASH_CHARS = 16;
const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

/** Path of the socket for a state folder: in the runtime folder, or in the short fallback where that is too long. */
export function socketPath(realState: string, runtime: string, uid: number): string {
  const name = `${sha256Hex(realState).slice(0, HASH_CHARS)}.sock`;
  const path = join(runtime, name);
  const isShort = new TextEncoder().encode(path).length <= SOCKET_BYTES_MAX;
  return isShort ? path : join(fallbackFolder(uid), name);
}

/** Folder for sockets where the runtime folder can't be used. */
export function fallbackFolder(uid: number): string {
  return `/tmp/rnix-${uid}`;
}

/** Why a folder can't hold the socket; undefined when it can: a real folder of this user that nobody else may enter. */
export function socketFolderFault(facts: FileFacts | undefined, uid: number): string | undefined {
  if (facts === undefined) return "it isn't there";
  if (facts.kind === "link") return "it is a link";
  if (facts.kind !== "folder") return "it isn't a folder";
  if (facts.uid !== undefined && facts.uid !== uid) return `it belongs to user ${facts.uid}`;
  if (facts.mode !== undefined && (facts.mode & OTHERS) !== 0) return "others may enter it";
  return undefined;
}

/** Makes sure that `folder` can hold the socket. Throws PERMISSION, naming what is wrong. */
export async function secureSocketFolder(
  storage: Storage,
  folder: string,
  uid: number,
): Promise<void> {
  await storage.makeFolder(folder, 0o700);
  const fault = socketFolderFault(await storage.stat(folder), uid);
  if (fault === undefined) return;
  throw new SysError("PERMISSION", `The folder can't hold the daemon's socket: ${fault}`, {
    device: folder,
    hint: "Remove it, or set XDG_RUNTIME_DIR to a folder of your own",
  });
}

/** Why nothing that a state folder says can be relied upon; undefined when it can, also where there is none yet. */
export function stateFolderFault(facts: FileFacts | undefined, uid: number): string | undefined {
  if (facts === undefined) return undefined;
  if (facts.kind !== "folder") return "it isn't a folder";
  if (facts.uid !== undefined && facts.uid !== uid) return `it belongs to user ${facts.uid}`;
  if (facts.mode !== undefined && (facts.mode & OTHERS_WRITE) !== 0) return "others may write it";
  return undefined;
}

/** Makes sure that nobody else can have written what `state` says of the daemon, before it is read. A link is fine, what it leads to counts. Throws PERMISSION (exit 8), naming what is wrong. */
export async function secureStateFolder(
  storage: Storage,
  state: string,
  uid: number,
): Promise<void> {
  const fault = stateFolderFault(await factsBehind(storage, state), uid);
  if (fault === undefined) return;
  throw new SysError("PERMISSION", `The state folder can't be relied upon: ${fault}`, {
    device: state,
    exitCode: EXIT_UNREACHABLE,
    hint: fault === "others may write it"
      ? `If all in it is yours: chmod go-w "${state}"`
      : "Set RNIX_HOME or XDG_STATE_HOME to a folder of your own",
  });
}

/** Facts of what is at a path, or of what a link there leads to. */
async function factsBehind(storage: Storage, path: string): Promise<FileFacts | undefined> {
  try {
    const facts = await storage.stat(path);
    return facts?.kind === "link" ? await storage.stat(await Deno.realPath(path)) : facts;
  } catch (thrown) {
    throw storageError(thrown, "Stat", path).with({ exitCode: EXIT_UNREACHABLE });
  }
}

/** What `daemon.json` says; undefined when there is none. Throws INVALID when it is damaged. */
export async function readDaemonRecord(
  storage: Storage,
  state: string,
): Promise<DaemonRecord | undefined> {
  const path = join(state, RECORD_FILE);
  const record = await readJsonStateFile(storage, path);
  if (record === undefined || isDaemonRecord(record)) return record;
  throw new SysError("INVALID", "It doesn't say where a daemon listens", {
    syscall: "Read",
    device: path,
  });
}

function isDaemonRecord(value: unknown): value is DaemonRecord {
  if (typeof value !== "object" || value === null) return false;
  return "socket" in value && typeof value.socket === "string" &&
    "os_pid" in value && Number.isInteger(value.os_pid) &&
    "instance" in value && typeof value.instance === "string";
}

/** Whether a daemon holds the lock: also one that takes nothing any more and is on its way out. To find out, the lock is held for a moment. */
export async function isServed(storage: Storage, state: string): Promise<boolean> {
  const path = join(state, LOCK_FILE);
  if (await storage.stat(path) === undefined) return false;
  const lock = await storage.openToRead(path);
  try {
    return !lock.tryLock("shared");
  } finally {
    lock.close();
  }
}

/** OS pid of the daemon that serves this state folder, if one does. Never rejects: what can't be read serves nobody. */
export async function servingPid(storage: Storage, state: string): Promise<number | undefined> {
  try {
    if (!await isServed(storage, state)) return undefined;
    return (await readDaemonRecord(storage, state))?.os_pid;
  } catch {
    return undefined;
  }
}
