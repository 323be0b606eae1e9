/**
 * The real `Storage`, on Deno's files.
 *
 * Files are open in append mode, so a write always lands at the end whatever was read before. Reading and appending block the event loop for as long as a copy to or from the page cache takes; only syncs leave it.
 */
import { SysError } from "./errors.ts";
import type { ErrorCode } from "./errors.ts";
import type { FileFacts, Storage, StorageFile } from "./storage.ts";

const CODES: { [systemCode: string]: ErrorCode } = {
  ENOENT: "NOT_FOUND",
  ENOTDIR: "NOT_FOUND",
  EEXIST: "INVALID",
  ENOSPC: "RESOURCE_EXHAUSTED",
  EDQUOT: "RESOURCE_EXHAUSTED",
  EMFILE: "RESOURCE_EXHAUSTED",
  ENFILE: "RESOURCE_EXHAUSTED",
  EACCES: "PERMISSION",
  EPERM: "PERMISSION",
  EROFS: "PERMISSION",
};

/** What went wrong, in words that don't repeat the path: the runtime's own would, and may speak of its flags. */
const CAUSES: { [systemCode: string]: string } = {
  ENOENT: "No such file or folder",
  ENOTDIR: "A part of the path is not a folder",
  EEXIST: "File exists",
  ENOSPC: "No space left on device",
  EDQUOT: "Disk quota exceeded",
  EMFILE: "Too many open files",
  ENFILE: "Too many open files in the system",
  EACCES: "Permission denied",
  EPERM: "Operation not permitted",
  EROFS: "File system is read-only",
  EISDIR: "Is a folder",
  ENOTEMPTY: "Folder is not empty",
  ELOOP: "Too many links",
  ENAMETOOLONG: "Name is too long",
  EIO: "Input/output error",
};

const HINTS: { [code: string]: string } = {
  RESOURCE_EXHAUSTED: "Free space (or open files) and try again",
};

/** Calls that only read. */
const READS: ReadonlySet<string> = new Set(["Read", "List", "Stat"]);

function hintOf(code: ErrorCode, syscall: string): string | undefined {
  if (code !== "PERMISSION") return HINTS[code];
  const deed = syscall === "Open" ? "open it" : READS.has(syscall) ? "read it" : "write there";
  return `The user needs to be able to ${deed}`;
}

function causeOf(thrown: unknown): string {
  const known = CAUSES[systemCodeOf(thrown) ?? ""];
  if (known !== undefined) return known;
  if (thrown instanceof Deno.errors.NotCapable) {
    return "rnix may not use this path: it leads to a place that is closed to it";
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return message.replace(/ \(os error \d+\)/, "").replace(/: [a-z]+ '[^]*'$/, "");
}

function systemCodeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

function codeOf(thrown: unknown): ErrorCode {
  const known = CODES[systemCodeOf(thrown) ?? ""];
  if (known !== undefined) return known;
  if (thrown instanceof Deno.errors.NotFound) return "NOT_FOUND";
  if (thrown instanceof Deno.errors.AlreadyExists) return "INVALID";
  if (
    thrown instanceof Deno.errors.PermissionDenied || thrown instanceof Deno.errors.NotCapable
  ) return "PERMISSION";
  return "DRIVER";
}

/** What a failed system call becomes: `syscall` in the words of strace, `path` as the device. */
export function storageError(thrown: unknown, syscall: string, path: string): SysError {
  if (thrown instanceof SysError) return thrown;
  const code = codeOf(thrown);
  return new SysError(code, causeOf(thrown), {
    syscall,
    device: path,
    hint: hintOf(code, syscall),
    cause: thrown,
  });
}

function attempt<T>(syscall: string, path: string, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw storageError(thrown, syscall, path);
  }
}

async function attemptAsync<T>(
  syscall: string,
  path: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw storageError(thrown, syscall, path);
  }
}

function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length;) {
    written += file.writeSync(written === 0 ? bytes : bytes.subarray(written));
  }
}

class DiskFile implements StorageFile {
  readonly path: string;
  readonly #file: Deno.FsFile;
  readonly #dev: number;
  readonly #ino: number | null;
  readonly #isReadOnly: boolean;
  #locked = false;
  #closed = false;

  constructor(path: string, file: Deno.FsFile, isReadOnly = false) {
    this.path = path;
    this.#file = file;
    this.#isReadOnly = isReadOnly;
    const facts = file.statSync();
    this.#dev = facts.dev;
    this.#ino = facts.ino;
  }

