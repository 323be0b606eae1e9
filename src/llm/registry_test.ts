import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { createModel, PROVIDER_NAMES } from "./registry.ts";

const clock = new VirtualClock();

Deno.test("every provider of the registry is made under its own name, with its limit on tools", async () => {
  const settings = {
    baseUrl: "http://127.0.0.1:1/v1",
    script: { name: "s.yaml", text: "turns: [{ text: a }]" },
    clock,
  };
  assert.deepEqual(PROVIDER_NAMES, [
    "anthropic",
    "google",
    "openai",
    "openai-compatible",
    "scripted",
  ]);
  const toolsMax: { [provider: string]: number } = {
    google: 512,
    openai: 128,
    "openai-compatible": 128,
  };
  for (const provider of PROVIDER_NAMES) {
    const model = createModel({ provider, ...settings });
    assert.equal(model.provider, provider);
    assert.equal(model.toolsMax, toolsMax[provider]);
    // Loading its library isn't to outlive the test.
    await model.request({ model: "m", system: "", messages: [], tools: [] }, {
      signal: new AbortController().signal,
      onDelta: () => {},
    });
    model.close();
  }
});

Deno.test("an unknown provider is NOT_FOUND, with the nearest name or all of them", () => {
  assert.throws(() => createModel({ provider: "script", clock }), {
    code: "NOT_FOUND",
    message: 'Unknown model provider "script"',
    hint: 'Did you mean "scripted"?',
  });
  assert.throws(() => createModel({ provider: "bedrock", clock }), {
    hint: "Known are: anthropic, google, openai, openai-compatible, scripted",
  });
});

Deno.test("settings that a provider can't work with are INVALID", () => {
  assert.throws(() => createModel({ provider: "scripted", clock }), { code: "INVALID" });
  assert.throws(
    () => createModel({ provider: "scripted", script: { name: "s", text: "[" }, clock }),
    { code: "INVALID" },
  );
  assert.throws(() => createModel({ provider: "openai-compatible", clock }), {
    message: /needs a base_url/,
  });
  for (const baseUrl of ["nonsense", "ftp://x"]) {
    assert.throws(() => createModel({ provider: "openai-compatible", baseUrl, clock }), {
      message: 'base_url of provider "openai-compatible" isn\'t an http or https URL',
    });
  }
});
