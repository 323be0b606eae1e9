/**
 * Where a daemon is found. The truth is in the state folder: the lock `daemon.lock` says whether there is one, `daemon.json` where it listens.
 *
 * One daemon per state folder, wherever its socket is; the socket's name is a hash of the state folder's real path.
 */
import { join } from "./posix_path.ts";
import { SysError } from "./errors.ts";
import { sha256Hex } from "./json.ts";
import { readJsonStateFile } from "./state_file.ts";
import type { FileFacts, Storage } from "./storage.ts";
import type { DaemonRecord } from "./wire.ts";

export const LOCK_FILE = "daemon.lock";
export const RECORD_FILE = "daemon.json";

/** Longest path of a unix socket, bytes, its final NUL aside. */
export const SOCKET_BYTES_MAX = 107;
const HASH_CHARS = 16;
const OTHERS = 0o077;

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

/** What `daemon.json` says; undefined when there is none. Throws INVALID when it is damaged. */
export async function readDaemonRecord(
  storage: Storage,
  state: string,
): Promise<DaemonRecord | undefined> {
  const record = await readJsonStateFile(storage, join(state, RECORD_FILE));
  return record === undefined ? undefined : record as unknown as DaemonRecord;
}

/** Whether a daemon holds the lock: also one that takes nothing any more and is on its way out. */
export async function isServed(storage: Storage, state: string): Promise<boolean> {
  const path = join(state, LOCK_FILE);
  if (await storage.stat(path) === undefined) return false;
  const lock = await storage.open(path);
  try {
    return !lock.tryLock("shared");
  } finally {
    lock.close();
  }
}
