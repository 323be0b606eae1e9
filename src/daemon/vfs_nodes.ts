/** Nodes of the VFS that rnix itself has, folders and files that can only be read, and what each operation makes of them. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { shortRunId } from "../base/ids.ts";
import { nearest } from "../base/nearest.ts";
import type { ProcessState } from "../base/operations.ts";
import type { VfsAnswer, VfsOperation } from "../base/vfs_operations.ts";

export type OwnNode =
  | { kind: "folder"; names(): Promise<string[]> }
  | { kind: "file"; read(): Promise<string> };

/** What an operation gives on such a node. Throws INVALID for what it can't be done to. */
export async function answerOf(
  node: OwnNode,
  { operation, path, pid }: { operation: VfsOperation; path: string; pid: number | undefined },
): Promise<VfsAnswer> {
  if (operation === "stat") {
    const owner = pid === undefined ? {} : { pid };
    return { kind: "node", node: { path, kind: node.kind, writable: false, ...owner } };
  }
  if (operation === "write") {
    throw refused(operation, path, "It can only be read", "What can be written to are tools");
  }
  if (node.kind === "folder") {
    if (operation === "list") return { kind: "names", path, names: await node.names() };
    throw refused(operation, path, "It is a folder", `List it: rnix ls ${path}`);
  }
  if (operation === "list") {
    throw refused(operation, path, "It is a file", `Read it: rnix cat ${path}`);
  }
  return { kind: "content", path, text: await node.read() };
}

/** NOT_FOUND (exit 2) with what there is instead. */
export function notThere(path: string, names: readonly string[]): SysError {
  const near = nearest(path.split("/").at(-1) ?? "", names);
  const all = names.join(", ") || "nothing";
  return new SysError("NOT_FOUND", "There is no such path", {
    device: path,
    exitCode: EXIT_USAGE,
    hint: near === undefined ? `There is: ${all}` : `Did you mean ${near}? There is: ${all}`,
  });
}

/** NOT_FOUND (exit 2) for the devices of a process that has none now. */
export function nothingMounted(
  { runId, state }: { runId: string; state: ProcessState },
  path: string,
  pid: number,
): SysError {
  const run = shortRunId(runId);
  return new SysError("NOT_FOUND", `Run ${run} (pid ${pid}) has nothing mounted`, {
    device: path,
    exitCode: EXIT_USAGE,
    hint: state === "dead"
      ? `It has ended; rnix ls /proc/${pid} shows what is left`
      : `It is suspended: rnix resume ${run} mounts its servers again`,
  });
}

function refused(operation: VfsOperation, path: string, message: string, hint: string): SysError {
  return new SysError("INVALID", message, {
    syscall: SYSCALLS[operation],
    device: path,
    exitCode: EXIT_USAGE,
    hint,
  });
}

const SYSCALLS: { readonly [operation in VfsOperation]: string } = {
  list: "List",
  stat: "Stat",
  read: "Read",
  write: "Write",
};
