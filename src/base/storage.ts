/**
 * The disk as a part that is handed in. The real one is `disk.ts`; tests use one that loses what was not synced, fills up, fails at the n-th operation or stops the world there.
 *
 * **Contract.** Every failure is a `SysError`: NOT_FOUND when the path isn't there, RESOURCE_EXHAUSTED when the disk is full, PERMISSION, else DRIVER. A write that fails may have written a part of its bytes. What was written but not synced may be lost, wholly or in part,
 * when the machine stops; a name is durable once its folder was synced.
 */

export interface StorageFile {
  readonly path: string;
  /** Writes all bytes at the end of the file. */
  append(bytes: Uint8Array): void;
  /** Makes the file's content durable (fdatasync). */
  sync(): Promise<void>;
  size(): number;
  /** Up to `length` bytes from `offset`; fewer only at the end of the file. */
  readAt(offset: number, length: number): Promise<Uint8Array>;
  /** Cuts the file to `length` bytes; not durable until synced. */
  truncate(length: number): Promise<void>;
  /** Replaces the whole content in place (for lock files, whose inode must stay). Not durable until synced. */
  overwrite(bytes: Uint8Array): void;
  /** Writes once more what is there already, so that the next sync covers it: of what a failed sync gave up, later ones know nothing. */
  rewrite(offset: number, bytes: Uint8Array): void;
  /** flock(2), without waiting: whether the lock was got. Freed by `unlock`, `close` or the end of the OS process. */
  tryLock(mode: "exclusive" | "shared"): boolean;
  unlock(): void;
  /** Whether this open file is the one at its path still, or at another path. */
  isCurrent(path?: string): boolean;
  /** Idempotent. */
  close(): void;
}

export interface FileFacts {
  kind: "file" | "folder" | "link" | "other";
  sizeBytes: number;
  modifiedMs: number;
  /** Permission bits; undefined where the platform has none. */
  mode: number | undefined;
  uid: number | undefined;
  /** Names that lead to the file; undefined where that isn't known. */
  links?: number;
  /** Which file system it is on; undefined where that isn't known. */
  deviceId?: number;
}

export interface Storage {
  /** Opens for reading and writing. Without `create` a missing file is NOT_FOUND; `createNew` refuses an existing one with INVALID. */
  open(
    path: string,
    options?: { create?: boolean; createNew?: boolean; mode?: number },
  ): Promise<StorageFile>;
  /** Opens for reading alone, which needs no right to write; a shared lock can be had. What would change the file is PERMISSION. */
  openToRead(path: string): Promise<StorageFile>;
  read(path: string): Promise<Uint8Array>;
  /** Names in a folder, sorted. NOT_FOUND when there is none. */
  list(path: string): Promise<string[]>;
  /** Facts of the path itself, links not followed; undefined when nothing is there. */
  stat(path: string): Promise<FileFacts | undefined>;
  /** Facts of what the path leads to, links followed; undefined when nothing is there. */
  statTarget(path: string): Promise<FileFacts | undefined>;
  /** Makes the folder and its parents; fine when it exists already. */
  makeFolder(path: string, mode: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** A second name for the same file. */
  hardLink(from: string, to: string): Promise<void>;
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  /** Makes the names in a folder durable. */
  syncFolder(path: string): Promise<void>;
}
