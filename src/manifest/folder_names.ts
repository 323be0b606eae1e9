/** Looks into folders that may not be there, or may not be looked into. */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";

/** Names in a folder; none where it can't be read. */
export async function namesIn(storage: Storage, folder: string): Promise<string[]> {
  try {
    return await storage.list(folder);
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return [];
    if (thrown instanceof SysError && thrown.code === "PERMISSION") return [];
    throw thrown;
  }
}

/** Whether there is something that may be looked at. */
export async function exists(storage: Storage, path: string): Promise<boolean> {
  try {
    return await storage.stat(path) !== undefined;
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "PERMISSION") return false;
    throw thrown;
  }
}
