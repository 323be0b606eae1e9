/** Whether servers could be started at all: the shell that watches over them is there, and the folders of the daemon that holds them can be relied upon. */
import { programFacts } from "../../base/command_path.ts";
import { secureStateFolder, socketFolderFault, socketPath } from "../../base/daemon_files.ts";
import { SysError } from "../../base/errors.ts";
import type { RnixPaths } from "../../base/paths.ts";
import { dirname } from "../../base/posix_path.ts";
import type { Storage } from "../../base/storage.ts";

/** Ends what a daemon leaves behind; started by its whole path. */
const SHELL = "/bin/sh";

/** Why no server could be started, a clause; undefined when nothing stands in the way. Nothing is made. */
export async function transportFault(
  storage: Storage,
  paths: RnixPaths,
  uid: number,
): Promise<string | undefined> {
  const shell = await programFacts(SHELL);
  if (shell === undefined || !shell.isFile) return `there is no ${SHELL}`;
  try {
    await secureStateFolder(storage, paths.state, uid);
    const folder = dirname(socketPath(paths.state, paths.runtime, uid));
    const facts = await storage.stat(folder);
    const fault = facts === undefined ? undefined : socketFolderFault(facts, uid);
    return fault === undefined ? undefined : `${folder} can't hold the daemon's socket: ${fault}`;
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    return `${thrown.device ?? paths.state}: ${thrown.message}`;
  }
}
