/** What a status says of the message, and what not. */
import assert from "node:assert/strict";
import { SysError } from "../base/errors.ts";
import { refusalError, refusalOf, refusalText } from "./http_refusal.ts";

const KEY = "key-0123456789abcdef";

function read(
  status: number,
  body = "",
  headers: { [name: string]: string } = {},
  session = false,
) {
  return refusalOf(new Response(body, { status, headers }), body, {
    server: "s",
    hadSession: session,
    redact: (text) => text.replaceAll(KEY, "[redacted]"),
  });
}

const withoutId = (message: string) =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: null,
    error: { code: -32000, message, data: { retryable: true } },
  });

Deno.test("[A09] few statuses prove that a call didn't run, and no hint in a body does", () => {
  for (const status of [401, 403, 405, 413, 415, 429]) assert.ok(read(status).refused, `${status}`);
  for (const status of [404, 408, 409, 410, 422, 500, 502, 503, 504]) {
    assert.ok(
      !read(status, withoutId("retryable: true"), { "retry-after": "1" }).refused,
      `${status}`,
    );
  }
  assert.ok(!read(400, "Bad Request").refused);
  assert.ok(read(400, withoutId("Bad Request")).refused);
});

Deno.test("[B19] an unknown session is 404, or 400 with those words, to a request that had one", () => {
  assert.ok(read(404, "", {}, true).sessionGone);
  assert.ok(!read(404, "", {}, false).sessionGone);
  assert.ok(
    read(400, withoutId("Bad Request: No valid session ID provided"), {}, true).sessionGone,
  );
  assert.ok(!read(400, withoutId("Bad Request: no name"), {}, true).sessionGone);
  assert.equal(read(404, "", {}, true).code, "SESSION_EXPIRED");
});

Deno.test("a refused login names what is asked for, with a hint, and no token", () => {
  const refusal = read(401, "secret page", {
    "www-authenticate":
      'Bearer realm="tools", error="invalid_token", token="hidden", scope="read write"',
  });
  const error = refusalError(refusal, "s", "initialize");
  assert.equal(
    error.message,
    'Server "s" answered HTTP 401 (Bearer, realm "tools", error "invalid_token", scope "read write") to initialize',
  );
  assert.ok(error.cause instanceof SysError && error.cause.code === "UNAUTHENTICATED");
  assert.match(error.cause.hint ?? "", /headers of server "s"/);
});

Deno.test("pages are not quoted, texts are cut, redirects name the origin alone", () => {
  assert.equal(refusalText(read(502, "<!DOCTYPE html><p>Bad")), "HTTP 502");
  assert.ok(refusalText(read(500, "x".repeat(10_000))).length < 400);
  const redirect = read(302, "", { location: "https://other.test/mcp?key=hidden" });
  assert.equal(refusalText(redirect), "HTTP 302 (a redirect to https://other.test)");
});

Deno.test("a proxy that asks for a login isn't taken for the server: the hint is about it, the outcome unknown", () => {
  const refusal = read(407);
  assert.match(refusal.hint ?? "", /HTTP_PROXY/);
  assert.ok(!refusal.refused);
});

Deno.test("what it says is without secrets before it is cut, so that no half of one is left", () => {
  for (const before of [280, 285, 290, 295]) {
    const text = `${"x".repeat(before)} ${KEY}`;
    const challenge = { "www-authenticate": `Bearer error="${"x".repeat(before - 16)} ${KEY}"` };
    for (const told of [read(503, text).told, read(401, "", challenge).told]) {
      assert.ok(told.length <= 300 && !told.includes(KEY.slice(0, 3)), told);
    }
  }
});
