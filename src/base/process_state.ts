/** What becomes of OS processes: whether one is stopped (by SIGSTOP or a terminal), and the end of a child. Asks a small sh process, since the runtime refuses /proc of other processes to programs with named permissions. */
import type { Clock } from "./clock.ts";

/** A shell that only reads one line answers at once. */
const ANSWER_LIMIT_MS = 1_000;
/** Linux has the state after the last `)` of /proc/<pid>/stat, others in `ps`. */
const SCRIPT =
  `if read -r line < "/proc/$1/stat"; then echo "\${line##*) }"; else ps -o state= -p "$1"; fi`;

/** False also when that can't be found out. Never rejects. */
export async function isStoppedProcess(osPid: number, clock: Clock): Promise<boolean> {
  try {
    const child = new Deno.Command("sh", {
      args: ["-c", SCRIPT, "sh", String(osPid)],
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const cancel = clock.after(ANSWER_LIMIT_MS, () => killChild(child));
    const { stdout } = await child.output();
    cancel();
    return new TextDecoder().decode(stdout).trimStart().startsWith("T");
  } catch {
    return false;
  }
}

/** Kills a child with SIGKILL; one that has ended, whether or not that was noticed, is left alone. */
export function killChild(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended.
  }
}
