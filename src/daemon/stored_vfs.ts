/** The part of the VFS that is read from the state folder, without a daemon: `/`, `/mnt`, the mounts there are, and `/proc`. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { MountRow } from "../base/operations.ts";
import { placeOf, plainPath, type VfsAnswer, type VfsRequest } from "../base/vfs_operations.ts";
import { type ProcDeps, procNode } from "./proc_files.ts";
import { answerOf, nothingMounted, notThere, type OwnNode } from "./vfs_nodes.ts";

export interface StoredVfsDeps extends ProcDeps {
  mounts(): Promise<MountRow[]>;
}

/** Rejects with NOT_FOUND, INVALID or PERMISSION (exit 2), or JOURNAL_DAMAGED. */
export async function storedVfs(deps: StoredVfsDeps, request: VfsRequest): Promise<VfsAnswer> {
  const path = plainPath(request.path);
  const { operation, pid } = request;
  const { node, owner } = await nodeAt(deps, path, pid);
  return await answerOf(node, { operation, path, pid: owner });
}

async function nodeAt(
  deps: StoredVfsDeps,
  path: string,
  self: number | undefined,
): Promise<{ node: OwnNode; owner: number | undefined }> {
  const place = placeOf(path, self);
  switch (place.area) {
    case "above":
      return { node: folder(() => Promise.resolve(place.names)), owner: undefined };
    case "dev":
    case "mcp":
      if (place.area === "dev" || place.mount !== undefined) {
        const owner = self ?? (place.area === "mcp" ? place.owner : undefined);
        throw owner === undefined ? whose(path) : await ended(deps, path, owner);
      }
      return { node: folder(() => mountNames(deps, self)), owner: self };
    case "proc": {
      const { pid, name, rest } = place;
      if (pid !== undefined) {
        if (self !== undefined && !await isSame(deps, self, pid)) throw anothers(path);
        return { node: await procNode(deps, String(pid), { name, rest, path }), owner: pid };
      }
      if (name !== undefined) throw whose(path);
      return { node: folder(() => pidNames(deps, self)), owner: undefined };
    }
    default:
      throw notThere(path, ["/proc", "/mnt/mcp", ...(self === undefined ? [] : ["/dev"])]);
  }
}

/** Only a process at work has devices. */
async function ended({ runs }: StoredVfsDeps, path: string, pid: number): Promise<SysError> {
  return nothingMounted(await runs.view(await runs.find(String(pid))), path, pid);
}

function folder(names: () => Promise<string[]>): OwnNode {
  return { kind: "folder", names };
}

async function mountNames(
  { mounts, runs }: StoredVfsDeps,
  self: number | undefined,
): Promise<string[]> {
  const rows = (await mounts()).filter(({ status }) => status === "connected");
  if (self === undefined) return rows.map(({ mount }) => mount).sort();
  const own = await runs.view(await runs.find(String(self)));
  return rows.filter(({ pid }) => pid === own.ledger.pid).map(({ server }) => server).sort();
}

async function pidNames({ runs }: StoredVfsDeps, self: number | undefined): Promise<string[]> {
  if (self !== undefined) return [String(self), "self"];
  const ids = new Set(await runs.ids());
  const pids = [...await runs.newestPids()].filter(([runId]) => ids.has(runId));
  return pids.map(([, pid]) => pid).sort((a, b) => a - b).map(String);
}

/** Whether two pids are of one run. */
async function isSame({ runs }: StoredVfsDeps, one: number, other: number): Promise<boolean> {
  return one === other || await runs.find(String(one)) === await runs.find(String(other));
}

function anothers(path: string): SysError {
  return new SysError("PERMISSION", "It belongs to another process", {
    syscall: "Open",
    device: path,
    exitCode: EXIT_USAGE,
    hint: "With --pid a path is seen as that process sees it, and it sees its own alone",
  });
}

/** For what is there only in a process's own view. */
export function whose(path: string): SysError {
  return new SysError("INVALID", "The path is there only in a process's own view", {
    syscall: "Open",
    device: path,
    exitCode: EXIT_USAGE,
    hint: "Say whose with --pid N; rnix ps lists the processes",
  });
}
