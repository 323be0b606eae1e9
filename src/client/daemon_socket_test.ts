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
