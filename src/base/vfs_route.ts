/** The VFS as one: each path is answered by who has it, the state folder or the process at work. */
import { SysError } from "./errors.ts";
import type { LiveSystem, Reader } from "./operations.ts";
import { answererOf, type VfsAnswer, type VfsRequest } from "./vfs_operations.ts";

type Vfs = Pick<LiveSystem, "vfs">;

/** `live` is undefined where nothing is at work: then nothing has devices, and the reader says what there is instead. */
export async function vfsBy(
  request: VfsRequest,
  { live, reader }: { live: Vfs | undefined; reader: Pick<Reader, "vfs"> },
  signal?: AbortSignal,
): Promise<VfsAnswer> {
  const answerer = answererOf(request);
  if (answerer === "stored" || live === undefined) return await reader.vfs(request);
  if (answerer === "live") return await live.vfs(request, signal);
  try {
    return await live.vfs(request, signal);
  } catch (thrown) {
    if (!(thrown instanceof SysError) || thrown.code !== "NOT_FOUND") throw thrown;
    return await reader.vfs(request);
  }
}
