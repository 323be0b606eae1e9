/** A home with configuration, a project in it and a system on it, for tests of what a run's models are. */
import type { LiveSystem, Reader, RunEvent, RunReport } from "../../src/base/operations.ts";
import { createSystem } from "../../src/daemon/mod.ts";
import { removeFolder } from "../doubles/remove_folder.ts";

export interface ModelHome {
  /** The project's folder, which is the client's. */
  folder: string;
  env: { [name: string]: string };
  system: LiveSystem & Reader;
  /** The state folder. */
  state: string;
  write(path: string, text: string): void;
  run(manifest: string, options?: { trust?: boolean }): Promise<RunReport & { events: RunEvent[] }>;
  /** Text of every file that the runs have left. */
  left(): string;
}

const ledgerServer = new URL("../servers/ledger_server.ts", import.meta.url).pathname;

/** `mcp` of a manifest with one real server, whose tool `pay` writes to `folder/ledger`. */
export function ledgerMount(folder: string): string {
  const args = ["run", "--quiet", "--no-prompt", "--allow-all", ledgerServer, `${folder}/ledger`];
  return `mcp:
  servers:
    world:
      command: "${Deno.execPath()}"
      args: ${JSON.stringify(args)}
      startup_timeout: 1m
      tools: { effects: { peek: read } }
`;
}

/** A manifest around `models`. */
export function manifestOf(models: string, more = ""): string {
  return `name: tester\ninstructions: You test.\nmodels: ${models}\n${more}`;
}

/** Gives a home to a test; afterwards it is gone. */
export async function withModelHome(
  env: { [name: string]: string },
  body: (home: ModelHome) => Promise<void>,
): Promise<void> {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-models-" }));
  const folder = `${root}/project`;
  Deno.mkdirSync(`${folder}/.rnix/agents`, { recursive: true, mode: 0o700 });
  Deno.mkdirSync(`${root}/rnix/config`, { recursive: true });
  const whole = { PATH: Deno.env.get("PATH") ?? "", HOME: root, RNIX_HOME: `${root}/rnix`, ...env };
  const { system, close } = await createSystem({
    env: { RNIX_HOME: `${root}/rnix`, HOME: root },
    uid: Deno.uid() ?? 0,
    osPid: Deno.pid,
  });
  try {
    await body({
      folder,
      env: whole,
      system,
      state: `${root}/rnix/state`,
      write(path, text) {
        const file = path.startsWith("config/") ? `${root}/rnix/${path}` : `${folder}/${path}`;
        Deno.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true, mode: 0o700 });
        Deno.writeTextFileSync(file, text);
      },
      async run(manifest, { trust = false } = {}) {
        const events: RunEvent[] = [];
        const client = { cwd: folder, env: whole, interactive: false };
        const handle = await system.run(
          { manifest, intent: "Do it", trust, client },
          { onEvent: (event) => events.push(event) },
        );
        return { ...await handle.done, events };
      },
      left: () => textIn(`${root}/rnix/state`),
    });
  } finally {
    await close();
    await removeFolder(root);
  }
}

function textIn(folder: string): string {
  let text = "";
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = `${folder}/${name}`;
    text += isDirectory ? textIn(path) : new TextDecoder().decode(Deno.readFileSync(path));
  }
  return text;
}
