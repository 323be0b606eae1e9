/**
 * State files are written whole or not at all: a temporary file in the same folder, synced, renamed over the old one, and the folder synced.
 *
 * A file that can't be read as what it should be is an error for the caller, who must not write over it.
 */
import { basename, dirname } from "./posix_path.ts";
import { SysError } from "./errors.ts";
import type { Json } from "./json.ts";
import type { Storage, StorageFile } from "./storage.ts";

/** Leftovers of crashed writers that are stepped over before giving up. */
const TEMPORARY_NAMES_MAX = 1_000;

async function openTemporary(storage: Storage, path: string, mode: number): Promise<StorageFile> {
  for (let number = 0;; number += 1) {
    const name = `${dirname(path)}/.${basename(path)}.new-${number}`;
    try {
      return await storage.open(name, { createNew: true, mode });
    } catch (thrown) {
      const taken = thrown instanceof SysError && thrown.code === "INVALID";
      if (!taken || number >= TEMPORARY_NAMES_MAX) throw aboutIt(thrown, name, path);
    }
  }
}

/** Replaces `path` by `content`; durable when the promise resolves, the old content otherwise still in place. Rejects with the storage's `SysError`. */
export async function writeStateFile(
  storage: Storage,
  path: string,
  content: Uint8Array | string,
  mode = 0o600,
): Promise<void> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const file = await openTemporary(storage, path, mode);
  await replaceBy(storage, path, file, () => file.append(bytes));
}

/** The same for content that comes piece by piece: what fails on the way leaves the old content. */
export async function writeStatePieces(
  storage: Storage,
  path: string,
  pieces: AsyncIterable<string>,
  mode = 0o600,
): Promise<void> {
  const encoder = new TextEncoder();
  const file = await openTemporary(storage, path, mode);
  await replaceBy(storage, path, file, async () => {
    for await (const piece of pieces) file.append(encoder.encode(piece));
  });
}

/** Nobody asked for the temporary file: what fails there is told of the file that was to be written. */
function aboutIt(thrown: unknown, temporary: string, path: string): unknown {
  const isTemporary = thrown instanceof SysError && thrown.device === temporary;
  return isTemporary ? thrown.with({ device: path }) : thrown;
}

async function replaceBy(
  storage: Storage,
  path: string,
  file: StorageFile,
  fill: () => void | Promise<void>,
): Promise<void> {
  try {
    await fill();
    await file.sync();
    file.close();
    await storage.rename(file.path, path);
  } catch (thrown) {
    file.close();
    await storage.remove(file.path).catch(() => {});
    throw aboutIt(thrown, file.path, path);
  }
  await storage.syncFolder(dirname(path));
}

/** The JSON in a state file; undefined when there is no such file. Rejects with INVALID when it can't be parsed. */
export async function readJsonStateFile(storage: Storage, path: string): Promise<Json | undefined> {
  let bytes: Uint8Array;
  try {
    bytes = await storage.read(path);
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (thrown) {
    throw new SysError("INVALID", `State file isn't valid JSON: ${messageOf(thrown)}`, {
      syscall: "Read",
      device: path,
      hint: "It was left as it is; mend it, or move it away to begin anew",
      cause: thrown,
    });
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Makes a folder and what is missing above it; its name, and theirs, are durable when the promise resolves. */
export async function makeDurableFolder(
  storage: Storage,
  path: string,
  mode: number,
): Promise<void> {
  const parents = [dirname(path)];
  for (let above = dirname(path); await storage.stat(above) === undefined;) {
    above = dirname(above);
    parents.push(above);
  }
  await storage.makeFolder(path, mode);
  for (const parent of parents) await storage.syncFolder(parent);
}
