/**
 * How rnix starts itself again: the command of another rnix of this very build, whichever of its three forms is running.
 *
 * A compiled executable is its own program. The self-extracting file tells what it is in `RNIX_EXE`, and sets variables for the Deno inside it;
 * they are taken out again here before anyone sees the environment. In a checkout it is Deno with `main.ts` and the flags that the launcher uses too.
 */
import permissions from "./permissions.txt" with { type: "text" };

/** Absolute path of the self-extracting file, in the environment of the program inside it. */
export const EXE_VARIABLE = "RNIX_EXE";
/** The user's own `DENO_DIR`, kept by the self-extracting file where it needed that name. */
const KEPT_DENO_DIR = "RNIX_KEPT_DENO_DIR";
const DENO_DIR = "DENO_DIR";
const NO_UPDATE_CHECK = "DENO_NO_UPDATE_CHECK";

/** All that rnix may do, as flags of Deno; the launcher and the build read the same file. */
export const PERMISSION_FLAGS: readonly string[] = permissions.trim().split(/\s+/);

/** What tells the forms apart. */
export interface SelfFacts {
  /** `Deno.build.standalone`. */
  standalone: boolean;
  /** `Deno.execPath()`. */
  execPath: string;
  /** `Deno.mainModule`, a file URL. */
  mainModule: string;
  /** The environment as the process got it. */
  env: { readonly [name: string]: string };
}

/** Program and arguments that start this rnix; what follows them is an rnix command line. Never empty. */
export function selfCommand(facts: SelfFacts): readonly [program: string, ...args: string[]] {
  const { standalone, execPath, env } = facts;
  if (standalone) return [execPath];
  const main = decodeURIComponent(new URL(facts.mainModule).pathname);
  const exe = env[EXE_VARIABLE];
  if (exe !== undefined && !isSource(main)) return [exe];
  const config = isSource(main) ? ["--config", main.replace(/[^/]*$/, "deno.json")] : [];
  return [execPath, "run", "--quiet", ...config, ...PERMISSION_FLAGS, main];
}

/** A checkout started from within another rnix inherits its `RNIX_EXE`, which says nothing about the checkout. */
function isSource(path: string): boolean {
  return path.endsWith(".ts");
}

/** The environment as the user has it: without what the self-extracting file added for its own Deno. */
export function userEnvironment(
  env: { readonly [name: string]: string },
): { [name: string]: string } {
  if (env[EXE_VARIABLE] === undefined) return { ...env };
  const kept = env[KEPT_DENO_DIR];
  const added = [EXE_VARIABLE, KEPT_DENO_DIR, DENO_DIR, NO_UPDATE_CHECK];
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !added.includes(name)));
  return kept === undefined ? own : { ...own, [DENO_DIR]: kept };
}
