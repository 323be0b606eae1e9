import assert from "node:assert/strict";
import { formatError, SysError } from "../base/errors.ts";
import type { ServerConfig } from "./agent_manifest.ts";
import {
  type ExpandedServer,
  expandServers,
  isPassedVariable,
  literalSecrets,
  PASSED_VARIABLES,
  resolveModel,
} from "./expand.ts";

const CLIENT = {
  PATH: "/usr/bin",
  HOME: "/home/someone",
  LC_TIME: "C.UTF-8",
  XDG_CACHE_HOME: "/home/someone/.cache",
  HTTPS_PROXY: "http://proxy:3128",
  TOKEN: "abcdef-token",
  SHORT: "abc",
  MY_PROXY: "my-proxy-value",
  AWS_SECRET_ACCESS_KEY: "not-for-servers",
  RNIX_HOME: "/r",
};
const FACTS = { clientEnv: CLIENT, manifestFolder: "/agents/a", runFolder: "/project" };

/** One server, as one that a run can't do without. */
function expandServer(
  config: ServerConfig,
  facts: Parameters<typeof expandServers>[1],
): ExpandedServer {
  const [only] = expandServers([{ ...config, required: true }], facts).ready;
  assert.ok(only !== undefined);
  return only.expanded;
}

function server(change: Partial<ServerConfig> = {}): ServerConfig {
  return {
    name: "github",
    command: "npx",
    args: [],
    env: {},
    inheritEnv: [],
    startupTimeoutMs: 1,
    timeoutMs: 1,
    maxTimeoutMs: 1,
    required: true,
    rules: { effects: {}, risk: {}, sensitive: [] },
    ...change,
  };
}

function errorOf(work: () => unknown): SysError {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof SysError) return thrown;
    throw thrown;
  }
  throw new Error("Nothing was thrown");
}

Deno.test("[D15] command, args, env and cwd follow one rule", () => {
  const expanded = expandServer(
    server({
      command: "${HOME}/bin/server",
      args: ["--token=${TOKEN}", "${LEVEL:-info}", "$$5", "^x$"],
      env: { KEY: "${TOKEN}", WHERE: "${HOME}/x", PLAIN: "literal-value" },
      cwd: "${SUB:-data}/in",
    }),
    FACTS,
  );
  assert.equal(expanded.command, "/home/someone/bin/server");
  assert.deepEqual(expanded.args, ["--token=abcdef-token", "info", "$5", "^x$"]);
  assert.equal(expanded.env["KEY"], "abcdef-token");
  assert.equal(expanded.env["WHERE"], "/home/someone/x");
  assert.equal(expanded.cwd, "/agents/a/data/in");
});

Deno.test("[D15] all missing variables are told in one error, each with its keys", () => {
  const error = errorOf(() =>
    expandServer(
      server({
        command: "${CMD}",
        args: ["x", "${A}-${B}"],
        env: { K: "${A}", OK: "${TOKEN}" },
        cwd: "${DIR}",
      }),
      FACTS,
    )
  );
  assert.equal(error.code, "INVALID");
  assert.equal(error.exitCode, 3);
  assert.equal(
    formatError(error),
    '[INVALID] Mount: github (Variables "CMD" (mcp.servers.github.command), ' +
      '"A" (mcp.servers.github.args[1], mcp.servers.github.env.K), ' +
      '"B" (mcp.servers.github.args[1]), "DIR" (mcp.servers.github.cwd) are not set)\n' +
      "hint: export CMD=… A=… B=… DIR=…, or give a default: ${CMD:-…}",
  );
});

Deno.test("what all required servers lack is one error; an optional one only fails itself", () => {
  const configs = [
    server({ name: "one", args: ["${A}"] }),
    server({ name: "two", env: { K: "${B}" } }),
    server({ name: "maybe", env: { K: "${C}" }, required: false }),
    server({ name: "fine" }),
  ];
  const error = errorOf(() => expandServers(configs, FACTS));
  assert.match(error.message, /"A" \(mcp.servers.one.args\[0\]\), "B" \(mcp.servers.two.env.K\)/);
  assert.doesNotMatch(error.message, /"C"/);
  assert.equal(error.exitCode, 3);

  const { ready, failed } = expandServers(configs.slice(2), FACTS);
  assert.deepEqual(ready.map(({ config }) => config.name), ["fine"]);
  assert.deepEqual(failed.map(({ config }) => config.name), ["maybe"]);
  assert.match(
    failed[0]?.error.message ?? "",
    /Variable "C" \(mcp.servers.maybe.env.K\) is not set/,
  );
});

