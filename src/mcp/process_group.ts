/** Ends a child and its whole process group: first asked, then made to. */
import process from "node:process";
import type { Clock } from "../base/clock.ts";
import { sleep, within } from "../base/clock.ts";

/** Between the end of stdin and SIGTERM: what a server that goes by itself needs. */
export const STDIN_GRACE_MS = 500;
/** Between SIGTERM and SIGKILL. */
export const TERM_GRACE_MS = 5_000;
/** How long the death of a killed child is awaited. */
const REAP_MS_MAX = 1_000;
const POLL_MS = 25;

/** Members of the group $1 that are alive; zombies that nobody reaps, or that somebody is just reaping, don't count. */
const LIVING_MEMBERS = `for file in /proc/[0-9]*/stat; do
  IFS= read -r line 2>/dev/null <"$file" || continue
  set -- "$1" \${line##*) }
  [ "$4" = "$1" ] || continue
  case $2 in Z | X | x) ;; *) exit 0 ;; esac
done
exit 1`;

/** Sends to every member of the group; false when there is none. */
export function signalGroup(pgid: number, signal: Deno.Signal): boolean {
  try {
    Deno.kill(-pgid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Whether the group has members, zombies included. */
function groupExists(pgid: number): boolean {
  try {
    return process.kill(-pgid, 0);
  } catch {
    return false;
  }
}

/** Whether the group has a member that lives. Where there is no /proc, zombies count too. */
export async function groupAlive(pgid: number): Promise<boolean> {
  if (!groupExists(pgid)) return false;
  if (Deno.build.os !== "linux") return true;
  try {
    const { success } = await new Deno.Command("/bin/sh", {
      args: ["-c", LIVING_MEMBERS, "rnix-group", String(pgid)],
      clearEnv: true,
      cwd: "/",
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).output();
    return success;
  } catch {
    return true;
  }
}

async function groupGone(pgid: number, clock: Clock, limitMs: number): Promise<boolean> {
  const endMs = clock.monotonic() + limitMs;
  for (let pauseMs = POLL_MS; clock.monotonic() < endMs; pauseMs = Math.min(pauseMs * 2, 200)) {
    if (!await groupAlive(pgid)) return true;
    await sleep(clock, pauseMs);
  }
  return !await groupAlive(pgid);
}

/**
 * Ends the child and everything in its group: waits for what goes by itself, then SIGTERM, then SIGKILL. Its stdin must have been closed before.
 *
 * At most {@link STDIN_GRACE_MS} + {@link TERM_GRACE_MS} + 1 s; never throws; the child is reaped when it resolves (unless the kernel itself holds on to it).
 */
export async function endGroup(child: Deno.ChildProcess, clock: Clock): Promise<void> {
  const pgid = child.pid;
  const exited = child.status.then(() => true, () => true);
  await within(clock, STDIN_GRACE_MS, exited, () => false);
  if (signalGroup(pgid, "SIGTERM")) {
    const startMs = clock.monotonic();
    await within(clock, TERM_GRACE_MS, exited, () => false);
    const leftMs = TERM_GRACE_MS - (clock.monotonic() - startMs);
    if (!await groupGone(pgid, clock, leftMs)) signalGroup(pgid, "SIGKILL");
  }
  await within(clock, REAP_MS_MAX, exited, () => false);
}
