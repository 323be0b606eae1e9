/**
 * Open files of one process. Descriptors start at 3; the lowest free one is given, as POSIX has it.
 *
 * A file is read in pieces: the first read after an open or a write takes what the device gives, and later ones go on in it until nothing is left, so pieces belong together whatever becomes of the device meanwhile.
 */
import { SysError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { CallOptions, DeviceFile, DeviceOutcome } from "./device.ts";

export const FD_FIRST = 3;

const NOTHING = new Uint8Array();

/** An open file, as `/proc/{pid}/fd` shows it. */
export interface OpenDescriptor {
  fd: number;
  path: string;
}

interface OpenFile {
  file: DeviceFile;
  path: string;
  /** What is being read, once it is. */
  content: Promise<Uint8Array> | undefined;
  offset: number;
}

export class FdTable {
  readonly #files: (OpenFile | undefined)[] = [];

  open(file: DeviceFile, path = ""): number {
    const free = this.#files.indexOf(undefined);
    const index = free < 0 ? this.#files.length : free;
    this.#files[index] = { file, path, content: undefined, offset: 0 };
    return FD_FIRST + index;
  }

  /** What is open now, by descriptor. */
  list(): OpenDescriptor[] {
    return this.#files.flatMap((open, index) =>
      open === undefined ? [] : [{ fd: FD_FIRST + index, path: open.path }]
    );
  }

  /** Throws INVALID for a descriptor that isn't open. */
  get(fd: number): DeviceFile {
    return this.#at(fd, "Read").file;
  }

  /** Writes; what is read after it begins anew. Throws INVALID for a descriptor that isn't open. */
  write(fd: number, input: Json, options: CallOptions): Promise<DeviceOutcome> {
    const open = this.#at(fd, "Write");
    open.content = undefined;
    open.offset = 0;
    return open.file.write(input, options);
  }

  /** At most `length` bytes, none at the end. Rejects with the device's error, and with INVALID for a descriptor that isn't open, or is closed while it is read. */
  async read(fd: number, length: number): Promise<Uint8Array> {
    const open = this.#at(fd, "Read");
    open.content ??= open.file.read();
    const { content } = open;
    let bytes: Uint8Array;
    try {
      bytes = await content;
    } catch (thrown) {
      // The next read asks again.
      if (open.content === content) open.content = undefined;
      throw thrown;
    }
    if (this.#files[fd - FD_FIRST] !== open) throw notOpen(fd, "Read");
    // Written to meanwhile: these bytes are nobody's any more.
    if (open.content !== content) return NOTHING;
    const piece = bytes.subarray(open.offset, open.offset + Math.max(0, length));
    open.offset += piece.length;
    return piece;
  }

  /** Closes the file and frees its descriptor. Idempotent. */
  close(fd: number): void {
    const index = fd - FD_FIRST;
    this.#files[index]?.file.close();
    if (index >= 0 && index < this.#files.length) this.#files[index] = undefined;
  }

  closeAll(): void {
    for (let index = 0; index < this.#files.length; index += 1) this.close(FD_FIRST + index);
  }

  #at(fd: number, syscall: "Read" | "Write"): OpenFile {
    const open = this.#files[fd - FD_FIRST];
    if (open === undefined) throw notOpen(fd, syscall);
    return open;
  }
}

function notOpen(fd: number, syscall: "Read" | "Write"): SysError {
  return new SysError("INVALID", `Descriptor ${fd} is not open`, { syscall });
}
