import assert from "node:assert/strict";
import type { AgentManifest } from "./agent_manifest.ts";
import { parseManifest } from "./parse_manifest.ts";
import { formatProblem, Problems } from "./problems.ts";

function parse(text: string, instructionsBeside?: string) {
  const problems = new Problems();
  const { manifest } = parseManifest(text, { file: "f", instructionsBeside }, problems);
  return { manifest, told: problems.list.map(formatProblem) };
}

function good(text: string, beside?: string): AgentManifest {
  const { manifest, told } = parse(text, beside);
  assert.deepEqual(told, []);
  assert.ok(manifest !== undefined);
  return manifest;
}

const BASE = "name: a\ninstructions: do\nmodels: { provider: scripted, script: s.yaml }\n";
const SERVER = (keys: string) => `${BASE}mcp: { servers: { s: { command: c, ${keys} } } }\n`;

const FULL = `
name: reviewer
description: Reviews a change
tools: [Read, Bash, Read]
agents: [a, { name: b, manifest: ../b, detach: true }]
instructions: |
  You review code.
models:
  provider: openai-compatible
  preferred: some-model
  base_url: http://localhost:11434/v1
  api_key_env: SOME_KEY
  timeout: 2m
  max_timeout: 20m
mcp:
  servers:
    github:
      command: npx
      args: ["-y", "server@1"]
      env: { TOKEN: "\${TOKEN}", LOG: "\${LOG:-info}" }
      cwd: .
      inherit_env: [MY_PROXY]
      startup_timeout: 1m30s
      timeout: 45s
      max_timeout: 1h
      max_output_tokens: 4096
      required: false
      transport_type: stdio
      tools:
        allow: ["search_*", get]
        effects: { "search_*": read, create: write }
        risk: { create: high }
        sensitive: [get_secret]
    second: { command: ./run.sh }
    remote:
      url: https://mcp.example.com/\${PLACE}
      headers: { Authorization: "Bearer \${TOKEN}" }
      timeout: 5s
budget: { turns: 16, tokens: 200000, tool_calls: 100, duration: 30m }
on_unknown: skip
`;

Deno.test("every key there is arrives in the manifest, durations in milliseconds", () => {
  const manifest = good(FULL);
  assert.deepEqual(manifest, {
    tools: ["Read", "Bash"],
    agents: [{ name: "a", detach: false }, { name: "b", manifest: "../b", detach: true }],
    name: "reviewer",
    description: "Reviews a change",
    instructions: "You review code.\n",
    models: {
      provider: "openai-compatible",
      preferred: "some-model",
      baseUrl: "http://localhost:11434/v1",
      apiKeyEnv: "SOME_KEY",
      timeoutMs: 120_000,
      maxTimeoutMs: 1_200_000,
    },
    servers: [
      {
        name: "github",
        transport: "stdio",
        command: "npx",
        args: ["-y", "server@1"],
        env: { TOKEN: "${TOKEN}", LOG: "${LOG:-info}" },
        cwd: ".",
        inheritEnv: ["MY_PROXY"],
        startupTimeoutMs: 90_000,
        timeoutMs: 45_000,
        maxTimeoutMs: 3_600_000,
        outputTokensMax: 4096,
        required: false,
        rules: {
          allow: ["search_*", "get"],
          effects: { "search_*": "read", create: "write" },
          risk: { create: "high" },
          sensitive: ["get_secret"],
        },
      },
      {
        name: "second",
        transport: "stdio",
        command: "./run.sh",
        args: [],
        env: {},
        inheritEnv: [],
        startupTimeoutMs: 30_000,
        timeoutMs: 30_000,
        maxTimeoutMs: 600_000,
        outputTokensMax: 25_000,
        required: true,
        rules: { effects: {}, risk: {}, sensitive: [] },
      },
      {
        name: "remote",
        transport: "auto",
        url: "https://mcp.example.com/${PLACE}",
        headers: { Authorization: "Bearer ${TOKEN}" },
        startupTimeoutMs: 30_000,
        timeoutMs: 5_000,
        maxTimeoutMs: 600_000,
        outputTokensMax: 25_000,
        required: true,
        rules: { effects: {}, risk: {}, sensitive: [] },
      },
    ],
    budget: { turns: 16, tokens: 200_000, tool_calls: 100, duration_ms: 1_800_000 },
    onUnknown: "skip",
  });
});

