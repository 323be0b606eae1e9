/** Requests over real sockets: proxies of the client's environment, redirects, and what a failure proves. */
import assert from "node:assert/strict";
import { LOOPBACK_CERTIFICATE, LOOPBACK_KEY } from "../../tests/servers/loopback_certificate.ts";
import { HttpClient, type HttpRequest, RequestFailure } from "./http_client.ts";

type Env = { [name: string]: string };

const warn = () => {};

async function withServer(
  handle: (request: Request) => Response | Promise<Response>,
  work: (origin: string) => Promise<void>,
): Promise<void> {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, handle);
  try {
    await work(`http://127.0.0.1:${server.addr.port}`);
  } finally {
    await server.shutdown();
  }
}

/** A server below HTTP: it is given each connection. */
async function withSocket(
  serve: (connection: Deno.TcpConn) => Promise<void>,
  work: (origin: string) => Promise<void>,
): Promise<void> {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const serving = (async () => {
    for await (const connection of listener) await serve(connection).catch(() => {});
  })();
  try {
    await work(`http://127.0.0.1:${listener.addr.port}`);
  } finally {
    listener.close();
    await serving;
  }
}

async function ask(
  url: string,
  env: Env = {},
  request: Partial<HttpRequest> = {},
): Promise<string> {
  const client = await HttpClient.open(new URL(url), env, warn);
  try {
    const response = await client.request(new URL(url), {
      method: "POST",
      headers: new Headers(),
      body: new TextEncoder().encode("{}"),
      signal: new AbortController().signal,
      repeatable: false,
      ...request,
    });
    return `${response.status} ${await response.text()}`;
  } finally {
    client.close();
  }
}

async function failure(work: Promise<unknown>): Promise<RequestFailure> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof RequestFailure, String(thrown));
  return thrown;
}

/** Asks in a process that has `own` in its environment, as a daemon might: threads of tests share theirs. */
async function askElsewhere(own: Env, url: string, env: Env): Promise<string> {
  const code = `
    import { HttpClient } from ${JSON.stringify(new URL("./http_client.ts", import.meta.url).href)};
    const url = new URL(${JSON.stringify(url)});
    const client = await HttpClient.open(url, ${JSON.stringify(env)}, () => {});
    const { signal } = new AbortController();
    const request = { method: "GET", headers: new Headers(), signal, repeatable: true };
    const text = await client.request(url, request).then((given) => given.text(), String);
    client.close();
    console.log(text, JSON.stringify(Deno.env.get("HTTP_PROXY")));`;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-config", "--no-lock", "--ext=ts", code],
    env: { ...own, NO_COLOR: "1" },
  }).output();
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("a request goes through the proxy of the client's environment, and not where no_proxy says so", async () => {
  await withServer((request) => new Response(`proxy for ${request.url}`), async (proxy) => {
    await withServer((request) => new Response(`server ${request.url}`), async (server) => {
      const env = { HTTP_PROXY: proxy };
      assert.equal(
        await ask("http://no-such-host.invalid/x", env),
        "200 proxy for http://no-such-host.invalid/x",
      );
      assert.match(await ask(`${server}/x`, env), /^200 proxy/);
      assert.match(await ask(`${server}/x`, { ...env, NO_PROXY: "127.0.0.1" }), /^200 server/);
    });
  });
});

Deno.test("the proxy variables of rnix's own process count for nothing, in either direction, and stay", async () => {
  await withServer((request) => new Response(`proxy for ${request.url}`), async (proxy) => {
    await withServer(() => new Response("server"), async (server) => {
      const nowhere = "http://127.0.0.1:9";
      const own = { HTTP_PROXY: nowhere, ALL_PROXY: nowhere };
      assert.equal(await askElsewhere(own, server, {}), `server "${nowhere}"`);
      assert.match(await askElsewhere({ NO_PROXY: "*" }, server, { http_proxy: proxy }), /^proxy/);
    });
  });
});

Deno.test("a secure address is reached through a tunnel; a proxy that refuses it is named, and nothing was sent", async () => {
  const heads: string[] = [];
  await withSocket(async (connection) => {
    const buffer = new Uint8Array(4096);
    const read = await connection.read(buffer);
    heads.push(new TextDecoder().decode(buffer.subarray(0, read ?? 0)));
    await connection.write(
      new TextEncoder().encode("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"),
    );
    connection.close();
  }, async (proxy) => {
    const env = { https_proxy: proxy.replace("//", "//user:word@") };
    const error = await failure(ask("https://remote.test/mcp?key=hidden", env));
    assert.ok(error.nothingSent);
    assert.match(error.message, /through the proxy/);
    assert.match(error.hint ?? "", /HTTPS_PROXY/);
    assert.doesNotMatch(error.message, /hidden|word/);
  });
  assert.match(heads[0] ?? "", /^CONNECT remote\.test:443 /);
  assert.match(heads[0] ?? "", /proxy-authorization: basic dXNlcjp3b3Jk/i);
});

