/** What the benches of calls compare: the bare SDK and mounts, on the same scripted server, which answers at once so that the client is what is measured. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { startGuard } from "../../src/base/guard.ts";
import { addressed, scripted, scriptedHttpProcess } from "../servers/launch_server.ts";
import { answerOf, MountBench } from "../servers/mount_bench.ts";
import type { Scenario } from "../servers/scripted_scenario.ts";

export const TRANSPORTS = ["stdio", "http"] as const;
export type BenchTransport = (typeof TRANSPORTS)[number];

/** One tool that says little. */
export const SCENARIO: Scenario = {
  tools: [{ name: "t", inputSchema: { type: "object" } }],
  on: { "tools/call": { text: "done" } },
};
const ARGUMENTS = { a: "some text" };

/** Ways to make one call of the same tool. */
export interface CallSubjects {
  bare(): Promise<unknown>;
  /** Through a mount, as what must not be done twice and as what may be. */
  write(): Promise<unknown>;
  idempotent(): Promise<unknown>;
}

/** The guard's pipe closes with this process, and the guard ends the servers of mounts. */
export const bench = new MountBench(
  await startGuard({ instance: `bench-${crypto.randomUUID()}` }),
);
const file = await Deno.makeTempFile({ prefix: "rnix-mount-bench-" });
await Deno.writeTextFile(file, JSON.stringify(SCENARIO));
const http = await scriptedHttpProcess(file);
const clients: Client[] = [];

globalThis.addEventListener("unload", () => {
  void http.end();
  for (const client of clients) void client.close();
  Deno.removeSync(file);
});

async function bareClient(transport: BenchTransport): Promise<Client> {
  const client = new Client({ name: "bare", version: "0" });
  const { command, args, env } = scripted(SCENARIO);
  await client.connect(
    transport === "http"
      ? new StreamableHTTPClientTransport(new URL(http.url))
      : new StdioClientTransport({ command, args, env: { ...env }, stderr: "ignore" }),
  );
  clients.push(client);
  return client;
}

/** Connects both. */
export async function callSubjects(transport: BenchTransport): Promise<CallSubjects> {
  const client = await bareClient(transport);
  const mount = await bench.mount(transport === "http" ? addressed(http.url) : scripted(SCENARIO));
  const through = async (repeatable: boolean) =>
    answerOf(await bench.call(mount, "t", ARGUMENTS, { repeatable }));
  return {
    bare: () =>
      client.request({ method: "tools/call", params: { name: "t", arguments: ARGUMENTS } }),
    write: () => through(false),
    idempotent: () => through(true),
  };
}