  append(bytes: Uint8Array): void {
    this.#requireWritable();
    attempt("Write", this.path, () => writeAll(this.#file, bytes));
  }

  sync(): Promise<void> {
    return attemptAsync("Sync", this.path, () => this.#file.syncData());
  }

  size(): number {
    return attempt("Stat", this.path, () => this.#file.statSync().size);
  }

  /** Seek and read are one step of the event loop, so that two readers of one handle never mix. */
  readAt(offset: number, length: number): Promise<Uint8Array> {
    // deno-lint-ignore require-await -- failures must reject, not throw
    return attemptAsync("Read", this.path, async () => {
      const bytes = new Uint8Array(length);
      this.#file.seekSync(offset, Deno.SeekMode.Start);
      let filled = 0;
      while (filled < length) {
        const count = this.#file.readSync(bytes.subarray(filled));
        if (count === null || count === 0) break;
        filled += count;
      }
      return filled === length ? bytes : bytes.subarray(0, filled);
    });
  }

  truncate(length: number): Promise<void> {
    return attemptAsync("Truncate", this.path, async () => {
      this.#requireWritable();
      await this.#file.truncate(length);
    });
  }

  overwrite(bytes: Uint8Array): void {
    this.#requireWritable();
    attempt("Write", this.path, () => {
      this.#file.truncateSync(0);
      writeAll(this.#file, bytes);
    });
  }

  /** Through a handle of its own: this one appends, wherever it stands. */
  rewrite(offset: number, bytes: Uint8Array): void {
    this.#requireWritable();
    attempt("Write", this.path, () => {
      const file = Deno.openSync(this.path, { write: true });
      try {
        const { dev, ino } = file.statSync();
        if (dev !== this.#dev || ino !== this.#ino) {
          throw new SysError("DRIVER", "The file was replaced by another", {
            syscall: "Write",
            device: this.path,
          });
        }
        file.seekSync(offset, Deno.SeekMode.Start);
        writeAll(file, bytes);
      } finally {
        file.close();
      }
    });
  }

  #requireWritable(): void {
    if (!this.#isReadOnly) return;
    throw new SysError("PERMISSION", "File is open for reading alone", {
      syscall: "Write",
      device: this.path,
    });
  }

  tryLock(mode: "exclusive" | "shared"): boolean {
    const isMine = attempt("Lock", this.path, () => this.#file.tryLockSync(mode === "exclusive"));
    this.#locked ||= isMine;
    return isMine;
  }

  unlock(): void {
    attempt("Unlock", this.path, () => this.#file.unlockSync());
    this.#locked = false;
  }

  isCurrent(path: string = this.path): boolean {
    try {
      const facts = Deno.lstatSync(path);
      return facts.ino === this.#ino && facts.dev === this.#dev;
    } catch {
      return false;
    }
  }

  /** Unlocks first: a child that is being started has a copy of every open file until it runs its program, and closing alone would leave the lock to that. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      if (this.#locked) this.#file.unlockSync();
    } catch {
      // Closing frees it as well, if later.
    }
    this.#file.close();
  }
}

function kindOf(facts: Deno.FileInfo): FileFacts["kind"] {
  if (facts.isSymlink) return "link";
  if (facts.isDirectory) return "folder";
  return facts.isFile ? "file" : "other";
}

async function factsOf(
  path: string,
  look: (path: string) => Promise<Deno.FileInfo>,
): Promise<FileFacts | undefined> {
  try {
    const facts = await look(path);
    return {
      kind: kindOf(facts),
      sizeBytes: facts.size,
      modifiedMs: facts.mtime?.getTime() ?? 0,
      mode: facts.mode === null ? undefined : facts.mode & 0o7777,
      uid: facts.uid ?? undefined,
      ...(facts.nlink === null ? {} : { links: facts.nlink }),
      deviceId: facts.dev,
    };
  } catch (thrown) {
    // Nothing can be there under a name that no file system takes.
    if (codeOf(thrown) === "NOT_FOUND" || systemCodeOf(thrown) === "ENAMETOOLONG") return undefined;
    throw storageError(thrown, "Stat", path);
  }
}

async function namesIn(path: string): Promise<string[]> {
  const names: string[] = [];
  for await (const item of Deno.readDir(path)) names.push(item.name);
  return names.sort();
}

async function syncFolder(path: string): Promise<void> {
  using folder = await Deno.open(path);
  await folder.sync();
}

/** The machine's own disk. */
export const disk: Storage = {
  open: (path, options = {}) =>
    attemptAsync("Open", path, async () => {
      const { create = false, createNew = false, mode = 0o600 } = options;
      const file = await Deno.open(path, {
        read: true,
        append: true,
        create: create || createNew,
        createNew,
        ...(create || createNew ? { mode } : {}),
      });
      return new DiskFile(path, file);
    }),
  openToRead: (path) =>
    attemptAsync("Open", path, async () => new DiskFile(path, await Deno.open(path), true)),
  read: (path) => attemptAsync("Read", path, () => Deno.readFile(path)),
  list: (path) => attemptAsync("List", path, () => namesIn(path)),
  stat: (path) => factsOf(path, Deno.lstat),
  statTarget: (path) => factsOf(path, Deno.stat),
  makeFolder: (path, mode) =>
    attemptAsync("MakeFolder", path, () => Deno.mkdir(path, { recursive: true, mode })),
  rename: (from, to) => attemptAsync("Rename", from, () => Deno.rename(from, to)),
  hardLink: (from, to) => attemptAsync("Link", from, () => Deno.link(from, to)),
  remove: (path, options = {}) =>
    attemptAsync(
      "Remove",
      path,
      () => Deno.remove(path, { recursive: options.recursive ?? false }),
    ),
  syncFolder: (path) => attemptAsync("Sync", path, () => syncFolder(path)),
};
