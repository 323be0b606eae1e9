/**
 * A disk in memory for crash tests: it loses what was not synced, fills up, fails at the n-th operation, or stops the world there.
 *
 * Operations that change something are numbered from 1 and logged, so that a harness can run once to count them and then once per point. After a stop nothing works any more: what waits never ends, what doesn't throws `StopError`. `crash` gives the disk that the machine finds afterwards, `kill` the one that is there when only the process died.
 */
import { SysError } from "../../src/base/errors.ts";
import type { FileFacts, Storage, StorageFile } from "../../src/base/storage.ts";
import type { CrashChoice, DiskNode } from "./disk_nodes.ts";
import { FileNode, FolderNode } from "./disk_nodes.ts";

export type { CrashChoice } from "./disk_nodes.ts";

/** All that was not synced is gone. */
export const LOST: CrashChoice = { bytes: () => 0, names: () => 0 };
/** All that was written is there. */
export const KEPT: CrashChoice = { bytes: (_, unsynced) => unsynced, names: (_, n) => n };

/** Names are there; of each file, unsynced bytes as far as `bytes`. */
export function keptInPart(bytes: number): CrashChoice {
  return { bytes: (_, unsynced) => Math.min(bytes, unsynced), names: (_, unsynced) => unsynced };
}

/** Of everything some part, the same for the same seed. */
export function seeded(seed: number): CrashChoice {
  let state = seed >>> 0;
  // mulberry32
  const next = (below: number): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
  return { bytes: (_, unsynced) => next(unsynced + 1), names: (_, unsynced) => next(unsynced + 1) };
}

export type OperationName =
  | "create"
  | "append"
  | "sync"
  | "truncate"
  | "overwrite"
  | "rewrite"
  | "make-folder"
  | "rename"
  | "hard-link"
  | "remove"
  | "sync-folder";

/** One numbered operation. */
export interface Operation {
  number: number;
  name: OperationName;
  path: string;
}

/** `full` writes a part of the bytes first; `read-only` is a PERMISSION, `broken` a DRIVER error. */
export type Fault = "full" | "read-only" | "broken";

const FAULT_CODES = {
  full: "RESOURCE_EXHAUSTED",
  "read-only": "PERMISSION",
  broken: "DRIVER",
} as const;

export interface Plan {
  /** Stops the world at this operation, before or after its effect. */
  stop?: { at: number; when: "before" | "after" };
  /** Makes operations fail: that one, or with `forGood` all from there on; with `only` just those of that name. */
  fail?: { at: number; fault: Fault; forGood?: boolean; only?: OperationName };
}

/** Thrown by what can't wait once the world has stopped. */
export class StopError extends Error {
  override readonly name = "StopError";
}

/** What a stopped disk gives: one for each wait, or the last wait would hold all that waited before it. */
function stopped(): Promise<never> {
  return new Promise(() => {});
}

export class FaultyDisk implements Storage {
  /** All numbered operations so far. */
  readonly operations: Operation[] = [];
  /** Resolves when the world stops. */
  readonly whenStopped: Promise<void>;
  plan: Plan;
  /** Bytes that all files together may hold. */
  capacityBytes = Infinity;
  /** Nothing may be written: what opens for writing is refused as well. */
  isReadOnly = false;
  #root: FolderNode;
  #stopped = false;
  #tellStopped: () => void = () => {};
  #gate: Promise<void> | undefined;

