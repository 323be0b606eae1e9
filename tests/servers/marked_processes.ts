/** Who carries an instance's mark: how tests count what was left behind. */
import assert from "node:assert/strict";

/** Far more than a sweep takes on a loaded machine; what is left behind stays for longer. */
const GONE_MS_MAX = 60_000;

/** OS pids of living processes whose environment carries the mark. */
export async function markedProcesses(instance: string): Promise<number[]> {
  const { stdout } = await new Deno.Command("/bin/sh", {
    args: ["-c", `grep -lsF "RNIX_INSTANCE=$0" /proc/[0-9]*/environ; true`, instance],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin" },
  }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "")
    .map((line) => Number(line.split("/")[2]));
}

/** Waits until nobody carries the mark: a process that was killed goes when the machine comes to it. Fails when something stays. */
export async function noneMarked(instance: string): Promise<void> {
  await noneOf(() => markedProcesses(instance));
}

/** Waits until no process has `word` in its command line; fails when one stays. */
export async function noneNaming(word: string): Promise<void> {
  await noneOf(() => processesNaming(word));
}

async function noneOf(find: () => Promise<number[]>): Promise<void> {
  const endMs = performance.now() + GONE_MS_MAX;
  for (let left = await find(); left.length > 0; left = await find()) {
    assert.ok(performance.now() < endMs, `still there: ${left.join(", ")}`);
  }
}

/** OS pids of living processes that have `word` in their command line. */
export async function processesNaming(word: string): Promise<number[]> {
  const { stdout } = await new Deno.Command("/bin/sh", {
    args: ["-c", `printf %s "$WORD" | grep -lsF -f - /proc/[0-9]*/cmdline; true`],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", WORD: word },
  }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "")
    .map((line) => Number(line.split("/")[2]));
}
