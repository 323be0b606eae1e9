/** The part of the VFS that only processes at work have: their mounts and devices, their open descriptors, the health of what they have mounted. Everything on a device passes the gate of the process that owns it. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { placeOf, plainPath, type VfsAnswer, type VfsRequest } from "../base/vfs_operations.ts";
import type { LiveRun } from "../kernel/launch.ts";
import type { Access } from "../kernel/operator_gate.ts";
import type { Runs } from "./runs.ts";
import { whose } from "./stored_vfs.ts";
import { liveMounts, mountLines } from "./vfs_mounts.ts";
import { answerOf, nothingMounted, notThere, type OwnNode } from "./vfs_nodes.ts";

export interface LiveVfsDeps {
  runs: Runs;
  /** The run at work of this id. */
  live(runId: string): LiveRun | undefined;
}

/** Rejects as `Incarnation.access` does, with NOT_FOUND (exit 2) for a process that isn't there or not at work, and with PERMISSION for what another has. */
export async function liveVfs(
  deps: LiveVfsDeps,
  request: VfsRequest,
  signal: AbortSignal,
): Promise<VfsAnswer> {
  const path = plainPath(request.path);
  const place = placeOf(path, request.pid);
  const owner = place.area === "mcp" ? place.owner : place.area === "proc" ? place.pid : undefined;
  const pid = request.pid ?? owner;
  if (pid === undefined) throw whose(path);
  const run = await atWork(deps, pid, path);
  if (place.area === "proc" && place.name !== "results") {
    const { operation } = request;
    return await answerOf(procNode(run, place, path), { operation, path, pid: run.pid });
  }
  const own = await ownPath(deps, run, { path, owner });
  const access: Access = request.operation === "write"
    ? { operation: "write", path: own, input: request.input ?? {} }
    : { operation: request.operation, path: own };
  return await run.access(access, signal).catch((thrown) => {
    throw thrown instanceof SysError ? thrown.with({ exitCode: exitOf(thrown) }) : thrown;
  });
}

/** Usage or not found is 2, as everywhere; what went wrong on the way is 1. */
function exitOf({ code, exitCode }: SysError): number | undefined {
  return ["NOT_FOUND", "INVALID", "PERMISSION"].includes(code) ? EXIT_USAGE : exitCode;
}

async function atWork({ runs, live }: LiveVfsDeps, pid: number, path: string): Promise<LiveRun> {
  const runId = await runs.find(String(pid));
  const run = live(runId);
  if (run !== undefined) return run;
  throw nothingMounted(await runs.view(runId), path, pid);
}

/** A pid that the run had before stands for the one that it has. */
async function ownPath(
  { runs }: LiveVfsDeps,
  { runId, pid }: LiveRun,
  { path, owner }: { path: string; owner: number | undefined },
): Promise<string> {
  if (owner === undefined || owner === pid) return path;
  const ofOwner = await runs.find(String(owner)).catch(() => undefined);
  return ofOwner === runId ? path.replace(`/mnt/mcp/${owner}-`, `/mnt/mcp/${pid}-`) : path;
}

function procNode(
  run: LiveRun,
  { name, rest }: { name?: string; rest: string },
  path: string,
): OwnNode {
  const facts = run.look();
  if (name === "mounts") {
    return { kind: "file", read: () => Promise.resolve(mountLines(liveMounts(facts))) };
  }
  const open = facts.descriptors;
  const names = open.map(({ fd }) => String(fd));
  if (rest === "") return { kind: "folder", names: () => Promise.resolve(names) };
  const found = open.find(({ fd }) => String(fd) === rest);
  if (found === undefined) throw notThere(path, names);
  return { kind: "file", read: () => Promise.resolve(`${found.path}\n`) };
}
