/** A folder with agents and a home of its own, and rnix as a person runs it there: each command an OS process, with a daemon. */
import assert from "node:assert/strict";
import { removeFolder } from "../doubles/remove_folder.ts";

/** The program as it lies in a checkout. */
export const LAUNCHER = new URL("../../scripts/rnix", import.meta.url).pathname;
const LIMIT_MS = 120_000;

export interface Ran {
  code: number;
  out: string;
  err: string;
}

export interface ProcessHome {
  folder: string;
  env: { [name: string]: string };
  write(path: string, text: string): void;
  /** Runs one command to its end. */
  rnix(...args: string[]): Promise<Ran>;
  /** Starts an agent that stays at work, and gives its pid. */
  start(agent: string): Promise<string>;
}

/** Gives a home to a test; afterwards its daemon has ended and it is gone. */
export async function withProcessHome(body: (home: ProcessHome) => Promise<void>): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-vfs-" }));
  const env = { RNIX_HOME: `${folder}/home`, NO_COLOR: "1" };
  const rnix = async (...args: string[]): Promise<Ran> => {
    const { code, stdout, stderr } = await new Deno.Command(LAUNCHER, {
      args,
      cwd: folder,
      env,
      stdin: "null",
      signal: AbortSignal.timeout(LIMIT_MS),
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, out: text(stdout), err: text(stderr) };
  };
  try {
    await body({
      folder,
      env,
      write(path, text) {
        const file = `${folder}/${path}`;
        Deno.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true, mode: 0o700 });
        Deno.writeTextFileSync(file, text);
      },
      rnix,
      async start(agent) {
        const { code, out, err } = await rnix("run", "-d", agent, "go");
        assert.equal(code, 0, err);
        return out.trim();
      },
    });
  } finally {
    await rnix("daemon", "stop");
    await removeFolder(folder);
  }
}

/** A manifest's `mcp` with the official example server under this name. */
export function everythingMount(name: string): string {
  const args = [
    ...["run", "-A", "--quiet", "--no-config"],
    ...["npm:@modelcontextprotocol/server-everything@2026.8.31", "stdio"],
  ];
  return `mcp:
  servers:
    ${name}:
      command: "${Deno.execPath()}"
      args: ${JSON.stringify(args)}
      inherit_env: [DENO_DIR]
      startup_timeout: 1m
`;
}
