/** Who carries an instance's mark: how tests count what was left behind. */

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
