/** Real servers at an address: the official one over both transports of HTTP, mounted by the real driver, directly and through a proxy. */
import assert from "node:assert/strict";
import type { HttpLaunch } from "../../src/mcp/launch.ts";
import { addressed, npmServer } from "../servers/launch_server.ts";
import { answerOf, withBench } from "../servers/mount_bench.ts";

type Mode = "streamableHttp" | "sse";

const PATHS = { streamableHttp: "/mcp", sse: "/sse" };

/** Runs the official server in a process of its own; it has to be told its port. */
async function withEverything(mode: Mode, work: (url: string) => Promise<void>): Promise<void> {
  const { command, args, env } = npmServer("everything", [mode]);
  const port = freePort();
  const child = new Deno.Command(command, {
    args,
    env: { ...env, PORT: String(port) },
    clearEnv: true,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  try {
    await listening(port);
    await work(`http://127.0.0.1:${port}${PATHS[mode]}`);
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
}

function freePort(): number {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  listener.close();
  return listener.addr.port;
}

async function listening(port: number): Promise<void> {
  for (let attempts = 0; attempts < 300; attempts += 1) {
    try {
      return (await Deno.connect({ port, hostname: "127.0.0.1" })).close();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error("The server did not come up");
}

for (const mode of ["streamableHttp", "sse"] as const) {
  for (const transport of [mode === "sse" ? "sse" : "http", "auto"] as const) {
    Deno.test(`server-everything over ${mode}, reached by ${transport}: mounted, listed, called, its resources read`, async () => {
      await withEverything(mode, async (url) => {
        await withBench(async (bench) => {
          const launch = addressed(url, { transport, stderrLogPath: "/run/mounts/s.stderr.log" });
          const mount = await bench.mount(launch);
          assert.equal(mount.facts.era, "legacy");
          assert.equal(mount.facts.protocolVersion, "2025-11-25");
          assert.ok(mount.facts.tools.some((tool) => tool.name === "get-sum"));
          const [echo, ...sums] = await Promise.all([
            bench.call(mount, "echo", { message: "héllo 😀" }),
            ...[1, 2, 3, 4].map((a) => bench.call(mount, "get-sum", { a, b: 10 })),
          ]);
          assert.match(answerOf(echo), /héllo 😀/);
          sums.forEach((sum, index) => assert.match(answerOf(sum), new RegExp(`${index + 11}`)));
          const listed: { uri: string }[] = JSON.parse(
            new TextDecoder().decode(await mount.open("resources").read()),
          );
          const path = `resources/${encodeURIComponent(listed[0]?.uri ?? "")}`;
          assert.ok((await mount.open(path).read()).length > 0);
          await mount.close();
          const log = new TextDecoder().decode(await bench.disk.read("/run/mounts/s.stderr.log"));
          assert.match(log, /Connected over/);
          assert.match(log, /The connection ended: rnix closed it/);
        });
      });
    });
  }
}

Deno.test("progress of a long call comes while it runs, over a stream", async () => {
  await withEverything("streamableHttp", async (url) => {
    await withBench(async (bench) => {
      const mount = await bench.mount(addressed(url));
      const told: string[] = [];
      const outcome = await bench.call(
        mount,
        "trigger-long-running-operation",
        { duration: 1, steps: 4 },
        { onProgress: (message) => told.push(message) },
      );
      assert.match(answerOf(outcome), /completed/i);
      assert.ok(told.length > 0);
      await mount.close();
    });
  });
});

Deno.test("a server that was started anew doesn't know the session: the call is made once, in a new one", async () => {
  await withEverything("streamableHttp", async (first) => {
    let url = first;
    const relay = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      (request) => relayed(request, url),
    );
    const launch: HttpLaunch = addressed(`http://127.0.0.1:${relay.addr.port}/mcp`);
    await withBench(async (bench) => {
      const mount = await bench.mount(launch);
      await withEverything("streamableHttp", async (second) => {
        url = second;
        assert.match(answerOf(await bench.call(mount, "echo", { message: "again" })), /again/);
        await mount.close();
      });
    });
    await relay.shutdown();
  });
});

Deno.test("a mount goes through the proxy that its client's environment names", async () => {
  await withEverything("streamableHttp", async (url) => {
    const seen: string[] = [];
    const proxy = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      seen.push(request.url);
      return relayed(request, url);
    });
    const at = `http://127.0.0.1:${proxy.addr.port}`;
    await withBench(async (bench) => {
      for (const env of [{ HTTP_PROXY: at }, { HTTP_PROXY: at, NO_PROXY: "127.0.0.1" }]) {
        seen.length = 0;
        const mount = await bench.mount(addressed(url, { env }));
        assert.match(answerOf(await bench.call(mount, "echo", { message: "hi" })), /hi/);
        await mount.close();
        assert.equal(seen.length > 0, !("NO_PROXY" in env));
        assert.ok(seen.every((address) => address === url));
      }
    });
    await proxy.shutdown();
  });
});

/** What the server at `url` answers to the request. */
async function relayed(request: Request, url: string): Promise<Response> {
  const headers = new Headers(request.headers);
  headers.delete("host");
  const body = request.method === "POST" ? await request.arrayBuffer() : undefined;
  const answer = await fetch(url, {
    method: request.method,
    headers,
    signal: request.signal,
    ...(body === undefined ? {} : { body }),
  });
  return new Response(answer.body, { status: answer.status, headers: answer.headers });
}
