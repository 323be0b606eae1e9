/**
 * Where rnix keeps things: configuration, durable state, and the folder of its socket.
 *
 * With `$RNIX_HOME` all three are inside it (`config/`, `state/`, `run/`); else the XDG places. Nothing here touches the disk.
 */
import { isAbsolute, join, relative, resolve } from "./posix_path.ts";
import { SysError } from "./errors.ts";
import { EXIT_USAGE } from "./exit.ts";

/** Absolute folders; none of them needs to exist. */
export interface RnixPaths {
  /** User configuration: `config.yaml`, `agents/` … */
  config: string;
  /** Durable state: `runs/`, pids, `trust.json` … */
  state: string;
  /** Folder of the socket. */
  runtime: string;
}

/** The folders for an environment. Relative XDG variables are ignored, as their standard says. Throws INVALID for a relative `RNIX_HOME`, or when nothing says where home is. */
export function resolvePaths(env: { [name: string]: string }, uid: number): RnixPaths {
  const root = env["RNIX_HOME"];
  if (root !== undefined && root !== "") {
    if (!isAbsolute(root)) {
      throw new SysError("INVALID", `RNIX_HOME must be an absolute path, but is "${root}"`, {
        hint: `set it to "${resolve("/", root)}" or the like`,
        exitCode: EXIT_USAGE,
      });
    }
    return { config: join(root, "config"), state: join(root, "state"), runtime: join(root, "run") };
  }
  const config = absolute(env["XDG_CONFIG_HOME"]) ?? join(homeOf(env), ".config");
  const state = absolute(env["XDG_STATE_HOME"]) ?? join(homeOf(env), ".local", "state");
  const runtime = absolute(env["XDG_RUNTIME_DIR"]);
  return {
    config: join(config, "rnix"),
    state: join(state, "rnix"),
    runtime: runtime === undefined ? `/tmp/rnix-${uid}` : join(runtime, "rnix"),
  };
}

/** `path` for people: `~/…` inside `home`, else as it is. */
export function withTilde(path: string, home: string | undefined): string {
  if (home === undefined || home === "" || home === "/") return path;
  if (path === home) return "~";
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/** `path` for people: relative when it is inside `folder`, else as it is. */
export function shownFrom(folder: string, path: string): string {
  const inside = relative(folder, path);
  if (inside === "" || inside === ".." || inside.startsWith("../")) return path;
  return isAbsolute(inside) ? path : inside;
}

function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

function homeOf(env: { [name: string]: string }): string {
  const home = absolute(env["HOME"]);
  if (home !== undefined) return home;
  throw new SysError(
    "INVALID",
    "HOME is not set to an absolute path, so there is no place for state",
    {
      hint: "set HOME, or RNIX_HOME to a folder that may hold everything",
      exitCode: EXIT_USAGE,
    },
  );
}
