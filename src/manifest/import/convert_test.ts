import assert from "node:assert/strict";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { parseServers } from "../parse_servers.ts";
import { Problems } from "../problems.ts";
import { withEntries } from "../yaml_edit.ts";
import { convertServers } from "./convert.ts";
import type { ForeignFormat } from "./foreign_text.ts";

async function convert(given: Json | string, format?: ForeignFormat) {
  const text = typeof given === "string" ? given : JSON.stringify(given);
  const options = { file: "theirs", ...format === undefined ? {} : { format } };
  const { servers, notes } = await convertServers(text, options);
  return {
    servers: Object.fromEntries(servers.map(({ name, entry }) => [name, entry])),
    notes: notes.map(({ server, message }) => `${server}: ${message}`),
  };
}

/** One server under `mcpServers`. */
async function one(server: JsonObject, key = "mcpServers") {
  const { servers, notes } = await convert({ [key]: { s: server } });
  return { entry: servers["s"], notes: notes.map((note) => note.replace(/^s: /, "")) };
}

Deno.test("[B6] mcpServers of a desktop program come over as they are", async () => {
  const { servers, notes } = await convert({
    globalShortcut: "",
    mcpServers: {
      filesystem: { command: "npx", args: ["-y", "@scope/server-filesystem", "/data"] },
      weather: { command: "uv", args: ["run", "weather.py"], env: { LEVEL: "info", PORT: 8080 } },
    },
  });
  assert.deepEqual(servers, {
    filesystem: { command: "npx", args: ["-y", "@scope/server-filesystem", "/data"] },
    weather: { command: "uv", args: ["run", "weather.py"], env: { LEVEL: "info", PORT: "8080" } },
  });
  assert.deepEqual(notes, []);
});

Deno.test("[B6] servers at an address, by whatever key and type a program names them", async () => {
  const cases: [JsonObject, JsonObject][] = [
    [{ url: "https://x/mcp" }, { url: "https://x/mcp" }],
    [{ serverUrl: "https://x/sse" }, { url: "https://x/sse" }],
    [{ httpUrl: "https://x" }, { url: "https://x", transport_type: "http" }],
    [{ type: "sse", url: "https://x" }, { url: "https://x", transport_type: "sse" }],
    [{ type: "http", url: "https://x" }, { url: "https://x", transport_type: "http" }],
    [{ type: "streamable-http", url: "https://x" }, { url: "https://x", transport_type: "http" }],
    [{ type: "streamableHttp", url: "https://x" }, { url: "https://x", transport_type: "http" }],
    [{ transport: "sse", url: "https://x" }, { url: "https://x", transport_type: "sse" }],
    [
      { url: "https://x", headers: { "X-Team": "seven" } },
      { url: "https://x", headers: { "X-Team": "seven" } },
    ],
  ];
  for (const [given, expected] of cases) {
    const { entry, notes } = await one(given);
    assert.deepEqual(entry, expected, JSON.stringify(given));
    assert.deepEqual(notes, [], JSON.stringify(given));
  }
});

Deno.test("[D15] variables of other programs become rnix's, what none is stays as plain text", async () => {
  const { entry, notes } = await one({
    command: "${userHome}/bin/${env:NAME}",
    args: ["${TOKEN}", "${LEVEL:-info}", "$HOME", "5$", "$$", "$(date)", "${workspaceFolder}/src"],
    env: { A: "Bearer ${env:A_KEY}", B: "${unknown:x}" },
  });
  assert.deepEqual(entry, {
    command: "${HOME}/bin/${NAME}",
    args: ["${TOKEN}", "${LEVEL:-info}", "$$HOME", "5$", "$$$", "$(date)", "./src"],
    env: { A: "Bearer ${A_KEY}", B: "$${unknown:x}" },
  });
  assert.deepEqual(notes, [
    'args[6]: "${workspaceFolder}" is "." now, the folder of the run',
    'env.B: "${unknown:x}" is no variable of rnix and stays as plain text',
  ]);
});

Deno.test("[B6] VS Code's servers: comments, inputs, folders", async () => {
  const { servers, notes } = await convert(`{
  // comments, and "strings // like these"
  "inputs": [{ "type": "promptString", "id": "github-token", "password": true }],
  "servers": {
    "github": {
      "type": "stdio",
      "command": "docker", /* one
      more */
      "args": ["run", "//not-a-comment", "\${TOKEN}",],
      "env": { "GITHUB_TOKEN": "\${input:github-token}" },
      "cwd": "\${workspaceFolder}",
      "envFile": "\${workspaceFolder}/.env",
    },
    "remote": {
      "type": "http",
      "url": "https://x/mcp",
      "headers": { "Authorization": "Bearer \${input:1st}" },
    },
  },
}`);
  assert.deepEqual(servers, {
    github: {
      command: "docker",
      args: ["run", "//not-a-comment", "$${TOKEN}"],
      env: { GITHUB_TOKEN: "${GITHUB_TOKEN}" },
    },
    remote: {
      url: "https://x/mcp",
      transport_type: "http",
      headers: { Authorization: "Bearer ${INPUT_1ST}" },
    },
  });
  assert.deepEqual(notes, [
    'github: args[2]: "${TOKEN}" is no variable of rnix and stays as plain text',
    'github: env.GITHUB_TOKEN: "${input:github-token}" is now the variable GITHUB_TOKEN: export it',
    'github: "envFile" is left out: export what is in that file, and name the variables in inherit_env',
    'remote: headers.Authorization: "${input:1st}" is now the variable INPUT_1ST: export it',
  ]);
});

