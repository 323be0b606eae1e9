/** Models of a run as `providers.yaml` and the client's environment make them: keys, trust, fallback, prices. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { PROVIDER_NAMES } from "../../src/llm/registry.ts";
import { PROVIDER_KINDS } from "../../src/manifest/provider_table.ts";
import { anthropicShape } from "../servers/anthropic_shape.ts";
import { geminiShape } from "../servers/gemini_shape.ts";
import { startModelEndpoint } from "../servers/model_endpoint.ts";
import { responsesShape } from "../servers/responses_shape.ts";
import { ledgerMount, manifestOf, type ModelHome, withModelHome } from "./model_home.ts";

const KEY = "key-of-the-client-42";

/** The error that starting a run ends in. */
async function refusal(home: ModelHome, manifest: string): Promise<SysError> {
  const error = await home.run(manifest).catch((thrown) => thrown);
  assert.ok(error instanceof SysError, JSON.stringify(error));
  return error;
}

Deno.test("every kind that a manifest may name can be spoken, and the other way round", () => {
  assert.deepEqual([...PROVIDER_KINDS].sort(), [...PROVIDER_NAMES].sort());
});

Deno.test("[A2] key and headers come from the client's environment, and are nowhere on disk", async () => {
  const endpoint = startModelEndpoint(
    (_, number) => number === 1 ? { calls: [{ name: "peek", arguments: "{}" }] } : { text: "done" },
    anthropicShape,
  );
  Deno.env.set("ANTHROPIC_API_KEY", "key-of-the-daemon-13");
  try {
    await withModelHome({ ANTHROPIC_API_KEY: KEY, TEAM: "team-secret-77" }, async (home) => {
      home.write(
        "config/providers.yaml",
        `providers:
  anthropic:
    base_url: "${endpoint.url}"
    default_model: claude-sonnet-4-5
    headers: { x-team: "\${TEAM}", x-plain: written-out-header }
`,
      );
      home.write("agent.yaml", manifestOf("{ provider: anthropic }", ledgerMount(home.folder)));
      const report = await home.run("./agent.yaml");
      assert.equal(report.result, "done", JSON.stringify(report.error));
      const [first] = endpoint.requests;
      assert.ok(first !== undefined);
      const { headers, body } = first;
      assert.deepEqual(
        [headers["x-api-key"], headers["x-team"], headers["x-plain"], body["model"]],
        [KEY, "team-secret-77", "written-out-header", "claude-sonnet-4-5"],
      );
      const left = home.left();
      for (const secret of [KEY, "team-secret-77", "key-of-the-daemon-13"]) {
        assert.ok(!left.includes(secret), secret);
        assert.ok(!JSON.stringify(report).includes(secret), secret);
      }
      assert.deepEqual(endpoint.violations, []);
    });
  } finally {
    Deno.env.delete("ANTHROPIC_API_KEY");
    await endpoint.close();
  }
});

Deno.test("a provider that repeats the key in its error shows it to nobody", async () => {
  const endpoint = startModelEndpoint(
    () => ({ status: 401, error: { message: `Incorrect API key: ${KEY}` } }),
    responsesShape,
  );
  await withModelHome({ OPENAI_API_KEY: KEY }, async (home) => {
    home.write(
      "agent.yaml",
      manifestOf(
        `{ provider: openai, preferred: gpt-5, base_url: "${endpoint.url}", api_key_env: OPENAI_API_KEY }`,
      ),
    );
    const report = await home.run("./agent.yaml");
    assert.equal(report.error?.code, "UNAUTHENTICATED");
    assert.match(report.error?.message ?? "", /Incorrect API key/);
    assert.ok(!JSON.stringify(report).includes(KEY));
  });
  await endpoint.close();
});