Deno.test("a server gets the allowlist, what it inherits by name, and its own variables, nothing else", () => {
  const { env } = expandServer(
    server({ inheritEnv: ["MY_PROXY", "GONE"], env: { PATH: "/own/bin", A: "b" } }),
    FACTS,
  );
  assert.deepEqual(env, {
    PATH: "/own/bin",
    HOME: "/home/someone",
    LC_TIME: "C.UTF-8",
    XDG_CACHE_HOME: "/home/someone/.cache",
    HTTPS_PROXY: "http://proxy:3128",
    MY_PROXY: "my-proxy-value",
    A: "b",
  });
});

Deno.test("the allowlist holds what programs need to run at all", () => {
  const passed = ["PATH", "HOME", "USER", "SHELL", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"];
  passed.push("XDG_RUNTIME_DIR", "http_proxy", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE");
  for (const name of passed) assert.ok(isPassedVariable(name), name);
  for (const name of ["GITHUB_TOKEN", "PATHX", "XDG", "LC", "RNIX_HOME", "NODE_OPTIONS"]) {
    assert.ok(!isPassedVariable(name), name);
  }
  assert.equal(new Set(PASSED_VARIABLES).size, PASSED_VARIABLES.length);
});

Deno.test("variables' values are secrets, but for short ones, defaults and the allowlist", () => {
  const expanded = expandServer(
    server({
      args: ["${TOKEN}", "${HOME}", "${SHORT}", "${UNSET:-a-long-default}"],
      env: { T: "Bearer ${TOKEN}", DEFAULTED: "${UNSET:-a-long-default}" },
    }),
    FACTS,
  );
  assert.deepEqual(expanded.secrets, ["abcdef-token"]);
  assert.deepEqual(expanded.sinkOnly, []);
});

Deno.test("literal values of env, and inherited ones, are secrets in sinks only", () => {
  const expanded = expandServer(
    server({ env: { KEY: "written-out", D: "$$dollars", N: "1" }, inheritEnv: ["MY_PROXY"] }),
    FACTS,
  );
  assert.deepEqual(expanded.secrets, []);
  assert.deepEqual(expanded.sinkOnly, ["my-proxy-value", "written-out", "$dollars"]);
});

Deno.test("a command with a slash and cwd start from the manifest's folder, a bare command doesn't", () => {
  const place = (command: string, cwd?: string, manifestFolder = "/agents/a") => {
    const config = server(cwd === undefined ? { command } : { command, cwd });
    const expanded = expandServer(config, { ...FACTS, manifestFolder });
    return [expanded.command, expanded.cwd];
  };
  assert.deepEqual(place("npx"), ["npx", "/project"]);
  assert.deepEqual(place("./run.sh", "."), ["/agents/a/run.sh", "/agents/a"]);
  assert.deepEqual(place("bin/run.sh", "../b"), ["/agents/a/bin/run.sh", "/agents/b"]);
  assert.deepEqual(place("/usr/bin/x", "/data/"), ["/usr/bin/x", "/data"]);
  assert.deepEqual(place("npx", "sub", "embedded:demo"), ["npx", "/project/sub"]);
});

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

Deno.test("written-out values of env and headers are a manifest's secrets, whoever reads it", () => {
  const place = { provider: "mine", preferred: "m", timeoutMs: 1, maxTimeoutMs: 1 };
  const found = literalSecrets({
    name: "a",
    description: "",
    instructions: "",
    models: {
      ...place,
      headers: { a: "Bearer written-key", b: "${TOKEN}" },
      fallback: { ...place, model: "f", headers: { c: "fallback-key" } },
    },
    servers: [server({ env: { A: "cost$$100", B: "x${TOKEN}", C: "short", D: "${NO:-default}" } })],
    budget: {},
    onUnknown: "ask",
  });
  assert.deepEqual(found, ["cost$100", "Bearer written-key", "written-key", "fallback-key"]);
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
