/** Which device is mounted where. A path belongs to the longest mount point that begins it. */
import { SysError } from "../base/errors.ts";
import type { Device } from "./device.ts";

export interface Resolved {
  mountPoint: string;
  device: Device;
  /** What follows the mount point, without a leading slash. */
  rest: string;
}

export class MountTable {
  readonly #mounts = new Map<string, Device>();

  /** Throws ALREADY_MOUNTED where something is mounted. */
  mount(path: string, device: Device): void {
    if (this.#mounts.has(path)) {
      throw new SysError("ALREADY_MOUNTED", "Something is mounted here already", {
        syscall: "Mount",
        device: path,
      });
    }
    this.#mounts.set(path, device);
  }

  /** Idempotent. */
  unmount(path: string): void {
    this.#mounts.delete(path);
  }

  /** Mount points, sorted. */
  paths(): string[] {
    return [...this.#mounts.keys()].sort();
  }

  /** Names of what is directly below `folder`, where something is mounted there or deeper, sorted; none where `folder` is nothing. */
  below(folder: string): string[] {
    const start = folder === "/" ? "/" : `${folder}/`;
    const names = this.paths().filter((path) => path.startsWith(start))
      .map((path) => path.slice(start.length).split("/", 1)[0] ?? "");
    return [...new Set(names)];
  }

  /** Throws NOT_FOUND, listing what is mounted. */
  resolve(path: string): Resolved {
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
      const mountPoint = path.slice(0, end);
      const device = this.#mounts.get(mountPoint);
      if (device) return { mountPoint, device, rest: path.slice(end + 1) };
    }
    throw new SysError("NOT_FOUND", "Nothing is mounted there", {
      syscall: "Open",
      device: path,
      hint: `Mounted: ${this.paths().join(", ") || "nothing"}`,
    });
  }
}
