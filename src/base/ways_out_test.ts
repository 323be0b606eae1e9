import assert from "node:assert/strict";
import { WaysOut } from "./ways_out.ts";

/** A server that says where a request wanted to go. */
async function withServer(work: (address: string) => Promise<void>): Promise<void> {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => new Response(new URL(request.url).hostname),
  );
  try {
    await work(`127.0.0.1:${server.addr.port}`);
  } finally {
    await server.shutdown();
  }
}

/** What comes of requests by the ways of `env`, from a process whose own proxy is a dead one. */
async function asked(env: { [name: string]: string }, ...addresses: string[]): Promise<string> {
  const script = new URL("../../tests/servers/way_out.ts", import.meta.url).pathname;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-net", "--allow-env", script, JSON.stringify(env)]
      .concat(addresses),
    env: { HTTP_PROXY: "http://127.0.0.1:1", ALL_PROXY: "http://127.0.0.1:1", NO_PROXY: "" },
  }).output();
  return new TextDecoder().decode(stdout) || new TextDecoder().decode(stderr);
}

Deno.test("a request goes through the proxy of its environment, and not of this process's", async () => {
  await withServer(async (address) => {
    assert.equal(await asked({}, `http://${address}/`), "127.0.0.1\n");
    const env = { HTTP_PROXY: address, NO_PROXY: "127.0.0.1" };
    assert.equal(
      await asked(env, "http://far.test/", `http://${address}/`),
      "far.test\n127.0.0.1\n",
    );
  });
});

Deno.test("what goes the same way shares a client, until the last one lets go", async () => {
  await withServer(async (address) => {
    const ways = new WaysOut();
    const warned: string[] = [];
    const one = ways.open({ SSL_CERT_FILE: "/nowhere" }, (message) => warned.push(message));
    const other = ways.open({}, () => {});
    for (const way of [one, one, other]) await (await way.fetch(`http://${address}/`)).text();
    assert.equal(ways.size, 1);
    assert.equal(warned.length, 1);
    one.close();
    one.close();
    assert.equal(ways.size, 1);
    await (await other.fetch(`http://${address}/`)).text();
    other.close();
    assert.equal(ways.size, 0);
    await assert.rejects(other.fetch(`http://${address}/`), /closed/);
  });
});
