/** Which proxy the client's environment gives for an address. */
import assert from "node:assert/strict";
import { badProxyVariable, proxyFor } from "./proxy_choice.ts";

function urlFor(address: string, env: { [name: string]: string }): string | undefined {
  return proxyFor(new URL(address), env)?.url;
}

Deno.test("the scheme of the address chooses the variable, all_proxy stands in, lower case wins", () => {
  const env = {
    HTTP_PROXY: "http://upper:1",
    http_proxy: "http://lower:2",
    HTTPS_PROXY: "secure:3",
    ALL_PROXY: "socks5h://all:4",
  };
  assert.equal(urlFor("http://a.test/", env), "http://lower:2/");
  assert.equal(urlFor("https://a.test/", env), "http://secure:3/");
  assert.deepEqual(proxyFor(new URL("http://a.test/"), { ALL_PROXY: "socks5h://all:4" }), {
    transport: "socks5",
    url: "socks5h://all:4",
  });
  assert.equal(urlFor("http://a.test/", {}), undefined);
  assert.equal(urlFor("http://a.test/", { HTTP_PROXY: " " }), undefined);
});

Deno.test("no_proxy exempts hosts, their subdomains, ports, addresses, networks, or all", () => {
  const exempt = (list: string, address: string) =>
    urlFor(address, { HTTP_PROXY: "http://p:1", NO_PROXY: list }) === undefined;
  for (
    const [list, address] of [
      ["*", "http://a.test/"],
      ["b.test, a.test", "http://a.test/"],
      ["a.test", "http://deep.a.test/"],
      [".a.test", "http://deep.a.test/"],
      ["*.a.test", "http://deep.a.test/"],
      ["a.test:8080", "http://a.test:8080/"],
      ["a.test:80", "http://a.test/"],
      ["127.0.0.1", "http://127.0.0.1:9000/"],
      ["10.0.0.0/8", "http://10.20.30.40/"],
      ["[::1]", "http://[::1]:8000/"],
      ["A.TEST", "http://a.test/"],
    ] as const
  ) assert.ok(exempt(list, address), `${list} exempts ${address}`);
  for (
    const [list, address] of [
      ["", "http://a.test/"],
      ["a.test", "http://nota.test/"],
      ["a.test:8080", "http://a.test/"],
      ["10.0.0.0/8", "http://11.0.0.1/"],
      ["10.0.0.0/99", "http://10.0.0.1/"],
      [".", "http://a.test/"],
    ] as const
  ) assert.ok(!exempt(list, address), `${list} doesn't exempt ${address}`);
});

Deno.test("credentials of a proxy are taken out of its address, and no message quotes them", () => {
  const choice = proxyFor(new URL("http://a.test/"), { http_proxy: "http://u%40x:p%3Aw@proxy:8" });
  assert.deepEqual(choice, {
    transport: "http",
    url: "http://proxy:8/",
    basicAuth: { username: "u@x", password: "p:w" },
  });
  assert.throws(
    () => proxyFor(new URL("http://a.test/"), { http_proxy: "ftp://user:hidden@proxy" }),
    (thrown) => thrown instanceof TypeError && !thrown.message.includes("hidden"),
  );
});

Deno.test("a proxy that is no address is named by its variable", () => {
  assert.equal(badProxyVariable({ HTTPS_PROXY: "ftp://p:1", http_proxy: "p:1" }), "HTTPS_PROXY");
  assert.equal(badProxyVariable({ http_proxy: "http://[" }), "http_proxy");
  assert.equal(badProxyVariable({ HTTP_PROXY: " ", ALL_PROXY: "socks5://p:1" }), undefined);
});
