/** How tests start the servers of this folder. */
import type { HttpLaunch, StdioLaunch } from "../../src/mcp/launch.ts";
import { TextLineStream } from "../doubles/text_lines.ts";
import type { Scenario } from "./scripted_scenario.ts";

const path = (name: string) => new URL(name, import.meta.url).pathname;

/** Where Deno keeps its packages, where that isn't told by HOME. */
function cacheEnv(): { [name: string]: string } {
  const folder = Deno.env.get("DENO_DIR");
  return folder === undefined ? {} : { DENO_DIR: folder };
}

/** A launch of any command, with limits that a test can wait for. */
export function launchOf(
  command: string,
  args: string[],
  changes: Partial<StdioLaunch> = {},
): StdioLaunch {
  return {
    server: "s",
    transport: "stdio",
    command,
    args,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: Deno.env.get("HOME") ?? "/", ...cacheEnv() },
    cwd: "/",
    startupTimeoutMs: 20_000,
    timeoutMs: 10_000,
    maxTimeoutMs: 20_000,
    ...changes,
  };
}

function denoArgs(file: string, ...args: string[]): string[] {
  return ["run", "-A", "--no-config", "--no-lock", "--no-check", path(file), ...args];
}

/** Starts a command whose stdin a `cat` feeds: the first line is its pid, and its end leaves the pipe of the client without a reader, which Deno can't do to its own stdin. */
const FED =
  'exec 4<&0 </dev/null; { cat <&4 & echo $!; exec 4<&-; wait; } | { exec 4<&-; exec "$0" "$@"; } & exec 4<&-; wait $!';

/** The scripted server with a scenario; `file` has it as JSON where it is too long for an argument. */
export function scripted(
  scenario: Scenario,
  changes: Partial<StdioLaunch> = {},
  file?: string,
): StdioLaunch {
  const text = JSON.stringify(scenario);
  const args = denoArgs("scripted_server.ts", file === undefined ? text : `@${file}`);
  return text.includes('"closeStdin":true')
    ? launchOf("sh", ["-c", FED, Deno.execPath(), ...args, "fed"], changes)
    : launchOf(Deno.execPath(), args, changes);
}

/** A server at an address, with limits that a test can wait for. */
export function addressed(url: string, changes: Partial<HttpLaunch> = {}): HttpLaunch {
  return {
    server: "s",
    transport: "http",
    url,
    headers: {},
    env: {},
    startupTimeoutMs: 20_000,
    timeoutMs: 10_000,
    maxTimeoutMs: 20_000,
    ...changes,
  };
}

/** The scenario of a file over HTTP in a process of its own: one that may block, or exit. */
export async function scriptedHttpProcess(
  file: string,
): Promise<{ url: string; end(): Promise<void> }> {
  const child = new Deno.Command(Deno.execPath(), {
    args: denoArgs("scripted_http_server.ts", `@${file}`),
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextLineStream()).getReader();
  const { value: url = "" } = await reader.read();
  await reader.cancel();
  const end = async () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await child.status;
  };
  return { url, end };
}

/** The ledger server over a file. */
export function ledgerServer(
  file: string,
  flags: string[] = [],
  changes: Partial<StdioLaunch> = {},
): StdioLaunch {
  return launchOf(Deno.execPath(), denoArgs("ledger_server.ts", file, ...flags), changes);
}

const OFFICIAL = {
  everything: "@modelcontextprotocol/server-everything",
  filesystem: "@modelcontextprotocol/server-filesystem",
  memory: "@modelcontextprotocol/server-memory",
};

/** An official server from the cache of npm packages, as `deno.lock` has it; never from the network. Without the config Deno would ask the registry for what the lock says already. */
export function npmServer(
  name: keyof typeof OFFICIAL,
  args: string[],
  changes: Partial<StdioLaunch> = {},
): StdioLaunch {
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const specifier = OFFICIAL[name];
  const pinned: { imports: { [name: string]: string } } = JSON.parse(Deno.readTextFileSync(config));
  return launchOf(
    Deno.execPath(),
    [
      ...["run", "-A", "--config", config, "--cached-only"],
      pinned.imports[specifier] ?? specifier,
      ...args,
    ],
    changes,
  );
}

/** A program of this folder without arguments. */
export function plainServer(file: string, changes: Partial<StdioLaunch> = {}): StdioLaunch {
  return launchOf(Deno.execPath(), denoArgs(file), changes);
}

/** The server in Python; undefined where there is no python3. */
export function pythonServer(changes: Partial<StdioLaunch> = {}): StdioLaunch | undefined {
  const folders = (Deno.env.get("PATH") ?? "").split(":");
  const found = folders.map((folder) => `${folder}/python3`).find(isFile);
  return found === undefined ? undefined : launchOf(found, [path("python_server.py")], {
    ...changes,
    env: { PATH: folders.join(":"), HOME: Deno.env.get("HOME") ?? "/" },
  });
}

function isFile(file: string): boolean {
  try {
    return Deno.statSync(file).isFile;
  } catch {
    return false;
  }
}

/** A server made with the SDK, as `modern_server.ts` has it: of 2026-07-28, unless it is told otherwise. */
export function modernServer(
  changes: Partial<StdioLaunch> = {},
  kind: "modern" | "legacy" | "http" = "modern",
): StdioLaunch {
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const run = ["run", "-A", "--config", config, "--cached-only", "--no-check"];
  return launchOf(Deno.execPath(), [...run, path("modern_server.ts"), kind], changes);
}

/** A launch whose command is wrapped in sh: `body` has the command in the place of `$CMD`. */
export function inShell(launch: StdioLaunch, body: string): StdioLaunch {
  const words = [launch.command, ...launch.args].map((word) =>
    `'${word.replaceAll("'", `'\\''`)}'`
  );
  return { ...launch, command: "sh", args: ["-c", body.replaceAll("$CMD", words.join(" "))] };
}
