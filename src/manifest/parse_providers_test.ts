import assert from "node:assert/strict";
import { parseProviders } from "./parse_providers.ts";
import { formatProblem, Problems } from "./problems.ts";

function parse(text: string) {
  const problems = new Problems();
  const parsed = parseProviders(text, { file: "f" }, problems);
  return { parsed, told: problems.list.map(formatProblem) };
}

function entries(text: string) {
  const { parsed, told } = parse(text);
  assert.deepEqual(told, []);
  return parsed?.entries ?? [];
}

const FULL = `
default: opus
providers:
  opus:
    kind: anthropic
    base_url: "https://\${PROXY:-proxy.example}/v1"
    api_key_env: MY_KEY
    default_model: claude-opus-4-1
    price: { input: 15, output: 75, cached: 1.5 }
    context_window: 200000
    headers: { x-team: "\${TEAM}" }
  ollama: { default_model: llama3 }
`;

Deno.test("every key there is arrives in its entry", () => {
  const { parsed, told } = parse(FULL);
  assert.deepEqual(told, []);
  assert.deepEqual(parsed, {
    default: "opus",
    entries: [
      {
        name: "opus",
        kind: "anthropic",
        baseUrl: "https://${PROXY:-proxy.example}/v1",
        apiKeyEnv: "MY_KEY",
        defaultModel: "claude-opus-4-1",
        price: { input: 15, output: 75, cached: 1.5 },
        contextWindow: 200_000,
        headers: { "x-team": "${TEAM}" },
      },
      {
        name: "ollama",
        kind: "openai-compatible",
        baseUrl: "http://localhost:11434/v1",
        defaultModel: "llama3",
      },
    ],
  });
});

Deno.test("what an entry leaves out is as it is without a file", () => {
  const [anthropic, gemini, proxy] = entries(`
providers:
  anthropic: { price: { input: 3, output: 15 } }
  gemini: { kind: google }
  openai: { base_url: "http://localhost:1/v1" }
`);
  assert.deepEqual(anthropic, {
    name: "anthropic",
    kind: "anthropic",
    apiKeyEnv: "ANTHROPIC_API_KEY",
    price: { input: 3, output: 15 },
  });
  assert.deepEqual(gemini, {
    name: "gemini",
    kind: "google",
    apiKeyEnv: "GOOGLE_GENERATIVE_AI_API_KEY",
  });
  assert.equal(proxy?.keyOptional, true, "the usual key need not be set for another address");
});

Deno.test("an empty file says nothing", () => {
  assert.deepEqual(entries(""), []);
  assert.deepEqual(entries("# only a comment\n"), []);
  assert.deepEqual(entries("providers: {}\n"), []);
});

Deno.test("all mistakes are told at once, each with line and column and the nearest key", () => {
  const { parsed, told } = parse(`defualt: x
providers:
  Bad: { kind: openai }
  mine: { default_model: m }
  a: { kind: antropic }
  b: { kind: openai, base_url: "ftp://x", api_key_env: "A B" }
  c: { kind: openai, price: { input: -1, output: cheap, cache: 1 } }
  d: { kind: openai, context_window: 0, headers: { "a b": x, c: "$TOKEN" } }
  scripted: { base_url: "http://x", headers: {} }
  e: 7
`);
  assert.equal(parsed, undefined);
  assert.deepEqual(told, [
    'f:1:1: Unknown key "defualt"; did you mean `default`?',
    'f:3:3: Invalid provider name "Bad": use lower-case letters, digits and -, at most 64, not beginning with -',
    'f:4:3: Provider "mine" needs "kind": one of anthropic, openai, openai-compatible, google, scripted',
    'f:5:14: Expected one of anthropic, openai, openai-compatible, google, scripted, got "antropic"; did you mean `anthropic`?',
    'f:6:32: Expected a URL that begins with http:// or https://, got "ftp://x"',
    "f:6:56: Expected the name of the variable that holds the key, not the key itself",
    "f:7:38: Expected a number from 0 on, got the number -1",
    'f:7:50: Expected a number, got "cheap"',
    'f:7:57: Unknown key "cache" in providers.c.price; did you mean `cached`?',
    "f:8:38: Expected a whole number from 1 on, got the number 0",
    'f:8:52: Invalid header name "a b"',
    'f:8:65: "$TOKEN" is not a variable here; write "${TOKEN}", or "$$TOKEN" for the plain text',
    'f:9:15: Kind "scripted" has no use for "base_url"; remove it',
    'f:9:37: Kind "scripted" has no use for "headers"; remove it',
    "f:10:6: Expected a mapping, got the number 7",
  ]);
});

Deno.test("a default that isn't there is told with the nearest", () => {
  assert.deepEqual(parse("default: antropic\n").told, [
    'f:1:10: Unknown provider "antropic"; did you mean "anthropic"?',
  ]);
  assert.deepEqual(parse("default: mine\nproviders: { mine: { kind: openai } }\n").told, []);
  assert.match(parse("[]").told.join(), /Expected a mapping of keys, got a list/);
  assert.match(parse("providers: {").told.join(), /^f:\d+:\d+: Invalid YAML/);
});
