/**
 * What a mount costs: a call through it against the bare SDK on the same server, over stdio and over HTTP, alone and 64 at once; and mounting 1, 4 and 16 servers against the slowest of them alone.
 *
 * The server answers at once, so that the client is what is measured. Over HTTP a call that must not be made twice has a TCP connection of its own, because one on a connection that was used before may be lost with it; what may be repeated shares connections, as all calls of the SDK do.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { startGuard } from "../../src/base/guard.ts";
import type { Mount } from "../../src/kernel/mount.ts";
import { addressed, scripted, scriptedHttpProcess } from "../servers/launch_server.ts";
import { answerOf, MountBench } from "../servers/mount_bench.ts";
import type { Scenario } from "../servers/scripted_scenario.ts";

const AT_ONCE = 64;
const SLOWEST_MS = 1_000;
const SCENARIO: Scenario = {
  tools: [{ name: "t", inputSchema: { type: "object" } }],
  on: { "tools/call": { text: "done" } },
};
const CALL = {
  method: "tools/call",
  params: { name: "t", arguments: { a: "some text" } },
} as const;

const guard = await startGuard({ instance: `bench-${crypto.randomUUID()}` });
const bench = new MountBench(guard);
const file = await Deno.makeTempFile({ prefix: "rnix-mount-bench-" });
await Deno.writeTextFile(file, JSON.stringify(SCENARIO));
const http = await scriptedHttpProcess(file);

async function bareClient(transport: "stdio" | "http"): Promise<Client> {
  const client = new Client({ name: "bare", version: "0" });
  const { command, args, env } = scripted(SCENARIO);
  await client.connect(
    transport === "http"
      ? new StreamableHTTPClientTransport(new URL(http.url))
      : new StdioClientTransport({ command, args, env: { ...env }, stderr: "ignore" }),
  );
  return client;
}

async function through(mount: Mount, repeatable: boolean): Promise<void> {
  answerOf(await bench.call(mount, "t", { a: "some text" }, { repeatable }));
}

const clients: Client[] = [];
for (const transport of ["stdio", "http"] as const) {
  const client = await bareClient(transport);
  clients.push(client);
  const mount = await bench.mount(
    transport === "http" ? addressed(http.url) : scripted(SCENARIO, { server: "stdio" }),
  );
  const bare = async () => void await client.request(CALL);
  const [write, idempotent] = [() => through(mount, false), () => through(mount, true)];
  for (const count of [1, AT_ONCE]) {
    const group = count === 1 ? `${transport}: one call` : `${transport}: ${count} calls at once`;
    const times = (call: () => Promise<void>) => async () => {
      await Promise.all(Array.from({ length: count }, call));
    };
    Deno.bench({ name: `bare SDK, ${group}`, group, baseline: true }, times(bare));
    Deno.bench({ name: `mount, write, ${group}`, group }, times(write));
    Deno.bench({ name: `mount, idempotent, ${group}`, group }, times(idempotent));
  }
}

for (const count of [1, 4, 16]) {
  Deno.bench({
    name: `mount of ${count}, the slowest needs ${SLOWEST_MS} ms`,
    group: "mounting",
    baseline: count === 1,
    n: 5,
    warmup: 1,
  }, async (timer) => {
    timer.start();
    const mounts = await Promise.all(
      Array.from({ length: count }, (_, index) => {
        const start = index === 0 ? { start: { delayMs: SLOWEST_MS } } : {};
        return bench.mount(scripted({ ...SCENARIO, ...start }, { server: `s${index}` }));
      }),
    );
    timer.end();
    await Promise.all(mounts.map((mount) => mount.close()));
  });
}

// The guard's pipe closes with this process, and the guard ends the servers.
globalThis.addEventListener("unload", () => {
  void http.end();
  for (const client of clients) void client.close();
  Deno.removeSync(file);
});
