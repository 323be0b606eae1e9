import assert from "node:assert/strict";
import { DaemonSocket } from "./daemon_socket.ts";

Deno.test("a request names an address, so that no name is looked up for it", async () => {
  const folder = Deno.makeTempDirSync();
  const path = `${folder}/s`;
  const hosts: string[] = [];
  const server = Deno.serve({ path, onListen() {} }, (request) => {
    hosts.push(new URL(request.url).hostname, request.headers.get("host") ?? "");
    return Response.json({});
  });
  const socket = new DaemonSocket(path);
  await socket.value("status");
  socket.close();
  await server.shutdown();
  Deno.removeSync(folder, { recursive: true });
  assert.equal(hosts.at(-1), "127.0.0.1");
});

Deno.test("proxies of the environment, and exceptions from them, don't concern the socket", async () => {
  const folder = Deno.makeTempDirSync();
  const path = `${folder}/s`;
  const server = Deno.serve({ path, onListen() {} }, () => Response.json({ ok: 1 }));
  const before = Deno.env.get("NO_PROXY");
  for (const [name, value] of [["NO_PROXY", "localhost,127.0.0.1"], ["HTTP_PROXY", "http://x:9"]]) {
    if (name === undefined || value === undefined) continue;
    const had = Deno.env.get(name);
    Deno.env.set(name, value);
    const socket = new DaemonSocket(path);
    try {
      assert.deepEqual(await socket.value("status"), { ok: 1 });
      assert.equal(Deno.env.get(name), value);
    } finally {
      socket.close();
      if (had === undefined) Deno.env.delete(name);
      else Deno.env.set(name, had);
    }
  }
  assert.equal(Deno.env.get("NO_PROXY"), before);
  await server.shutdown();
  Deno.removeSync(folder, { recursive: true });
});