Deno.test("defaults: 50 turns, the rest unlimited, ask about unknown outcomes", () => {
  const manifest = good(BASE);
  assert.deepEqual(manifest.budget, { turns: 50 });
  assert.equal(manifest.onUnknown, "ask");
  assert.equal(manifest.models.preferred, "scripted");
  assert.equal(manifest.description, "");
  assert.ok(!("servers" in manifest));
});

Deno.test("[B41] a server's results are limited unless the manifest says 0", () => {
  const limits = ["", "max_output_tokens: 0", "max_output_tokens: 9000000"].map((keys) =>
    good(SERVER(keys)).servers?.[0]?.outputTokensMax
  );
  assert.deepEqual(limits, [25_000, undefined, 9_000_000]);
});

Deno.test("`mcp: {}` is a marker: no servers, but not the same as no key", () => {
  assert.deepEqual(good(`${BASE}mcp: {}\n`).servers, []);
  assert.deepEqual(good(`${BASE}mcp: { servers: {} }\n`).servers, []);
});

Deno.test("servers keep the order of the file", () => {
  const text =
    `${BASE}mcp: { servers: { z: { command: c }, a: { command: c }, m: { command: c } } }`;
  assert.deepEqual(good(text).servers?.map(({ name }) => name), ["z", "a", "m"]);
});

Deno.test("one limit of a request moves the other one's default, never past it", () => {
  const limits = (keys: string) => {
    const server = good(SERVER(keys)).servers?.[0];
    return [server?.timeoutMs, server?.maxTimeoutMs];
  };
  assert.deepEqual(limits("timeout: 20m"), [1_200_000, 1_200_000]);
  assert.deepEqual(limits("max_timeout: 5s"), [5000, 5000]);
  assert.deepEqual(limits("timeout: 5s, max_timeout: 5s"), [5000, 5000]);
  assert.deepEqual(parse(SERVER("timeout: 6s, max_timeout: 5s")).told, [
    'f:4:45: "timeout" (6s, one silence) is longer than "max_timeout" (5s, in all)',
  ]);
});

Deno.test("instructions come from the file or from beside it, from exactly one of them", () => {
  const without = BASE.replace("instructions: do\n", "");
  assert.equal(good(without, "Beside.\n").instructions, "Beside.\n");
  assert.match(parse(without).told.join(), /f:1:1: No instructions/);
  assert.match(parse(BASE, "Beside").told.join(), /f:2:1: Both "instructions" and/);
});

Deno.test("keys of a provider that it needs or can't use are told", () => {
  const models = (text: string) => parse(`name: a\ninstructions: b\nmodels: ${text}\n`).told;
  assert.deepEqual(models("{ provider: scripted }"), [
    'f:3:1: Provider "scripted" needs "script", such as script.yaml',
  ]);
  assert.deepEqual(models("{ provider: scripted, script: s, base_url: http://x }"), [
    'f:3:42: Provider "scripted" has no use for "base_url"; remove it',
  ]);
  assert.equal(models("{ provider: openai-compatible, script: s }").length, 3);
  assert.deepEqual(models("{ provider: openai-compatible, preferred: m, base_url: ftp://x }"), [
    'f:3:64: Expected a URL that begins with http:// or https://, got "ftp://x"',
  ]);
  assert.deepEqual(
    models('{ provider: openai-compatible, preferred: m, base_url: "${U:-x}" }'),
    [],
  );
  assert.deepEqual(models("{ provider: scripted, scrip: s }"), [
    'f:3:31: Unknown key "scrip" in models; did you mean `script`?',
  ]);
  assert.deepEqual(models("{ provider: anthropic }"), [
    'f:3:1: Provider "anthropic" needs "preferred", such as the name of a model',
  ]);
  assert.match(
    models("{ preferred: m }").join(),
    /^f:3:1: Missing key "provider" in models, and providers\.yaml names no "default"/,
  );
  assert.match(
    models("{ providr: openai, preferred: m }").join("\n"),
    /^f:3:11: Unknown key[^\n]*$/,
  );
});