  constructor(plan: Plan = {}) {
    this.plan = plan;
    this.#root = new FolderNode(0o700, 0);
    this.whenStopped = new Promise((resolve) => this.#tellStopped = resolve);
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  /** From here on nothing works any more. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#tellStopped();
  }

  /** The disk as the machine finds it after a crash at this moment; all of it durable. */
  crash(choice: CrashChoice, plan: Plan = {}): FaultyDisk {
    const disk = this.kill(plan);
    disk.#root.settle("", choice, new Set());
    return disk;
  }

  /** The disk after the process, and only the process, died: locks are free, all written bytes are there, and no more durable than before. */
  kill(plan: Plan = {}): FaultyDisk {
    const disk = new FaultyDisk(plan);
    disk.#root = this.#root.copy(new Map());
    disk.capacityBytes = this.capacityBytes;
    return disk;
  }

  /** Holds back the end of every sync until the returned function is called. */
  holdSyncs(): () => void {
    let open = () => {};
    this.#gate = new Promise((resolve) => open = resolve);
    return () => {
      this.#gate = undefined;
      open();
    };
  }

  /** Changes a file's bytes in place, durably, unnoticed and uncounted. */
  damage(path: string, change: (bytes: Uint8Array) => Uint8Array): void {
    this.#file(path, "Damage").damage(change);
  }

  flipBit(path: string, offset: number, bit = 0): void {
    this.damage(path, (bytes) => {
      bytes[offset] = (bytes[offset] ?? 0) ^ (1 << bit);
      return bytes;
    });
  }

  /** A file's content now, synced or not. */
  peek(path: string): Uint8Array {
    const file = this.#file(path, "Peek");
    return file.slice(0, file.length);
  }

  /** Of a file's content now, what is durable; undefined where there is no such file. */
  peekDurable(path: string): Uint8Array | undefined {
    const node = this.#find(path);
    return node?.kind === "file" ? node.durable : undefined;
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async open(
    path: string,
    options: { create?: boolean; createNew?: boolean; mode?: number } = {},
  ): Promise<StorageFile> {
    if (this.#stopped) return stopped();
    const { create = false, createNew = false, mode = 0o600 } = options;
    const [folder, name] = this.#parent(path, "Open");
    const found = folder.get(name);
    if (found?.kind === "folder") throw failure("DRIVER", "Open", path, "Is a folder");
    if (this.isReadOnly) throw failure("PERMISSION", "Open", path, "File system is read-only");
    if (found !== undefined) {
      if (createNew) throw failure("INVALID", "Open", path, "File exists");
      return new FaultyFile(this, path, found);
    }
    if (!create && !createNew) throw failure("NOT_FOUND", "Open", path, "No such file or folder");
    return this.change("create", path, () => {
      const file = new FileNode(mode, 0);
      folder.set([name, file]);
      return new FaultyFile(this, path, file);
    });
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async openToRead(path: string): Promise<StorageFile> {
    if (this.#stopped) return stopped();
    return new FaultyFile(this, path, this.#file(path, "Open"), true);
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async read(path: string): Promise<Uint8Array> {
    if (this.#stopped) return stopped();
    const file = this.#file(path, "Read");
    return file.slice(0, file.length);
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async list(path: string): Promise<string[]> {
    return this.#stopped ? stopped() : this.#folder(path, "List").names;
  }

  stat(path: string): Promise<FileFacts | undefined> {
    if (this.#stopped) return stopped();
    const node = this.#find(path);
    return Promise.resolve(
      node && {
        kind: node.kind,
        sizeBytes: node.kind === "file" ? node.length : 0,
        modifiedMs: node.modifiedMs,
        mode: node.mode,
        uid: undefined,
      },
    );
  }

  /** It has no links. */
  statTarget(path: string): Promise<FileFacts | undefined> {
    return this.stat(path);
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async makeFolder(path: string, mode: number): Promise<void> {
    if (this.#stopped) return stopped();
    const found = this.#find(path);
    if (found?.kind === "folder") return;
    if (found !== undefined) throw failure("INVALID", "MakeFolder", path, "File exists");
    return this.change("make-folder", path, () => {
      let folder = this.#root;
      for (const part of partsOf(path)) {
        const next = folder.get(part) ?? new FolderNode(mode, 0);
        if (next.kind !== "folder") throw failure("NOT_FOUND", "MakeFolder", path, "Not a folder");
        if (folder.get(part) === undefined) folder.set([part, next]);
        folder = next;
      }
    });
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async rename(from: string, to: string): Promise<void> {
    if (this.#stopped) return stopped();
    const [oldFolder, oldName] = this.#parent(from, "Rename");
    const [newFolder, newName] = this.#parent(to, "Rename");
    const node = oldFolder.get(oldName);
    if (node === undefined) throw failure("NOT_FOUND", "Rename", from, "No such file or folder");
    return this.change("rename", to, () => {
      if (oldFolder === newFolder) return oldFolder.set([oldName, undefined], [newName, node]);
      newFolder.set([newName, node]);
      oldFolder.set([oldName, undefined]);
    });
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async hardLink(from: string, to: string): Promise<void> {
    if (this.#stopped) return stopped();
    const file = this.#file(from, "Link");
    const [folder, name] = this.#parent(to, "Link");
    if (folder.get(name) !== undefined) throw failure("INVALID", "Link", to, "File exists");
    return this.change("hard-link", to, () => folder.set([name, file]));
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    if (this.#stopped) return stopped();
    const [folder, name] = this.#parent(path, "Remove");
    const node = folder.get(name);
    if (node === undefined) throw failure("NOT_FOUND", "Remove", path, "No such file or folder");
    if (node.kind === "folder" && node.names.length > 0 && options.recursive !== true) {
      throw failure("DRIVER", "Remove", path, "Folder isn't empty");
    }
    return this.change("remove", path, () => folder.set([name, undefined]));
  }

  // deno-lint-ignore require-await -- failures must reject, not throw
  async syncFolder(path: string): Promise<void> {
    if (this.#stopped) return stopped();
    const folder = this.#folder(path, "Sync");
    return this.change("sync-folder", path, () => folder.sync());
  }

  /** Does a numbered operation that may wait, or what the plan has in store for it. For the files of this disk. */
  change<T>(name: OperationName, path: string, effect: () => T): T | Promise<never> {
    try {
      return this.changeNow(name, path, effect);
    } catch (thrown) {
      if (thrown instanceof StopError) return stopped();
      throw thrown;
    }
  }

  /** The same for one that can't wait. `onFull` is the part of the effect that a full disk still lets happen. */
  changeNow<T>(name: OperationName, path: string, effect: () => T, onFull = () => {}): T {
    if (this.#stopped) throw new StopError(`Stopped before ${name} "${path}"`);
    const number = this.operations.length + 1;
    this.operations.push({ number, name, path });
    const { stop, fail } = this.plan;
    if (stop?.at === number && stop.when === "before") this.#halt(number);
    if (fail !== undefined && (fail.only ?? name) === name) {
      if (fail.at === number || (fail.forGood === true && number > fail.at)) {
        if (fail.fault === "full") onFull();
        throw failure(FAULT_CODES[fail.fault], name, path, `Planned fault: ${fail.fault}`);
      }
    }
    const result = effect();
    if (stop?.at === number) this.#halt(number);
    return result;
  }

  get holdsSyncs(): boolean {
    return this.#gate !== undefined;
  }

  /** Waits as long as syncs are held back; never returns once the world has stopped. */
  async passGate(): Promise<void> {
    await this.#gate;
    if (this.#stopped) await stopped();
  }

  /** Bytes that still fit. */
  get freeBytes(): number {
    return this.capacityBytes === Infinity
      ? Infinity
      : Math.max(0, this.capacityBytes - bytesIn(this.#root));
  }

  /** Whether the path stands for this very file. */
  isAt(path: string, file: FileNode): boolean {
    return this.#find(path) === file;
  }

  #halt(number: number): never {
    this.stop();
    throw new StopError(`Stopped at operation ${number}`);
  }

  #find(path: string): DiskNode | undefined {
    let node: DiskNode | undefined = this.#root;
    for (const part of partsOf(path)) {
      node = node?.kind === "folder" ? node.get(part) : undefined;
    }
    return node;
  }

  #parent(path: string, syscall: string): [folder: FolderNode, name: string] {
    const slash = path.lastIndexOf("/");
    return [this.#folder(path.slice(0, slash), syscall), path.slice(slash + 1)];
  }

  #folder(path: string, syscall: string): FolderNode {
    const node = this.#find(path);
    if (node?.kind === "folder") return node;
    throw failure("NOT_FOUND", syscall, path, "No such folder");
  }

  #file(path: string, syscall: string): FileNode {
    const node = this.#find(path);
    if (node?.kind === "file") return node;
    throw failure("NOT_FOUND", syscall, path, "No such file");
  }
}

class FaultyFile implements StorageFile {
  readonly path: string;
  readonly #disk: FaultyDisk;
  readonly #node: FileNode;
  readonly #isReadOnly: boolean;

  constructor(disk: FaultyDisk, path: string, node: FileNode, isReadOnly = false) {
    this.#disk = disk;
    this.path = path;
    this.#node = node;
    this.#isReadOnly = isReadOnly;
  }

  append(bytes: Uint8Array): void {
    this.#requireWritable();
    this.#disk.changeNow(
      "append",
      this.path,
      () => this.#fit(bytes),
      () => this.#node.append(bytes.subarray(0, bytes.length >> 1)),
    );
  }

  /** Covers what was written when it began; where syncs are held back, its effect comes at its end. */
  async sync(): Promise<void> {
    const { length } = this.#node;
    const held = this.#disk.holdsSyncs;
    try {
      await this.#disk.change("sync", this.path, () => {
        if (!held) this.#node.sync(length);
      });
    } catch (thrown) {
      this.#node.dropUnsynced();
      throw thrown;
    }
    if (!held) return;
    await this.#disk.passGate();
    this.#node.sync(length);
  }

  size(): number {
    return this.#node.length;
  }

  readAt(offset: number, length: number): Promise<Uint8Array> {
    if (this.#disk.isStopped) return stopped();
    return Promise.resolve(this.#node.slice(offset, offset + length));
  }

  #requireWritable(): void {
    if (!this.#isReadOnly) return;
    throw failure("PERMISSION", "Write", this.path, "File is open for reading alone");
  }

  async truncate(length: number): Promise<void> {
    this.#requireWritable();
    await this.#disk.change("truncate", this.path, () => this.#node.truncate(length));
  }

  overwrite(bytes: Uint8Array): void {
    this.#requireWritable();
    this.#disk.changeNow("overwrite", this.path, () => {
      this.#node.truncate(0);
      this.#fit(bytes);
    });
  }

  rewrite(offset: number, bytes: Uint8Array): void {
    this.#requireWritable();
    this.#disk.changeNow("rewrite", this.path, () => this.#node.rewrite(offset, bytes));
  }

  tryLock(mode: "exclusive" | "shared"): boolean {
    const node = this.#node;
    const sharedByOthers = node.shared.size - (node.shared.has(this) ? 1 : 0);
    const ownedByOther = node.exclusive !== undefined && node.exclusive !== this;
    if (ownedByOther || (mode === "exclusive" && sharedByOthers > 0)) return false;
    this.unlock();
    if (mode === "exclusive") node.exclusive = this;
    else node.shared.add(this);
    return true;
  }

  unlock(): void {
    if (this.#node.exclusive === this) this.#node.exclusive = undefined;
    this.#node.shared.delete(this);
  }

  isCurrent(path: string = this.path): boolean {
    return this.#disk.isAt(path, this.#node);
  }

  close(): void {
    if (!this.#disk.isStopped) this.unlock();
  }

  #fit(bytes: Uint8Array): void {
    const free = this.#disk.freeBytes;
    this.#node.append(bytes.length <= free ? bytes : bytes.subarray(0, free));
    if (bytes.length <= free) return;
    throw failure("RESOURCE_EXHAUSTED", "Write", this.path, "No space left on device");
  }
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "");
}

function bytesIn(node: DiskNode): number {
  if (node.kind === "file") return node.length;
  let sum = 0;
  for (const name of node.names) {
    const below = node.get(name);
    if (below !== undefined) sum += bytesIn(below);
  }
  return sum;
}

function failure(
  code: "INVALID" | "NOT_FOUND" | "PERMISSION" | "DRIVER" | "RESOURCE_EXHAUSTED",
  syscall: string,
  path: string,
  message: string,
): SysError {
  return new SysError(code, message, { syscall, device: path });
}
