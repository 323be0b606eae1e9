import assert from "node:assert/strict";
import type { ModelConfig } from "./agent_manifest.ts";
import { parseManifest } from "./parse_manifest.ts";
import { formatProblem, Problems } from "./problems.ts";
import type { ProjectFile } from "./project_folder.ts";
import { type ProviderEntry, ProviderTable } from "./provider_table.ts";

const FILE: ProjectFile = {
  name: "providers.yaml",
  path: "/p/.rnix/providers.yaml",
  contentHash: "h",
  effects: [],
};
const ENTRIES: ProviderEntry[] = [
  {
    name: "opus",
    kind: "anthropic",
    baseUrl: "https://proxy/v1",
    apiKeyEnv: "MY_KEY",
    defaultModel: "claude-opus",
    price: { input: 15, output: 75 },
    contextWindow: 200_000,
    headers: { "x-team": "seven" },
  },
  { name: "local", kind: "openai-compatible", baseUrl: "http://localhost/v1", defaultModel: "l" },
  { name: "theirs", kind: "openai", apiKeyEnv: "OPENAI_API_KEY", projectFile: FILE },
];
const TABLE = new ProviderTable(ENTRIES);

function parse(models: string, providers = TABLE) {
  const problems = new Problems();
  const text = `name: a\ninstructions: b\n${models === "" ? "" : `models: ${models}\n`}`;
  const options = { file: "f", instructionsBeside: undefined, providers };
  const { manifest, projectFiles } = parseManifest(text, options, problems);
  return {
    models: manifest?.models,
    projectFile: projectFiles[0],
    told: problems.list.map(formatProblem),
  };
}

function good(models: string, providers = TABLE): ModelConfig {
  const parsed = parse(models, providers);
  assert.deepEqual(parsed.told, []);
  assert.ok(parsed.models !== undefined);
  return parsed.models;
}

Deno.test("the providers that exist without a file know their key", () => {
  assert.deepEqual(good("{ provider: anthropic, preferred: m }"), {
    provider: "anthropic",
    apiKeyEnv: "ANTHROPIC_API_KEY",
    preferred: "m",
    timeoutMs: 300_000,
    maxTimeoutMs: 600_000,
  });
  const ollama = good("{ provider: ollama, preferred: llama3 }");
  assert.equal(ollama.kind, "openai-compatible");
  assert.equal(ollama.baseUrl, "http://localhost:11434/v1");
  assert.equal(ollama.apiKeyEnv, undefined);
});

Deno.test("a named provider brings all that its entry has, its default model too", () => {
  const { timeoutMs: _, maxTimeoutMs: __, ...models } = good("{ provider: opus }");
  assert.deepEqual(models, {
    provider: "opus",
    kind: "anthropic",
    baseUrl: "https://proxy/v1",
    apiKeyEnv: "MY_KEY",
    headers: { "x-team": "seven" },
    price: { input: 15, output: 75 },
    contextWindow: 200_000,
    preferred: "claude-opus",
  });
});

Deno.test("[N10] the manifest goes before the entry; an entry's key and headers go to its own address alone", () => {
  const models = good('{ provider: opus, preferred: m, base_url: "http://x", api_key_env: K }');
  assert.deepEqual(
    [models.preferred, models.baseUrl, models.apiKeyEnv, models.headers],
    ["m", "http://x", "K", undefined],
  );
  assert.equal(models.keyOptional, undefined, "a key that is named must be there");
  const usual = good('{ provider: anthropic, preferred: m, base_url: "http://x" }');
  assert.deepEqual([usual.apiKeyEnv, usual.keyOptional], [undefined, undefined]);
});

Deno.test("a fallback is of the same provider, or of another with all that its entry has", () => {
  const same = good('{ provider: openai, preferred: m, fallback: n, base_url: "http://x" }');
  assert.deepEqual(same.fallback, {
    provider: "openai",
    baseUrl: "http://x",
    model: "n",
  });
  const other = good("{ provider: openai, preferred: m, fallback_provider: local }");
  assert.deepEqual(other.fallback, {
    provider: "local",
    kind: "openai-compatible",
    baseUrl: "http://localhost/v1",
    model: "l",
  });
});

Deno.test("without models, or without a provider in them, the default is taken", () => {
  const table = new ProviderTable(ENTRIES, { name: "local" });
  assert.equal(good("", table).preferred, "l");
  assert.equal(good("{ preferred: m }", table).provider, "local");
  assert.deepEqual(parse("").told, [
    'f:1:1: Missing key "models", and providers.yaml names no "default" to do without it',
  ]);
  const modelless = new ProviderTable([], { name: "openai" });
  assert.deepEqual(parse("", modelless).told, [
    'f:1:1: Provider "openai" needs "preferred", such as the name of a model',
  ]);
});

Deno.test("the project's file is named where it has a part: as provider, fallback or default", () => {
  assert.equal(parse("{ provider: theirs, preferred: m }").projectFile, FILE);
  assert.equal(
    parse("{ provider: opus, fallback_provider: theirs, fallback: m }").projectFile,
    FILE,
  );
  const table = new ProviderTable(ENTRIES, { name: "local", projectFile: FILE });
  assert.equal(parse("", table).projectFile, FILE);
  assert.equal(parse("{ provider: opus }", table).projectFile, undefined);
});

Deno.test("mistakes about providers have their place", () => {
  const cases: [models: string, told: string][] = [
    ["{ provider: opsu }", 'f:3:21: Unknown provider "opsu"; did you mean "opus"?'],
    [
      "{ provider: openai }",
      'f:3:1: Provider "openai" needs "preferred", such as the name of a model',
    ],
    [
      "{ provider: opus, script: s }",
      'f:3:27: Provider "opus" has no use for "script"; remove it',
    ],
    [
      "{ provider: opus, fallback_provider: locla }",
      'f:3:46: Unknown provider "locla"; did you mean "local"?',
    ],
    [
      "{ provider: opus, fallback_provider: theirs }",
      'f:3:46: Provider "theirs" needs "fallback", the name of a model',
    ],
    [
      "{ provider: opus, fallback_provider: openai-compatible, fallback: m }",
      'f:3:46: Provider "openai-compatible" needs a base_url in providers.yaml',
    ],
    [
      "{ provider: opus, fallback_provider: scripted }",
      'f:3:46: Provider "scripted" needs "script"',
    ],
    ["{ provider: 7 }", 'f:3:21: Expected text, got the number 7; write "7" in quotes'],
  ];
  for (const [models, told] of cases) assert.deepEqual(parse(models).told, [told]);
});