Deno.test("keys that aren't built yet are refused by name, and hide no other mistake", () => {
  const { told } = parse(`${BASE}
approval: { risk: high }
budget: { cost_usd: 0, turns: 0 }
mcp:
  servers:
    a: { url: "https://x", headers: {}, transport_type: http }
    b: { command: c, share: false }
`);
  const keys = told.map((line) => /: "([a-z_]+)" is not built yet/.exec(line)?.[1]);
  assert.deepEqual(keys, [
    ...["approval", undefined, undefined],
  ]);
  assert.match(told.join("\n"), /f:6:31: Expected a whole number from 1 on, got the number 0/);
  assert.match(told.join("\n"), /f:6:21: Expected a number above 0, got the number 0/);
});

Deno.test("built-in tools are granted by name, none by default", () => {
  const granted = (line: string) => parse(`${BASE}${line}`).manifest?.tools;
  assert.deepEqual(granted(""), []);
  assert.deepEqual(granted("tools: [Read, Bash, Read]"), ["Read", "Bash"]);
  assert.match(
    parse(`${BASE}tools: [read]`).told.join(),
    /^f:\d+:9: Expected one of .*did you mean `Read`/,
  );
});

Deno.test("names of servers and variables are checked", () => {
  const name = (server: string) =>
    parse(`${BASE}mcp: { servers: { ${server}: { command: c } } }`).told.length;
  for (const server of ["github", "a", "0", "my-server-2", "a".repeat(64)]) {
    assert.equal(name(server), 0, server);
  }
  for (const server of ["Git", "my_server", "-a", '"a/b"', "..", "a".repeat(65), '""']) {
    assert.equal(name(server), 1, server);
  }
  const env = (variable: string) => parse(SERVER(`env: { ${variable}: x }`)).told;
  assert.match(env("RNIX_INSTANCE").join(), /"RNIX_INSTANCE" is reserved/);
  for (const variable of ["A-B", '"A=B"', "1A", '""', "__proto__"]) {
    assert.match(env(variable).join(), /Invalid variable name/, variable);
  }
  assert.match(parse(SERVER("inherit_env: [A-B]")).told.join(), /Invalid variable name "A-B"/);
});

Deno.test("values are never converted in silence", () => {
  const cases: [string, RegExp][] = [
    ["args: [8080]", /Expected text, got the number 8080; write "8080" in quotes/],
    ["env: { A: true }", /Expected text, got true; write "true" in quotes/],
    ["env: { A: }", /Expected text, got nothing/],
    ["required: yes", /Expected true or false, got "yes"/],
    ["max_output_tokens: 1.5", /Expected a whole number, got the number 1.5/],
    ["max_output_tokens: -1", /Expected a number from 0 on/],
    ["startup_timeout: 30", /Expected a duration such as .*, got 30/],
    ["startup_timeout: 0s", /Expected a duration such as .*, got "0s"/],
    ["startup_timeout: 600h", /Expected at most 596h, got "600h"/],
    ["cwd: ~/x", /"~" is not expanded here; write "\$\{HOME\}\/x"/],
    ['cwd: ""', /Expected some text/],
    ['args: ["a\\0b"]', /A NUL character/],
    ['args: ["$TOKEN"]', /"\$TOKEN" is not a variable here/],
    ["tools: { effects: { a: reed } }", /did you mean `read`/],
    ["tools: { allow: read }", /Expected a list, got "read"/],
    ["tools: { alow: [] }", /Unknown key "alow" in mcp.servers.s.tools; did you mean `allow`/],
  ];
  for (const [keys, words] of cases) {
    const { told } = parse(SERVER(keys));
    assert.match(told.join(), words, keys);
    assert.equal(told.length, 1, keys);
  }
});

Deno.test("a key that no other one resembles is told with those there are", () => {
  assert.match(
    parse(`${BASE}zzz: 1\n`).told.join(),
    /f:4:1: Unknown key "zzz"; known here: kind, name, description, instructions, models, tools, skills, agents_md, agents, mcp/,
  );
});

