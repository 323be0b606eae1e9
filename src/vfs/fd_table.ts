/** Open files of one process. Descriptors start at 3; the lowest free one is given, as POSIX has it. */
import { SysError } from "../base/errors.ts";
import type { DeviceFile } from "./device.ts";

export const FD_FIRST = 3;

export class FdTable {
  readonly #files: (DeviceFile | undefined)[] = [];

  open(file: DeviceFile): number {
    const free = this.#files.indexOf(undefined);
    const index = free < 0 ? this.#files.length : free;
    this.#files[index] = file;
    return FD_FIRST + index;
  }

  /** Throws INVALID for a descriptor that isn't open. */
  get(fd: number): DeviceFile {
    const file = this.#files[fd - FD_FIRST];
    if (file === undefined) {
      throw new SysError("INVALID", `Descriptor ${fd} is not open`, { syscall: "Read" });
    }
    return file;
  }

  /** Closes the file and frees its descriptor. Idempotent. */
  close(fd: number): void {
    const index = fd - FD_FIRST;
    this.#files[index]?.close();
    if (index >= 0 && index < this.#files.length) this.#files[index] = undefined;
  }

  closeAll(): void {
    for (let index = 0; index < this.#files.length; index += 1) this.close(FD_FIRST + index);
  }
}
