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

Deno.test("a request goes through the proxy of its environment, and not of this process's", async () => {
  await withServer(async (address) => {
    Deno.env.set("HTTP_PROXY", "http://127.0.0.1:1");
    const ways = new WaysOut();
    const straight = ways.open({}, () => {});
    const through = ways.open({ HTTP_PROXY: address, NO_PROXY: "127.0.0.1" }, () => {});
    try {
      const said = async (way: typeof straight, url: string) => await (await way.fetch(url)).text();
      assert.equal(await said(straight, `http://${address}/`), "127.0.0.1");
      assert.equal(await said(through, "http://far.test/"), "far.test");
      assert.equal(await said(through, `http://${address}/`), "127.0.0.1");
    } finally {
      straight.close();
      through.close();
      Deno.env.delete("HTTP_PROXY");
    }
    assert.equal(ways.size, 0);
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
