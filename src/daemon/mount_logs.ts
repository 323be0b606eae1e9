/**
 * What mounted servers said on stderr, as the run's folder keeps it: also of a server that failed to start, after its end, and live.
 *
 * Lines come in the order in which they were written, the replaced file first. Where the server isn't mounted because mounting it failed, that failure is the last line.
 */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { LogLine, LogReading } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import { probeLease, readRun } from "../journal/mod.ts";
import type { EntryOf } from "../journal/entry.ts";
import { readLogLine } from "../mcp/log_line.ts";
import { followLines } from "./followed_lines.ts";
import type { Runs } from "./runs.ts";

const LOG_END = ".stderr.log";
/** How a message leads over to the lines of stderr that it quotes. */
const STDERR_QUOTE = /;[^;]*stderr:$/;

/** Where the logs are read. */
export interface LogPlace {
  storage: Storage;
  runs: Runs;
  clock: Clock;
}

/** Lines of `mount`: `{pid}-{server}`, or a server's name for the newest run that has it. Throws NOT_FOUND (exit 2), naming the mounts there are. */
export async function* mountLogLines(
  place: LogPlace,
  mount: string,
  reading: LogReading = {},
): AsyncGenerator<LogLine> {
  const { storage, runs, clock } = place;
  const { runId, server } = await findMount(place, mount);
  const folder = runs.folderOf(runId);
  const path = `${folder}/mounts/${server}${LOG_END}`;
  const isLive = async () => await probeLease(storage, folder) !== undefined;
  const lines = followLines({
    storage,
    clock,
    path,
    before: `${path}.1`,
    isLive: reading.follow === true ? isLive : undefined,
    signal: reading.signal,
    withHalf: true,
  });
  const line = (text: string): LogLine => ({ server, run_id: runId, ...readLogLine(text) });
  for await (const text of lastLines(lines, reading.lines)) yield line(text);
  if (reading.signal?.aborted) return;
  const failure = await failureOf(storage, folder, server);
  if (failure !== undefined) {
    yield { server, run_id: runId, source: "rnix", text: `It was not mounted: ${failure}` };
  }
}

/** Of what is there at first only the last `count` lines; all that comes later. */
async function* lastLines(
  lines: AsyncIterable<string | undefined>,
  count: number | undefined,
): AsyncGenerator<string> {
  let held: string[] | undefined = count === undefined ? undefined : [];
  for await (const line of lines) {
    if (held === undefined) {
      if (line !== undefined) yield line;
    } else if (line === undefined) {
      yield* held;
      held = undefined;
    } else {
      held.push(line);
      if (held.length > (count ?? 0)) held.shift();
    }
  }
}

/** Why the server isn't mounted, where the last thing known of it is that mounting it failed. */
async function failureOf(
  storage: Storage,
  folder: string,
  server: string,
): Promise<string | undefined> {
  const last = (await mountEntries(storage, folder)).get(server);
  if (last?.type !== "mount.failed") return undefined;
  const { code, message, hint } = last.error;
  // What a message quotes of stderr stands above already.
  const [first = ""] = message.split("\n");
  const cause = first === message ? message : first.replace(STDERR_QUOTE, "");
  return `[${code}] ${cause}${hint === undefined ? "" : ` (${hint})`}`;
}

type MountEntry = EntryOf<"mount.ready" | "mount.changed"> | EntryOf<"mount.failed">;

/** The last entry on each server; none where the journal can't be read. */
async function mountEntries(storage: Storage, folder: string): Promise<Map<string, MountEntry>> {
  const last = new Map<string, MountEntry>();
  await readRun(storage, folder, (entry) => {
    const { type } = entry;
    if (type === "mount.ready" || type === "mount.changed" || type === "mount.failed") {
      last.set(entry.server, entry);
    }
  }).catch(() => {});
  return last;
}

async function findMount(
  place: LogPlace,
  mount: string,
): Promise<{ runId: string; server: string }> {
  const { runs } = place;
  const [, pid, wanted] = /^(\d+)-(.+)$/.exec(mount) ?? [];
  if (pid !== undefined && wanted !== undefined) {
    const runId = await runs.find(pid);
    const servers = await serversOf(place, runId, wanted);
    if (servers.includes(wanted)) return { runId, server: wanted };
    throw noMount(mount, servers.map((server) => `${pid}-${server}`));
  }
  const known = new Set<string>();
  for (const runId of (await runs.ids()).reverse()) {
    const servers = await serversOf(place, runId, mount);
    if (servers.includes(mount)) return { runId, server: mount };
    for (const server of servers) known.add(server);
  }
  throw noMount(mount, [...known].sort());
}

/** Servers that have a log; where `wanted` isn't one, also those that came to nothing before there was one. */
async function serversOf(
  { storage, runs }: LogPlace,
  runId: string,
  wanted: string,
): Promise<string[]> {
  const folder = runs.folderOf(runId);
  const logged = await loggedServers(storage, folder);
  if (logged.includes(wanted)) return logged;
  const named = [...(await mountEntries(storage, folder)).keys()];
  return [...new Set([...logged, ...named])].sort();
}

async function loggedServers(storage: Storage, folder: string): Promise<string[]> {
  try {
    const names = await storage.list(`${folder}/mounts`);
    return names.filter((name) => name.endsWith(LOG_END))
      .map((name) => name.slice(0, -LOG_END.length));
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return [];
    throw thrown;
  }
}

function noMount(mount: string, known: string[]): SysError {
  return new SysError("NOT_FOUND", `There is no mount "${mount}" with a log`, {
    exitCode: EXIT_USAGE,
    hint: known.length === 0 ? "Nothing of that kind was mounted" : `Known: ${known.join(", ")}`,
  });
}