const SAMPLE = `
# MCP servers
[[mcp_servers]]
name = "database"
command = "python"
args = ["-m", "server"]
env = { DATABASE_URL = "\${DB_URL}", TIMEOUT = "\${DB_TIMEOUT:-30}", PRICE = "5 $" }

[[mcp_servers]]
url = "https://mcp.example.com/sse"
headers = { Authorization = "Bearer \${TOKEN}" }
`;

Deno.test("[B6] TOML with [[mcp_servers]]: every table is a server, its variables are variables", async () => {
  const { servers, notes } = await convert(SAMPLE);
  assert.deepEqual(servers, {
    "database": {
      command: "python",
      args: ["-m", "server"],
      env: { DATABASE_URL: "${DB_URL}", TIMEOUT: "${DB_TIMEOUT:-30}", PRICE: "5 $" },
    },
    "server-2": {
      url: "https://mcp.example.com/sse",
      headers: { Authorization: "Bearer ${TOKEN}" },
    },
  });
  assert.deepEqual(notes, []);
});

Deno.test("[B6] TOML with [mcp_servers.name]: nothing is a variable but where a key says so", async () => {
  const { servers, notes } = await convert(
    `
[mcp_servers.docs]
command = "npx"
args = ["\${HOME}"]
env_vars = ["API_KEY"]
startup_timeout_sec = 20
tool_timeout_sec = 1.5
enabled_tools = ["search"]
enabled = false

[mcp_servers.remote]
url = "https://x/mcp"
bearer_token_env_var = "MY_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Key" = "MY_KEY" }
oauth_scopes = ["a"]
`,
    "toml",
  );
  assert.deepEqual(servers, {
    docs: {
      command: "npx",
      args: ["$${HOME}"],
      inherit_env: ["API_KEY"],
      startup_timeout: "20000ms",
      timeout: "1500ms",
      tools: { allow: ["search"] },
    },
    remote: {
      url: "https://x/mcp",
      headers: { "X-Region": "eu", "X-Key": "${MY_KEY}", "Authorization": "Bearer ${MY_TOKEN}" },
    },
  });
  assert.deepEqual(notes, [
    'docs: args[0]: "${HOME}" is no variable of rnix and stays as plain text',
    "docs: it was disabled; here a server is mounted only where a manifest names it",
    'remote: "oauth_scopes" is left out: rnix has nothing for it',
  ]);
});

Deno.test("secrets that are written out are kept, and told without their value", async () => {
  const { entry, notes } = await one({
    command: "x",
    args: ["--api-key=sk-12345"],
    env: { GITHUB_TOKEN: "ghp_12345", LEVEL: "info", DB_PASSWORD: "${env:PW}" },
  });
  assert.deepEqual(isJsonObject(entry) && entry["env"], {
    GITHUB_TOKEN: "ghp_12345",
    LEVEL: "info",
    DB_PASSWORD: "${PW}",
  });
  assert.deepEqual(notes, [
    "an argument looks like a secret that is written out; better as a ${VAR}",
    "env.GITHUB_TOKEN is written out; better as ${GITHUB_TOKEN}",
  ]);
  const remote = await one({
    url: "https://x/mcp?api_key=12345",
    headers: { Authorization: "Bearer 12345", Accept2: "x" },
  });
  assert.deepEqual(remote.notes, [
    "url holds a parameter that looks like a secret; better as a ${VAR}",
    "headers.Authorization is written out; better as a ${VAR}",
  ]);
});