Deno.test("refused, unknown and closed to requests: nothing was sent; the address is in no message", async () => {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const { port } = listener.addr;
  listener.close();
  for (
    const url of [
      `http://127.0.0.1:${port}/?key=hidden`,
      "http://no-such-host.invalid/?key=hidden",
      "http://127.0.0.1:1/?key=hidden",
    ]
  ) {
    const error = await failure(ask(url));
    assert.ok(error.nothingSent, error.message);
    assert.doesNotMatch(error.message, /hidden|127\.0\.0\.1/);
  }
});

Deno.test("a server that isn't trusted gets nothing of the request", async () => {
  await withServer(() => new Response("plain"), async (server) => {
    const error = await failure(ask(server.replace("http:", "https:")));
    assert.ok(error.nothingSent, error.message);
  });
});

for (const shared of [false, true]) {
  Deno.test(`a connection that ends after the request was read proves nothing, and the request is not made again${shared ? ", though it shares connections" : ""}`, async () => {
    let requests = 0;
    let connections = 0;
    await withSocket(async (connection) => {
      connections += 1;
      const buffer = new Uint8Array(4096);
      let text = "";
      for (let read; (read = await connection.read(buffer)) !== null;) {
        text += new TextDecoder().decode(buffer.subarray(0, read));
        if (!text.endsWith("{}")) continue;
        text = "";
        requests += 1;
        if (requests > 1) break;
        await connection.write(
          new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        );
      }
      connection.close();
    }, async (server) => {
      const url = new URL(server);
      const client = await HttpClient.open(url, {}, warn);
      const request = {
        method: "POST" as const,
        headers: new Headers(),
        body: new TextEncoder().encode("{}"),
        signal: new AbortController().signal,
        repeatable: false,
        shared,
      };
      assert.equal(await (await client.request(url, request)).text(), "ok");
      assert.ok(!(await failure(client.request(url, request))).nothingSent);
      client.close();
    });
    assert.deepEqual([requests, connections], [2, shared ? 1 : 2]);
  });
}

Deno.test("redirects are followed within the origin, with the body only where the status keeps it", async () => {
  await withServer(async (request) => {
    const { pathname } = new URL(request.url);
    const to = (status: number, location: string) =>
      new Response(null, { status, headers: { location } });
    if (pathname === "/kept") return to(307, "/end");
    if (pathname === "/moved") return to(302, "/end");
    if (pathname === "/away") return to(307, "http://127.0.0.1:9/end");
    if (pathname === "/round") return to(308, "/round");
    return new Response(`${request.method} ${await request.text()}`);
  }, async (server) => {
    assert.equal(await ask(`${server}/kept`), "200 POST {}");
    assert.equal(await ask(`${server}/moved`), "302 ");
    assert.equal(await ask(`${server}/away`), "307 ");
    assert.equal(await ask(`${server}/round`), "308 ");
  });
});

Deno.test("a certificate that the client's environment trusts is trusted, and no other; then nothing is sent", async () => {
  const file = await Deno.makeTempFile({ suffix: ".pem" });
  await Deno.writeTextFile(file, LOOPBACK_CERTIFICATE);
  const server = Deno.serve({
    ...{ port: 0, hostname: "127.0.0.1", onListen: () => {} },
    ...{ cert: LOOPBACK_CERTIFICATE, key: LOOPBACK_KEY },
  }, () => new Response("secure"));
  const url = `https://127.0.0.1:${server.addr.port}/`;
  try {
    assert.equal(await ask(url, { SSL_CERT_FILE: file }), "200 secure");
    assert.equal(await ask(url, { NODE_EXTRA_CA_CERTS: file }), "200 secure");
    const error = await failure(ask(url));
    assert.ok(error.nothingSent);
    assert.match(error.message, /certificate/);
    assert.match(error.hint ?? "", /SSL_CERT_FILE or NODE_EXTRA_CA_CERTS/);
  } finally {
    await server.shutdown();
    await Deno.remove(file);
  }
});

Deno.test("certificates that can't be read are told by the name of their variable", async () => {
  const told: string[] = [];
  const client = await HttpClient.open(new URL("https://a.test"), {
    SSL_CERT_FILE: "/no/such/file",
  }, (message) => told.push(message));
  client.close();
  assert.deepEqual(told, ["The certificates of SSL_CERT_FILE can't be read; they are left out"]);
});