Deno.test("broken YAML is one mistake with its place, whatever is broken", () => {
  const broken: [string, RegExp][] = [
    ["name: [", /f:1:8: Invalid YAML/],
    ["name: a\n\tb: c", /f:2:1: Invalid YAML: Tabs/],
    ["a: b\n---\nc: d", /f:2:1: Only one document a file/],
    ["[".repeat(20_000), /f:1:129: Nested too deeply/],
    ['{"a":'.repeat(20_000), /f:1:641: Nested too deeply/],
    ["- ".repeat(20_000), /f:1:257: Nested too deeply/],
    [`? ${"? ".repeat(20_000)}`, /f:1:257: Nested too deeply/],
    [`name: a\nmcp: ${"[".repeat(128)}${"]".repeat(128)}`, /f:2:133: Nested too deeply/],
    ["a: *unknown", /f:1:4: Aliases can't be resolved/],
    ["- a", /f:1:1: Expected a mapping of keys, got a list/],
    ["just text", /Expected a mapping of keys, got "just text"/],
    ["# only a comment\n", /The file is empty/],
  ];
  for (const [text, words] of broken) {
    const { told } = parse(text);
    assert.match(told.join(), words, text.slice(0, 20));
    assert.equal(told.length, 1, text.slice(0, 20));
  }
  assert.match(parse(`${BASE}description: !!js/function x\n`).told.join(), /Unresolved tag/);
});

Deno.test("a few aliases and Windows line ends are fine", () => {
  const text = `${BASE}mcp: { servers: { a: &s { command: c }, b: *s } }\n`;
  assert.equal(good(text).servers?.length, 2);
  assert.equal(good(BASE.replaceAll("\n", "\r\n")).name, "a");
});

/** Mistakes that can be made one beside the other, each with what it is told as. */
const MISTAKES: [line: string, words: RegExp][] = [
  ["name: Bad Name", /Invalid name/],
  ["description: 7", /Expected text, got the number 7/],
  ["instructions: []", /Expected text, got a list/],
  ["models: { provider: gogle }", /Unknown provider "gogle"; did you mean "google"/],
  ["budget: { turn: 1 }", /Unknown key "turn" in budget; did you mean `turns`/],
  ["on_unknown: maybe", /Expected one of ask, retry, skip, fail/],
  ["approval: {}", /"approval" is not built yet/],
  ["mcp: { servers: { A: { command: c } } }", /Invalid server name "A"/],
  ["frobnicate: 1", /Unknown key "frobnicate"/],
];

Deno.test("all mistakes are told at once, whichever come together", () => {
  for (let choice = 1; choice < 2 ** MISTAKES.length; choice += 1) {
    const chosen = MISTAKES.filter((_, bit) => (choice & (1 << bit)) !== 0);
    const keys = chosen.map(([line]) => line.split(":")[0] ?? "");
    const rest = ["name: a", "instructions: do", "models: { provider: scripted, script: s }"]
      .filter((line) => !keys.includes(line.split(":")[0] ?? ""));
    const { told, manifest } = parse([...chosen.map(([line]) => line), ...rest].join("\n"));
    assert.equal(told.length, chosen.length, told.join("\n"));
    chosen.forEach(([, words], index) => {
      const line = told.find((text) => text.startsWith(`f:${index + 1}:`)) ?? "";
      assert.match(line, words);
    });
    assert.equal(manifest, undefined);
  }
});

Deno.test("a file made of mistakes is told in part, and soon", () => {
  const inServer = (keys: string) => `${BASE}mcp: { servers: { s: { command: c, ${keys} } } }`;
  const keys = Array.from({ length: 25_000 }, (_, index) => `key${index}: 1`);
  const variables = Array.from({ length: 3000 }, (_, index) => `K${index}: 1`);
  const texts = [
    keys.join("\n"),
    inServer(`env: { ${variables.join(", ")} }`),
    inServer(`args: [${"1,".repeat(20_000)}]`),
    `${BASE}x: &a 1\nz: [${"*a, ".repeat(10_000)}]`,
    `${BASE}x: &a 1\nz: [${"{*a : 1}, ".repeat(7000)}]`,
  ];
  for (const text of texts) {
    const problems = new Problems();
    const began = performance.now();
    parseManifest(text, { file: "f", instructionsBeside: undefined }, problems);
    // The square of these numbers would be half a minute and more.
    assert.ok(performance.now() - began < 20_000, text.slice(0, 150));
    assert.ok(problems.count >= 1 && problems.list.length <= 100, text.slice(0, 150));
    assert.ok(problems.toError().message.length < 30_000);
  }
});
