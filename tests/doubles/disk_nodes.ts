/**
 * Files and folders of the faulty disk, each knowing what of it is durable.
 *
 * A file: its content up to the last sync, plus what was appended since; a copy of the old content is kept only when something before that point was changed. A folder: its names, plus the changes since its last sync, newest last, so that any number of them can be taken back.
 */

/** What a machine finds after it stopped, of what was not synced. */
export interface CrashChoice {
  /** How many of a file's `unsynced` bytes, from the first, are there. Content that was replaced, not appended to, is new if this isn't 0. */
  bytes(path: string, unsynced: number): number;
  /** How many of a folder's `unsynced` changes of names, from the first, are there. */
  names(path: string, unsynced: number): number;
}

export type DiskNode = FileNode | FolderNode;

export class FileNode {
  readonly kind = "file";
  readonly mode: number;
  modifiedMs: number;
  exclusive: object | undefined;
  readonly shared = new Set<object>();
  #data: Uint8Array = new Uint8Array(0);
  #length = 0;
  #durableLength = 0;
  /** The durable content, where it isn't the beginning of `#data` any more. */
  #durableCopy: Uint8Array | undefined;
  /** Ranges whose write-back failed: they read well from the cache, and are NULs after a crash, whatever later syncs say. */
  #dropped: [from: number, to: number][] = [];
  /** Ranges written once more since the last sync. */
  #rewritten: [from: number, to: number][] = [];

  constructor(mode: number, modifiedMs: number) {
    this.mode = mode;
    this.modifiedMs = modifiedMs;
  }

  get length(): number {
    return this.#length;
  }

  get unsynced(): number {
    if (this.#durableCopy === undefined) return this.#length - this.#durableLength;
    return Math.max(1, this.#length);
  }

  slice(from: number, to: number): Uint8Array {
    return this.#data.slice(from, Math.min(to, this.#length));
  }

  /** The content that a crash which loses all else leaves. */
  get durable(): Uint8Array {
    const bytes = this.#durableCopy?.slice() ?? this.slice(0, this.#durableLength);
    for (const [from, to] of this.#dropped) bytes.fill(0, from, Math.min(to, bytes.length));
    return bytes;
  }

  append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#data.length) {
      const grown = new Uint8Array(Math.max(length, this.#data.length * 2, 1024));
      grown.set(this.#data.subarray(0, this.#length));
      this.#data = grown;
    }
    this.#data.set(bytes, this.#length);
    this.#length = length;
  }

  truncate(length: number): void {
    if (length < this.#durableLength) this.#keepDurable();
    if (length > this.#length) this.append(new Uint8Array(length - this.#length));
    this.#length = length;
    this.#dropped = this.#dropped.filter(([from]) => from < length);
  }

  replace(bytes: Uint8Array): void {
    this.truncate(0);
    this.append(bytes);
  }

  /** Written once more in place: the next sync covers it, whatever an earlier one gave up. */
  rewrite(offset: number, bytes: Uint8Array): void {
    this.#data.set(bytes, offset);
    this.#rewritten.push([offset, offset + bytes.length]);
  }

  /** What is there now becomes durable, up to `length` as it was when the sync began. */
  sync(length: number): void {
    this.#durableLength = Math.min(length, this.#length);
    this.#durableCopy = undefined;
    const again = this.#rewritten.splice(0);
    this.#dropped = this.#dropped.filter(([from, to]) =>
      !again.some((range) => range[0] <= from && Math.min(to, this.#length) <= range[1])
    );
  }

  /** The system gives up writing what isn't durable, and forgets that it has to. */
  dropUnsynced(): void {
    this.#dropped.push([this.#durableLength, this.#length]);
  }

  /** Any bytes changed in place, durably: as a faulty medium does. */
  damage(change: (bytes: Uint8Array) => Uint8Array): void {
    this.#data = new Uint8Array(change(this.slice(0, this.#length)));
    this.#length = this.#data.length;
    this.sync(this.#length);
  }

  /** The same file as another machine, or the same one later, would have it. */
  copy(): FileNode {
    const copy = new FileNode(this.mode, this.modifiedMs);
    copy.#data = this.slice(0, this.#length);
    copy.#length = this.#length;
    copy.#durableLength = this.#durableLength;
    copy.#durableCopy = this.#durableCopy;
    copy.#dropped = [...this.#dropped];
    return copy;
  }

  /** Forgets what a crash loses. */
  settle(kept: number): void {
    if (this.#durableCopy !== undefined) {
      if (kept === 0) {
        this.#data = this.#durableCopy.slice();
        this.#length = this.#data.length;
      }
    } else {
      this.#length = this.#durableLength + Math.min(kept, this.#length - this.#durableLength);
    }
    for (const [from, to] of this.#dropped) this.#data.fill(0, from, Math.min(to, this.#length));
    this.#dropped = [];
    this.sync(this.#length);
  }

  #keepDurable(): void {
    this.#durableCopy ??= this.slice(0, this.#durableLength);
  }
}

/** Names and what they stood for before one operation. */
type NameChange = [name: string, before: DiskNode | undefined][];

export class FolderNode {
  readonly kind = "folder";
  readonly mode: number;
  readonly modifiedMs: number;
  readonly #names = new Map<string, DiskNode>();
  #changes: NameChange[] = [];

  constructor(mode: number, modifiedMs: number) {
    this.mode = mode;
    this.modifiedMs = modifiedMs;
  }

  get names(): string[] {
    return [...this.#names.keys()].sort();
  }

  get unsynced(): number {
    return this.#changes.length;
  }

  get(name: string): DiskNode | undefined {
    return this.#names.get(name);
  }

  /** Changes names in one step that a crash keeps or loses as a whole. */
  set(...pairs: [name: string, node: DiskNode | undefined][]): void {
    this.#changes.push(pairs.map(([name]) => [name, this.#names.get(name)]));
    for (const [name, node] of pairs) this.#put(name, node);
  }

  sync(): void {
    this.#changes = [];
  }

  copy(copies: Map<DiskNode, DiskNode>): FolderNode {
    const copy = new FolderNode(this.mode, this.modifiedMs);
    copies.set(this, copy);
    for (const [name, node] of this.#names) copy.#names.set(name, copyOf(node, copies));
    copy.#changes = this.#changes.map((change) =>
      change.map(([name, before]) => [name, before && copyOf(before, copies)])
    );
    return copy;
  }

  settle(path: string, choice: CrashChoice, settled: Set<DiskNode>): void {
    const kept = choice.names(path === "" ? "/" : path, this.#changes.length);
    for (const change of this.#changes.slice(kept).reverse()) {
      for (const [name, before] of [...change].reverse()) this.#put(name, before);
    }
    this.sync();
    for (const [name, node] of this.#names) {
      if (settled.has(node)) continue;
      settled.add(node);
      const below = `${path}/${name}`;
      if (node.kind === "folder") node.settle(below, choice, settled);
      else node.settle(choice.bytes(below, node.unsynced));
    }
  }

  #put(name: string, node: DiskNode | undefined): void {
    if (node === undefined) this.#names.delete(name);
    else this.#names.set(name, node);
  }
}

function copyOf(node: DiskNode, copies: Map<DiskNode, DiskNode>): DiskNode {
  const known = copies.get(node);
  if (known !== undefined) return known;
  const copy = node.kind === "folder" ? node.copy(copies) : node.copy();
  copies.set(node, copy);
  return copy;
}