Deno.test("a key that isn't set is told before a run exists, exit 2", async () => {
  await withModelHome({}, async (home) => {
    for (
      const [provider, variable] of [
        ["anthropic", "ANTHROPIC_API_KEY"],
        ["openai", "OPENAI_API_KEY"],
        ["google", "GOOGLE_GENERATIVE_AI_API_KEY"],
      ]
    ) {
      home.write("agent.yaml", manifestOf(`{ provider: ${provider}, preferred: m }`));
      const error = await refusal(home, "./agent.yaml");
      assert.deepEqual([error.code, error.exitCode], ["UNAUTHENTICATED", 2]);
      assert.match(error.hint ?? "", new RegExp(`export ${variable}=`));
    }
    home.write(
      "config/providers.yaml",
      'providers: { mine: { kind: openai, headers: { a: "${GONE}" } } }\n',
    );
    home.write("agent.yaml", manifestOf("{ provider: mine, preferred: m }"));
    const error = await refusal(home, "./agent.yaml");
    assert.match(error.message, /"GONE" \(providers\.mine\.headers\.a\) is not set/);
    assert.deepEqual(await home.system.processes({ all: true }), []);
  });
});

Deno.test("[A2] a provider of the project is used only once it is trusted, and anew after a change", async () => {
  const endpoint = startModelEndpoint(() => ({ text: "done" }));
  await withModelHome({ OPENAI_API_KEY: KEY }, async (home) => {
    const entry = (url: string) =>
      `default: theirs\nproviders: { theirs: ` +
      `{ kind: openai-compatible, base_url: "${url}", default_model: m, api_key_env: OPENAI_API_KEY } }\n`;
    home.write(".rnix/providers.yaml", entry(endpoint.url));
    for (const models of ["models: { provider: theirs }", ""]) {
      home.write("agent.yaml", `name: a\ninstructions: b\n${models}\n`);
      const error = await refusal(home, "./agent.yaml");
      assert.deepEqual([error.code, error.exitCode], ["UNTRUSTED", 2]);
      assert.match(error.message, /providers\.yaml \(new\): where a key is sent$/);
      assert.match(error.hint ?? "", /--trust/);
    }
    assert.equal(endpoint.requests.length, 0);
    assert.equal((await home.run("./agent.yaml", { trust: true })).result, "done");
    assert.equal((await home.run("./agent.yaml")).result, "done");
    home.write(".rnix/providers.yaml", `${entry(endpoint.url)}# changed\n`);
    assert.match((await refusal(home, "./agent.yaml")).message, /providers\.yaml \(changed\)/);
    assert.equal(endpoint.requests.length, 2);
    home.write(
      "other.yaml",
      manifestOf(`{ provider: openai-compatible, preferred: m, base_url: "${endpoint.url}" }`),
    );
    assert.equal((await home.run("./other.yaml")).result, "done", "what it has no part in runs");
  });
  await endpoint.close();
});

