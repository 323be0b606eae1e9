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
  const proxies = { NO_PROXY: "localhost,127.0.0.1", HTTP_PROXY: "http://x:9" };
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-net", "--allow-env", "--allow-read", "--allow-write"]
      .concat(new URL("../../tests/servers/socket_probe.ts", import.meta.url).pathname, path),
    env: proxies,
  }).output();
  assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), [
    { ok: 1 },
    proxies.NO_PROXY,
    proxies.HTTP_PROXY,
  ]);
  await server.shutdown();
  Deno.removeSync(folder, { recursive: true });
});
