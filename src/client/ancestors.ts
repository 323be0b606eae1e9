/**
 * Whether this rnix was started by something that runs in rnix: an agent must not approve itself.
 *
 * A process that replaced itself by one without the mark (`exec env -u`, as a shell does with its last command) leaves no marked ancestor; but only what runs in rnix has its daemon above it.
 *
 * A rail and no wall: a program that takes the mark off and leaves its ancestors behind isn't found. Deno doesn't read other processes' environments, so a shell does.
 */
import { INSTANCE_VARIABLE } from "../base/instance.ts";
import script from "./ancestors.sh" with { type: "text" };

const READ_MS_MAX = 5_000;

/** Looks at this environment first, then at the ancestors of `osPid`, itself included; `daemonPid` is that of the daemon that serves, if one does. Takes a few milliseconds; never rejects: what can't be read counts as not marked. */
export async function isInsideRun(
  env: { readonly [name: string]: string },
  osPid: number,
  daemonPid?: number,
): Promise<boolean> {
  if (env[INSTANCE_VARIABLE] !== undefined) return true;
  try {
    const { stdout } = await new Deno.Command("/bin/sh", {
      args: [
        "-c",
        script,
        "rnix-ancestors",
        INSTANCE_VARIABLE,
        String(osPid),
        String(daemonPid ?? 0),
      ],
      clearEnv: true,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" },
      stdin: "null",
      stderr: "null",
      signal: AbortSignal.timeout(READ_MS_MAX),
    }).output();
    return new TextDecoder().decode(stdout).trim() === "marked";
  } catch {
    return false;
  }
}
