/**
 * One fault, one test per transport: a scenario is played over stdio and over HTTP, the real driver mounts it, and what the server saw is read back from files.
 *
 * Every scene has a ledger (a line per execution) and a record (a line per message received), and leaves no process.
 */
import type { McpServerLaunch, ServerLimits } from "../../src/mcp/launch.ts";
import type { Mount } from "../../src/kernel/mount.ts";
import { addressed, scripted, scriptedHttpProcess } from "../servers/launch_server.ts";
import { type BenchOptions, type MountBench, withBench } from "../servers/mount_bench.ts";
import type { Fields, Value } from "../servers/rpc_stdio.ts";
import type { Scenario } from "../servers/scripted_scenario.ts";
import { removeFolder } from "../doubles/remove_folder.ts";

export type Transport = "stdio" | "http";

export interface Scene {
  transport: Transport;
  bench: MountBench;
  launch(limits?: Partial<ServerLimits>): McpServerLaunch;
  /** Lines of the ledger. */
  ledger(): string[];
  /** How often the server was started, where the scenario counts it. */
  starts(): number;
  /** Messages that the server has received. */
  received(): Fields[];
  /** Methods of the requests and notifications received. */
  methods(): string[];
  /** Mounts, works, unmounts. */
  mounted(work: (mount: Mount) => Promise<void>, limits?: Partial<ServerLimits>): Promise<void>;
}

const TRANSPORTS: readonly Transport[] = ["stdio", "http"];

export const ONE_TOOL: Value[] = [{ name: "t", inputSchema: { type: "object" } }];

/** Defines the test for each transport; `scenario` may name the ledger's file. */
export function scene(
  name: string,
  scenario: Scenario | ((files: { ledger: string; starts: string }) => Scenario),
  work: (scene: Scene) => Promise<void>,
  transports: readonly Transport[] = TRANSPORTS,
  options: BenchOptions = {},
): void {
  for (const transport of transports) {
    Deno.test(`${name} (${transport})`, async () => {
      const folder = await Deno.makeTempDir();
      const files = { ledger: `${folder}/ledger`, starts: `${folder}/starts` };
      const record = `${folder}/record`;
      const played: Scenario = {
        tools: ONE_TOOL,
        record,
        ...typeof scenario === "function" ? scenario(files) : scenario,
      };
      const file = `${folder}/scenario.json`;
      await Deno.writeTextFile(file, JSON.stringify(played));
      const server = transport === "http" ? await scriptedHttpProcess(file) : undefined;
      try {
        await withBench(async (bench) => {
          const launch = (limits: Partial<ServerLimits> = {}) =>
            server === undefined ? scripted(played, limits, file) : addressed(server.url, limits);
          await work(sceneOf({ transport, bench, launch }, files, record));
        }, options);
      } finally {
        await server?.end();
        await removeFolder(folder);
      }
    });
  }
}

function sceneOf(
  base: Pick<Scene, "transport" | "bench" | "launch">,
  files: { ledger: string; starts: string },
  record: string,
): Scene {
  const received = (): Fields[] => linesOf(record).map((line) => JSON.parse(line));
  return {
    ...base,
    ledger: () => linesOf(files.ledger),
    starts: () => linesOf(files.starts).length,
    received,
    methods: () => received().flatMap(({ method }) => typeof method === "string" ? [method] : []),
    async mounted(work, limits) {
      const mount = await base.bench.mount(base.launch(limits));
      try {
        await work(mount);
      } finally {
        await mount.close();
      }
    },
  };
}

/** The lines of a file; none when it isn't there. */
export function linesOf(file: string): string[] {
  try {
    return Deno.readTextFileSync(file).split("\n").filter((line) => line !== "");
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return [];
    throw thrown;
  }
}

/** Waits until it holds; the caller's test fails by its own assertion where it never does. */
export async function until(holds: () => boolean, limitMs = 60_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!holds() && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
