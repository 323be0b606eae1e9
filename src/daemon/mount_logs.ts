/** stderr of mounted servers, as the run's folder keeps it: also of a server that failed to start, and after its end. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { LogLine } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import type { Runs } from "./runs.ts";

const LOG_END = ".stderr.log";

/** Lines of `mount`: `{pid}-{server}`, or a server's name for the newest run that has it. Throws NOT_FOUND (exit 2), naming the mounts there are. */
export async function* mountLogLines(
  storage: Storage,
  runs: Runs,
  mount: string,
): AsyncGenerator<LogLine> {
  const { runId, server } = await findMount(storage, runs, mount);
  const base = `${runs.folderOf(runId)}/mounts/${server}${LOG_END}`;
  for (const path of [`${base}.1`, base]) {
    const text = await readIfThere(storage, path);
    if (text === undefined || text === "") continue;
    const lines = text.endsWith("\n") ? text.slice(0, -1) : text;
    for (const line of lines.split("\n")) yield { server, run_id: runId, text: line };
  }
}

async function findMount(
  storage: Storage,
  runs: Runs,
  mount: string,
): Promise<{ runId: string; server: string }> {
  const byPid = /^(\d+)-(.+)$/.exec(mount);
  if (byPid?.[1] !== undefined && byPid[2] !== undefined) {
    const runId = await runs.find(byPid[1]);
    const servers = await serversOf(storage, runs, runId);
    if (servers.includes(byPid[2])) return { runId, server: byPid[2] };
    throw noMount(mount, servers.map((server) => `${byPid[1]}-${server}`));
  }
  const known = new Set<string>();
  for (const runId of (await runs.ids()).reverse()) {
    const servers = await serversOf(storage, runs, runId);
    if (servers.includes(mount)) return { runId, server: mount };
    for (const server of servers) known.add(server);
  }
  throw noMount(mount, [...known].sort());
}

async function serversOf(storage: Storage, runs: Runs, runId: string): Promise<string[]> {
  try {
    const names = await storage.list(`${runs.folderOf(runId)}/mounts`);
    return names.filter((name) => name.endsWith(LOG_END))
      .map((name) => name.slice(0, -LOG_END.length));
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return [];
    throw thrown;
  }
}

async function readIfThere(storage: Storage, path: string): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await storage.read(path));
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
  }
}

function noMount(mount: string, known: string[]): SysError {
  return new SysError("NOT_FOUND", `There is no mount "${mount}" with a log`, {
    exitCode: EXIT_USAGE,
    hint: known.length === 0 ? "Nothing of that kind was mounted" : `Known: ${known.join(", ")}`,
  });
}
