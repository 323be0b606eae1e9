import assert from "node:assert/strict";
import { formatError, SysError } from "../base/errors.ts";
import { resolveModel } from "./resolve_model.ts";

const CLIENT = { TOKEN: "abcdef-token", SHORT: "abc" };

function errorOf(work: () => unknown): SysError {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof SysError) return thrown;
    throw thrown;
  }
  throw new Error("Nothing was thrown");
}

Deno.test("a model's key and URL come from the environment and are secrets", () => {
  const config = { provider: "openai-compatible", preferred: "m" };
  const resolved = resolveModel(
    { ...config, baseUrl: "https://x/${TOKEN}/v1", apiKeyEnv: "TOKEN" },
    CLIENT,
  );
  assert.equal(resolved.baseUrl, "https://x/abcdef-token/v1");
  assert.equal(resolved.apiKey, "abcdef-token");
  assert.deepEqual(resolved.secrets, ["abcdef-token"]);
  assert.deepEqual(resolveModel({ ...config, apiKeyEnv: "SHORT" }, CLIENT).secrets, []);
  assert.deepEqual(resolveModel(config, {}), {
    provider: "openai-compatible",
    kind: "openai-compatible",
    model: "m",
    secrets: [],
    sinkOnly: [],
  });
});

Deno.test("a missing key or URL variable is told with its name", () => {
  const config = { provider: "openai-compatible", preferred: "m" };
  const key = errorOf(() => resolveModel({ ...config, apiKeyEnv: "GONE" }, CLIENT));
  assert.equal(key.code, "UNAUTHENTICATED");
  assert.equal(key.exitCode, 2);
  assert.match(key.message, /"GONE" is not set/);
  assert.throws(() => resolveModel({ ...config, apiKeyEnv: "E" }, { E: "" }), /"E" is not set/);
  const url = errorOf(() => resolveModel({ ...config, baseUrl: "http://${GONE}" }, CLIENT));
  assert.match(url.message, /"GONE" \(models.base_url\) is not set/);
  assert.equal(url.exitCode, 2);
});

Deno.test("headers of a provider are filled in; written-out values are secret in sinks, variables everywhere", () => {
  const resolved = resolveModel({
    provider: "mine",
    kind: "anthropic",
    preferred: "m",
    headers: { a: "${TOKEN}", b: "written-out", c: "short", d: "${NONE:-plain-default}" },
  }, CLIENT);
  assert.deepEqual(resolved.headers, {
    a: "abcdef-token",
    b: "written-out",
    c: "short",
    d: "plain-default",
  });
  assert.deepEqual(resolved.secrets, ["abcdef-token"]);
  assert.deepEqual(resolved.sinkOnly, ["written-out"]);
  assert.equal(resolved.kind, "anthropic");
});

Deno.test("a base_url that no request can go to is told as it is written, never with its values", () => {
  const config = { provider: "mine", preferred: "m" };
  const refused: [string, RegExp][] = [
    ["x${TOKEN}", /^models\.base_url "x\$\{TOKEN\}" isn't an http or https URL$/],
    ["ftp://${TOKEN}/v1", /"ftp:\/\/\$\{TOKEN\}\/v1" isn't an http/],
    ["${TOKEN}", /"\$\{TOKEN\}" isn't an http/],
    ["http://user:${TOKEN}@host/v1", /^models\.base_url holds a user name or a password$/],
    ["https://${TOKEN}@host/v1", /holds a user name/],
    ["ftp://user:written-out@host/v1", /holds a user name/],
  ];
  for (const [baseUrl, message] of refused) {
    const error = errorOf(() => resolveModel({ ...config, baseUrl }, CLIENT));
    assert.match(error.message, message);
    assert.equal(error.exitCode, 2);
    assert.doesNotMatch(formatError(error), /abcdef-token|written-out/);
  }
  const baseUrl = "https://${TOKEN}.example.com/v1";
  const { secrets } = resolveModel({ ...config, baseUrl }, { TOKEN: "ABC-Token" });
  assert.deepEqual(secrets, ["ABC-Token", "abc-token"], "as its host is told, too");
});

Deno.test("all variables that a model lacks are told at once; a key that need not be set isn't among them", () => {
  const config = { provider: "mine", preferred: "m" };
  const error = errorOf(() =>
    resolveModel({ ...config, baseUrl: "http://${GONE}", headers: { h: "${LOST}" } }, CLIENT)
  );
  assert.match(
    error.message,
    /"GONE" \(models\.base_url\), "LOST" \(providers\.mine\.headers\.h\)/,
  );
  assert.equal(
    resolveModel({ ...config, apiKeyEnv: "GONE", keyOptional: true }, CLIENT).apiKey,
    undefined,
  );
  assert.equal(
    resolveModel({ ...config, apiKeyEnv: "TOKEN", keyOptional: true }, CLIENT).apiKey,
    "abcdef-token",
  );
});