Deno.test("a fallback of another provider takes over a conversation that is too long, tools and all", async () => {
  const long = {
    status: 400,
    error: { message: "prompt is too long: 300000 tokens > 200000 maximum" },
  };
  const first = startModelEndpoint(
    (_, number) =>
      number === 1
        ? { reasoning: [{ text: "Pay" }], calls: [{ name: "pay", arguments: '{"note":"a"}' }] }
        : long,
    anthropicShape,
  );
  const second = startModelEndpoint(
    (_, number) => number === 1 ? { calls: [{ name: "peek", arguments: "{}" }] } : { text: "done" },
    geminiShape,
  );
  await withModelHome(
    { ANTHROPIC_API_KEY: KEY, GOOGLE_GENERATIVE_AI_API_KEY: KEY },
    async (home) => {
      home.write(
        "config/providers.yaml",
        `providers:
  anthropic: { base_url: "${first.url}", context_window: 200000, price: { input: 3, output: 15 } }
  wide: { kind: google, base_url: "${second.url}", default_model: gemini-3-pro-preview, price: { input: 1, output: 2, cached: 0.1 } }
`,
      );
      const models =
        "{ provider: anthropic, preferred: claude-sonnet-4-5, fallback_provider: wide }";
      home.write("agent.yaml", manifestOf(models, ledgerMount(home.folder)));
      const report = await home.run("./agent.yaml");
      assert.equal(report.result, "done", JSON.stringify(report.error));
      assert.equal(Deno.readTextFileSync(`${home.folder}/ledger`).trim().split("\n").length, 1);
      assert.deepEqual([...first.violations, ...second.violations], []);
      assert.equal(first.requests.length, 2, "it isn't asked again for the same long conversation");
      const notices = report.events.filter((event) => event.type === "notice");
      assert.match(
        JSON.stringify(notices),
        /context window of 200000 tokens.*going on with \\"gemini-3-pro-preview\\" \(wide\)/,
      );
      assert.match(
        home.left(),
        /"fallback_for":\{"provider":"anthropic","model":"claude-sonnet-4-5"/,
      );
      // Anthropic: 100 in, 10 out. Twice Gemini: 60 in, 40 from the cache, 10 out.
      const cost = (100 * 3 + 10 * 15 + 2 * (60 * 1 + 40 * 0.1 + 10 * 2)) / 1e6;
      assert.equal(report.cost_usd, Number(cost.toFixed(9)));
      const [row] = await home.system.processes({ all: true });
      assert.equal(row?.cost_usd, report.cost_usd);
    },
  );
  await first.close();
  await second.close();
});

Deno.test("a cost budget suspends the run, a raised one lets it go on; without a price it is refused at the start", async () => {
  const endpoint = startModelEndpoint(
    (_, number) => number < 3 ? { calls: [{ name: "peek", arguments: "{}" }] } : { text: "done" },
  );
  await withModelHome({}, async (home) => {
    const models = `{ provider: mine, preferred: m }`;
    const entry = `kind: openai-compatible, base_url: "${endpoint.url}"`;
    home.write("config/providers.yaml", `providers: { mine: { ${entry} } }\n`);
    home.write(
      "agent.yaml",
      manifestOf(models, `budget: { cost_usd: 0.0003 }\n${ledgerMount(home.folder)}`),
    );
    const error = await refusal(home, "./agent.yaml");
    assert.deepEqual([error.code, error.exitCode], ["INVALID", 2]);
    assert.match(error.message, /"cost_usd" needs a price.*mine \(m\)/);
    const price = "price: { input: 2, output: 10 }";
    home.write("config/providers.yaml", `providers: { mine: { ${entry}, ${price} } }\n`);
    const report = await home.run("./agent.yaml");
    assert.deepEqual([report.exit_code, report.reason, report.cost_usd], [6, "limit", 0.0003]);
    const handle = await home.system.resume({
      run: report.run_id,
      client: { cwd: home.folder, env: home.env, interactive: false },
      unknown: [],
      stored: false,
      acceptCut: false,
      fork: false,
      yes: false,
      trust: false,
      budget: { cost_usd: 1 },
    }, { onEvent: () => {} });
    const last = await handle.done;
    assert.deepEqual([last.result, last.cost_usd], ["done", 0.0009]);
  });
  await endpoint.close();
});

Deno.test("[A2] a model is reached through the proxy of the client", async () => {
  const endpoint = startModelEndpoint(() => ({ text: "done" }));
  const proxy = new URL(endpoint.url).host;
  try {
    await withModelHome({ HTTP_PROXY: proxy, NO_PROXY: "" }, async (home) => {
      const models =
        '{ provider: openai-compatible, preferred: m, base_url: "http://far.test/v1" }';
      home.write("agent.yaml", manifestOf(models));
      const report = await home.run("./agent.yaml");
      assert.equal(report.result, "done", JSON.stringify(report.error));
      assert.equal(endpoint.requests.length, 1);
    });
    await withModelHome({ OPENAI_API_KEY: KEY, https_proxy: "ftp://p:1" }, async (home) => {
      home.write("agent.yaml", manifestOf("{ provider: openai, preferred: m }"));
      const { exitCode, message } = await refusal(home, "./agent.yaml");
      assert.equal(exitCode, 2);
      assert.match(message, /The proxy in https_proxy is no http, https or socks5 address/);
    });
  } finally {
    await endpoint.close();
  }
});