Deno.test("what can't be carried over is told, and never what a value was", async () => {
  const cases: [JsonObject, boolean, ...string[]][] = [
    [{}, false, "it has neither a command nor a url; left out"],
    [{ type: "websocket", url: "wss://x" }, false, 'transport "websocket" is unknown; left out'],
    [
      { url: "ftp://secret-host" },
      false,
      "url: Expected a URL that begins with http:// or https://; left out",
    ],
    [
      { url: "https://me:secret@x" },
      false,
      'url: A user name or a password in a URL would show in logs; put it into "headers"; left out',
    ],
    [
      { url: "https://x", headers: { Host: "a" } },
      false,
      'Header "Host" is set by rnix itself; remove it; left out',
    ],
    [
      { command: "x", env: { "A-B": "1", RNIX_X: "1", N: null } },
      true,
      "env.N has no value that is text; left out",
      'env: "A-B" can\'t be the name of a variable; left out',
      'env: "RNIX_X" can\'t be the name of a variable; left out',
    ],
    [
      { url: "https://x", command: "y", args: ["z"], env: {} },
      true,
      '"command" is for a server that is started; left out beside a url',
      '"args" is for a server that is started; left out beside a url',
    ],
    [
      { command: "./run.sh", cwd: "sub", disabled: true, autoApprove: ["a"], timeout: 60 },
      true,
      "cwd is relative: it starts from the folder of mcp.yaml now",
      "command is a relative path: it starts from the folder of mcp.yaml now",
      "it was disabled; here a server is mounted only where a manifest names it",
      '"autoApprove" is left out: rnix asks by risk, not by tool',
      '"timeout" is left out: its unit differs between programs; write timeout, such as 30s',
    ],
    [
      { command: "npx -y some-server" },
      true,
      "command is the name of one program; if it is a command line, split it into args",
    ],
    [{ command: ["npx", "-y", "x"], args: "no" }, true, '"args" is no list; left out'],
  ];
  for (const [given, kept, ...told] of cases) {
    const { entry, notes } = await one(given);
    assert.deepEqual(notes, told, JSON.stringify(given));
    assert.equal(entry !== undefined, kept, JSON.stringify(given));
  }
  assert.deepEqual((await convert({ mcpServers: { s: 7 } })).notes, [
    "s: it is no mapping; left out",
  ]);
});

Deno.test("names become rnix's, each once", async () => {
  const server = { command: "x" };
  const { servers, notes } = await convert({
    mcpServers: { "My Server": server, "my_server": server, "my-server": server, "日本": server },
  });
  assert.deepEqual(Object.keys(servers), ["my-server", "my-server-2", "my-server-3", "server"]);
  assert.deepEqual(notes, [
    'My Server: its name is "my-server" here: lower-case letters, digits and -',
    'my_server: its name is "my-server-2" here: lower-case letters, digits and -',
    'my-server: its name is "my-server-3" here: lower-case letters, digits and -',
    '日本: its name is "server" here: lower-case letters, digits and -',
  ]);
});

Deno.test("a part of a file is understood, as documentation shows it", async () => {
  const { servers } = await convert({ github: { command: "x" }, theme: "dark" });
  assert.deepEqual(servers, { github: { command: "x" } });
  assert.deepEqual(
    Object.keys((await convert({ mcp: { servers: { a: { command: "x" } } } })).servers),
    ["a"],
  );
});

Deno.test("a text that can't be read is told with its place, and never quoted", async () => {
  const cases: [string, RegExp][] = [
    ['{\n  "a": secret-text\n}', /^theirs:2:8: Invalid JSON$/],
    ['a = "x"\nb = = secret-text\n', /^theirs:2:\d+: Invalid TOML: [^\n]*$/],
    ["{}", /^No MCP servers in "theirs"$/],
    ["[other]\na = 1\n", /^No MCP servers in "theirs"$/],
    ["", /^No MCP servers in "theirs"$/],
    ["[[[", /^theirs:1:\d+: Invalid TOML/],
  ];
  for (const [text, words] of cases) {
    await assert.rejects(convert(text), (error: Error) => {
      assert.match(error.message, words);
      assert.doesNotMatch(error.message, /secret-text/);
      return true;
    }, text);
  }
  await assert.rejects(convert("[1]", "json"), /theirs:1:1: Expected a mapping at the top/);
});

/** Numbers of a fixed sequence, the same in every run. */
function sequence(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor(state / 65_536) % below;
  };
}

Deno.test("[B6] whatever a file says, every entry that is given loads", async () => {
  const keys = [
    ...["command", "args", "env", "cwd", "url", "serverUrl", "httpUrl", "headers", "type"],
    ...["disabled", "env_vars", "bearer_token_env_var", "env_http_headers", "enabled_tools"],
    ...["startup_timeout_sec", "tool_timeout_sec", "startup_timeout_ms", "required", "x"],
  ];
  const values: Json[] = [
    ...[
      "npx",
      "",
      "https://x/${env:A}",
      "${workspaceFolder}",
      "~/a",
      "$HOME",
      "http",
      "a\0b",
      "\r\n",
    ],
    ...[null, true, 0, -1, 7.5, 1e12, [], {}, ["a", 1, null, "${input:x}"], [[]]],
    ...[{ A: "1", "B-C": "2" }, { Host: "x", "X-A": "${B}", "x-a": "y" }, { "": "" }],
  ];
  const next = sequence(3);
  let given = 0;
  for (let round = 0; round < 400; round += 1) {
    const server: JsonObject = {};
    for (let index = 0; index < 5; index += 1) {
      server[keys[next(keys.length)] ?? ""] = values[next(values.length)] ?? null;
    }
    const { servers } = await convertServers(
      JSON.stringify({ [next(2) === 0 ? "mcpServers" : "servers"]: { s: server } }),
      { file: "theirs" },
    );
    const problems = new Problems();
    const text = withEntries("", "servers", servers);
    const loaded = parseServers(text, { file: "mcp.yaml", path: "/mcp.yaml" }, problems);
    assert.deepEqual(problems.list, [], JSON.stringify(server));
    assert.equal(loaded?.length, servers.length);
    given += servers.length;
  }
  assert.ok(given > 50, String(given));
});
