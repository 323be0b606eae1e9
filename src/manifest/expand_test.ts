import assert from "node:assert/strict";
import { formatError, SysError } from "../base/errors.ts";
import type { HttpServerConfig, ServerConfig, StdioServerConfig } from "./agent_manifest.ts";
import {
  type ExpandedHttpServer,
  type ExpandedServer,
  type ExpandedStdioServer,
  type ExpandFacts,
  expandServers,
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
function expandOne(config: ServerConfig, facts: ExpandFacts): ExpandedServer {
  const [only] = expandServers([{ ...config, required: true }], facts).ready;
  assert.ok(only !== undefined);
  return only.expanded;
}

function expandServer(config: StdioServerConfig, facts: ExpandFacts): ExpandedStdioServer {
  const expanded = expandOne(config, facts);
  assert.ok(expanded.transport === "stdio");
  return expanded;
}

function expandRemote(config: HttpServerConfig, facts: ExpandFacts = FACTS): ExpandedHttpServer {
  const expanded = expandOne(config, facts);
  assert.ok(expanded.transport !== "stdio");
  return expanded;
}

const TERMS = {
  ...{ startupTimeoutMs: 1, timeoutMs: 1, maxTimeoutMs: 1, required: true },
  rules: { effects: {}, risk: {}, sensitive: [] },
};

function server(change: Partial<StdioServerConfig> = {}): StdioServerConfig {
  return {
    ...TERMS,
    ...{ name: "github", transport: "stdio", command: "npx", args: [], env: {}, inheritEnv: [] },
    ...change,
  };
}

function remote(change: Partial<HttpServerConfig> = {}): HttpServerConfig {
  return {
    ...TERMS,
    ...{ name: "remote", transport: "auto", url: "https://mcp.example/mcp", headers: {} },
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

Deno.test("[C09] literal values of env are secrets in sinks only, inherited ones everywhere, like other variables", () => {
  const expanded = expandServer(
    server({
      env: { KEY: "written-out", D: "$$dollars", N: "1" },
      inheritEnv: ["MY_PROXY", "HOME"],
    }),
    FACTS,
  );
  assert.deepEqual(expanded.secrets, ["my-proxy-value"]);
  assert.deepEqual(expanded.sinkOnly, ["written-out", "$dollars"]);
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

Deno.test("[D15] url and headers follow the rule too", () => {
  const { transport, url, headers } = expandRemote(remote({
    transport: "sse",
    url: "https://${SUB:-api}.example/${TOKEN}?price=$$5",
    headers: { Authorization: "Bearer ${TOKEN}", "X-Plain": "a b" },
  }));
  assert.deepEqual({ transport, url, headers }, {
    transport: "sse",
    url: "https://api.example/abcdef-token?price=$5",
    headers: { Authorization: "Bearer abcdef-token", "X-Plain": "a b" },
  });
});

Deno.test("[D15] what url and headers lack is told with what other servers lack, each with its key", () => {
  const config = remote({
    url: "https://${HOST}/mcp",
    headers: { Authorization: "Bearer ${KEY}" },
  });
  const error = errorOf(() => expandServers([server({ args: ["${A}"] }), config], FACTS));
  assert.equal(
    formatError(error),
    '[INVALID] Mount: Variables "A" (mcp.servers.github.args[0]), ' +
      '"HOST" (mcp.servers.remote.url), ' +
      '"KEY" (mcp.servers.remote.headers.Authorization) are not set\n' +
      "hint: export A=… HOST=… KEY=…, or give a default: ${A:-…}",
  );
});

Deno.test("an address or a header that its values make unfit is told by its template, never with the values", () => {
  const env = {
    ...CLIENT,
    BAD: "not-a-scheme",
    LOGIN: "me:secretly@host",
    LINES: "one\r\ntwo-secret",
  };
  const cases: [Partial<HttpServerConfig>, string][] = [
    [
      { url: "${BAD}://x/mcp" },
      'mcp.servers.remote.url: "${BAD}://x/mcp" isn\'t an http or https URL with the values it gets',
    ],
    [
      { url: "https://${LOGIN}/mcp" },
      'mcp.servers.remote.url: "https://${LOGIN}/mcp" holds a user name or a password; put it into "headers"',
    ],
    [
      { headers: { "X-Key": "${LINES}" } },
      "mcp.servers.remote.headers.X-Key: The value of a header can't hold line ends or control characters",
    ],
    [
      { headers: { "X-Key": "${TOKEN}–" } },
      "mcp.servers.remote.headers.X-Key: The value of a header can't hold characters outside Latin-1",
    ],
  ];
  for (const [change, told] of cases) {
    const error = errorOf(() => expandServers([remote(change)], { ...FACTS, clientEnv: env }));
    assert.equal(error.message, told);
    assert.equal(error.exitCode, 3);
    assert.doesNotMatch(formatError(error), /secret|not-a-scheme|abcdef/);
  }
});

Deno.test("what is missing and what doesn't fit is one error; an optional server only fails itself", () => {
  const unfit = remote({ name: "unfit", url: "ftp://${TOKEN}" });
  const error = errorOf(() => expandServers([server({ command: "${A}" }), unfit], FACTS));
  assert.equal(
    error.message,
    'Variable "A" (mcp.servers.github.command) is not set; ' +
      'mcp.servers.unfit.url: "ftp://${TOKEN}" isn\'t an http or https URL with the values it gets',
  );
  const { ready, failed } = expandServers([{ ...unfit, required: false }, server()], FACTS);
  assert.deepEqual(ready.map(({ config }) => config.name), ["github"]);
  assert.deepEqual(failed.map(({ error }) => error.device), ["unfit"]);
});

Deno.test("a server at an address gets of the environment only proxies and certificates", () => {
  assert.deepEqual(expandRemote(remote()).env, { HTTPS_PROXY: "http://proxy:3128" });
});

Deno.test("[C09] the password of a proxy is a secret, though its variable is on the allowlist", () => {
  const clientEnv = { HTTPS_PROXY: "http://me:proxy%2Fword@proxy:3128", NO_PROXY: "localhost" };
  const { env, secrets } = expandRemote(remote(), { ...FACTS, clientEnv });
  assert.deepEqual(env, clientEnv);
  assert.deepEqual(secrets, ["proxy%2Fword", "proxy/word"]);
  assert.deepEqual(expandServer(server(), { ...FACTS, clientEnv }).secrets, secrets);
});

Deno.test("variables in url and headers are secret everywhere, what is written out there in sinks", () => {
  const { secrets, sinkOnly } = expandRemote(
    remote({
      url: "https://${HOST}.example/p?key=written-key&short=abc&own=${TOKEN}#part?no=parameter",
      headers: { Authorization: "Bearer written-token", "X-Key": "pre-${TOKEN}", A: "tiny" },
    }),
    { ...FACTS, clientEnv: { ...CLIENT, HOST: "Secret-Host" } },
  );
  assert.deepEqual(secrets, ["Secret-Host", "abcdef-token", "secret-host"]);
  assert.deepEqual(sinkOnly, ["Bearer written-token", "written-token", "written-key"]);
});

Deno.test("a server of mcp.yaml starts from the folder of that file, and is told by it", () => {
  const file = "/project/.rnix/mcp.yaml";
  const expanded = expandServer(server({ file, command: "./run.sh", cwd: "data" }), FACTS);
  assert.deepEqual([expanded.command, expanded.cwd], [
    "/project/.rnix/run.sh",
    "/project/.rnix/data",
  ]);
  const error = errorOf(() => expandServers([server({ file, args: ["${A}"] })], FACTS));
  assert.equal(
    error.message,
    'Variable "A" (servers.github.args[0] of .rnix/mcp.yaml) is not set',
  );
});
