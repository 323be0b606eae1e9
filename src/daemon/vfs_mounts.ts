/** What a process has mounted, as lines like those of Linux's `/proc/mounts`: what, where, kind, options. The first option is `rw` or `ro`, the second, of a server, how its connection fares. */
import type { Storage } from "../base/storage.ts";
import { FILES_DEVICE, SHELL_DEVICE } from "../base/builtin_tools.ts";
import type { HealthRow } from "../base/mount_health.ts";
import type { LiveFacts } from "../kernel/incarnation.ts";
import { mountPoint } from "../kernel/tool_table.ts";
import type { RunView } from "./runs.ts";
import { storedAgent } from "./stored_agent.ts";

/** Mount points of servers begin with it. */
const MOUNT_ROOT = "/mnt/mcp/";

export interface MountLine {
  /** A server's or device's name. */
  source: string;
  path: string;
  kind: "mcp" | "dev" | "proc";
  options: string[];
}

export function mountLines(mounts: readonly MountLine[]): string {
  return mounts.map(({ source, path, kind, options }) =>
    `${source} ${path} ${kind} ${options.join(",")} 0 0\n`
  ).join("");
}

/** Of a process at work: health and all. */
export function liveMounts({ mounts }: LiveFacts): MountLine[] {
  return mounts.map(({ path, health }): MountLine => {
    const source = path.startsWith(MOUNT_ROOT)
      ? path.slice(MOUNT_ROOT.length).replace(/^\d+-/, "")
      : path.split("/").at(-1) ?? path;
    const kind = path.startsWith(MOUNT_ROOT) ? "mcp" : path.startsWith("/proc/") ? "proc" : "dev";
    const options = health === undefined ? [] : [
      health.state,
      `since=${new Date(health.sinceMs).toISOString()}`,
      `attempts=${health.attempts}`,
    ];
    return { source, path, kind, options: [isWritable(path) ? "rw" : "ro", ...options] };
  });
}

/** Health of the servers that a process at work has, as it goes over the wire. */
export function healthRows({ mounts }: LiveFacts): HealthRow[] {
  return mounts.flatMap(({ path, health }): HealthRow[] =>
    health === undefined ? [] : [{
      mount: path.slice(MOUNT_ROOT.length),
      state: health.state,
      since_ms: health.sinceMs,
      attempts: health.attempts,
      ...(health.lastError === undefined ? {} : { last_error: health.lastError }),
    }]
  );
}

/** Of any run, from its folder: what it has, or had last. */
export async function storedMounts(
  storage: Storage,
  folder: string,
  { ledger, state }: RunView,
): Promise<MountLine[]> {
  const { mounts, spec } = ledger.state;
  const servers = Object.keys(mounts).sort().map((server): MountLine => ({
    source: server,
    path: mountPoint(ledger.pid, server),
    kind: "mcp",
    options: ["rw", state === "running" ? "mounted" : "unmounted"],
  }));
  const agent = spec === undefined ? undefined : await storedAgent(storage, folder, spec);
  const tools = agent?.manifest.tools ?? [];
  const devices = [
    ...(tools.some((tool) => tool !== "Bash") ? [FILES_DEVICE] : []),
    ...(tools.includes("Bash") ? [SHELL_DEVICE] : []),
  ];
  const own = devices.map((path): MountLine => ({
    source: path.split("/").at(-1) ?? path,
    path,
    kind: "dev",
    options: ["rw"],
  }));
  return [...own, ...servers];
}

function isWritable(path: string): boolean {
  return !path.startsWith("/dev/llm/");
}
