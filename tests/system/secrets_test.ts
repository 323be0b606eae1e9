/** Canaries over a whole system: values of variables, keys and written-out values, and every place where they might come up. */
import assert from "node:assert/strict";
import { toSysError } from "../../src/base/errors.ts";
import type { RunEvent, RunReport } from "../../src/base/operations.ts";
import { startModelEndpoint } from "../servers/model_endpoint.ts";
import { manifestOf, type ModelHome, withModelHome } from "./model_home.ts";

// Of a length that gives base64 without padding.
const VALUE = "canary/of+the=var-123456789";
const KEY = "key-canary-of-the-provider7";
const LITERAL = "literal-canary-written-outs";

const telltale = new URL("../servers/telltale_server.ts", import.meta.url).pathname;

function formsOf(secret: string): string[] {
  return [secret, encodeURIComponent(secret), btoa(secret)];
}

function assertNone(secrets: readonly string[], where: string, text: string): void {
  for (const form of secrets.flatMap(formsOf)) {
    const at = text.indexOf(form);
    assert.ok(at < 0, `${where}: ${text.slice(Math.max(at - 200, 0), at + 100)}`);
  }
}

type Ended = RunReport & { events: RunEvent[] };

/** What a run ends with, or the error that it couldn't begin for, as a client is told it. */
async function outcomeOf(home: ModelHome): Promise<{ report?: Ended; told: string }> {
  try {
    const report = await home.run("./agent.yaml");
    const { result: _result, ...rest } = report;
    return { report, told: JSON.stringify(rest) };
  } catch (thrown) {
    const { message, hint, device, stack } = toSysError(thrown);
    return { told: [message, hint, device, stack].join("\n") };
  }
}

/** All that `logs` prints of the run. */
async function logsOf(home: ModelHome, run: string): Promise<string> {
  return JSON.stringify(await Array.fromAsync(home.system.pastEvents(run)));
}

function server(more: string): string {
  return `mcp: { servers: { world: { startup_timeout: 1m, ${more} } } }\n`;
}

const telling = (...flags: string[]) => {
  const args = ["run", "--quiet", "--no-prompt", "--allow-all", telltale, "TOKEN", "LIT", ...flags];
  const env = `env: { TOKEN: "\${TOKEN}", LIT: "${LITERAL}" }`;
  return server(`command: "${Deno.execPath()}", args: ${JSON.stringify(args)}, ${env}`);
};

const MODEL = (url: string) =>
  `{ provider: openai-compatible, preferred: m, base_url: "${url}", api_key_env: KEY }`;

const BROKEN: { [what: string]: string } = {
  "a command that isn't there": server('command: "/nonexistent/${TOKEN}"'),
  "a command that is found nowhere": server('command: "${TOKEN}"'),
  "a folder that isn't there": server('command: "true", cwd: "/tmp/${TOKEN}"'),
  "a server that dies telling all": telling("--die"),
};

for (const [what, mcp] of Object.entries(BROKEN)) {
  for (const required of [true, false]) {
    Deno.test(`[C09] ${what} leaves no secret anywhere, ${required ? "" : "not "}required`, async () => {
      const endpoint = startModelEndpoint(() => ({ text: "done" }));
      await withModelHome({ TOKEN: VALUE, KEY }, async (home) => {
        const mount = mcp.replace("startup_timeout", `required: ${required}, startup_timeout`);
        home.write("agent.yaml", manifestOf(MODEL(endpoint.url), mount));
        const { report, told } = await outcomeOf(home);
        assert.equal(report?.exit_code, required ? 3 : 0, told);
        assertNone([VALUE, KEY, LITERAL], "report and events", told);
        assertNone([VALUE, KEY, LITERAL], "logs", await logsOf(home, report?.run_id ?? ""));
        assertNone([VALUE, KEY], "disk", home.left());
        assert.match(told, /\[redacted\]/);
        const asked = endpoint.requests.map(({ bytes }) => new TextDecoder().decode(bytes));
        assertNone([VALUE, LITERAL], "model", asked.join("\n"));
      });
      await endpoint.close();
    });
  }
}

Deno.test("[C09] a key that a provider echoes in its refusal is nowhere", async () => {
  for (const [status, code] of [[401, "x"], [403, "x"], [400, "x"], [429, "insufficient_quota"]]) {
    const message = `bad key ${formsOf(KEY).join(" ")} ${"y".repeat(400)} ${KEY}`;
    const endpoint = startModelEndpoint(() => ({
      status: Number(status),
      error: { message, code: code ?? "" },
    }));
    await withModelHome({ KEY }, async (home) => {
      home.write("agent.yaml", manifestOf(MODEL(endpoint.url)));
      const { report, told } = await outcomeOf(home);
      assert.equal(report?.exit_code, 1, told);
      assert.match(told, /bad key \[redacted\]/);
      assertNone([KEY], "report and events", told);
      assertNone([KEY], "logs", await logsOf(home, report?.run_id ?? ""));
      assertNone([KEY], "disk", home.left());
    });
    await endpoint.close();
  }
});

Deno.test("[C09] an address that can't be used is told without its values", async () => {
  for (const url of ["x${TOKEN}", "ftp://${TOKEN}/v1", "http://user:${TOKEN}@127.0.0.1:1/v1"]) {
    await withModelHome({ TOKEN: "plain-canary-42", KEY }, async (home) => {
      home.write("agent.yaml", manifestOf(MODEL(url)));
      const { report, told } = await outcomeOf(home);
      assert.equal(report, undefined);
      assert.match(told, /base_url/);
      assertNone(["plain-canary-42", KEY], "error", told);
    });
  }
});

Deno.test("[C09] what a server tells is redacted for all, and written-out values wherever a run is shown", async () => {
  const endpoint = startModelEndpoint((_, number) =>
    number === 1
      ? { calls: ["tell", "fail", "refuse"].map((name) => ({ name, arguments: "{}" })) }
      : { text: ["It is ", LITERAL.slice(0, 9), LITERAL.slice(9), "."] }
  );
  await withModelHome({ TOKEN: VALUE, KEY }, async (home) => {
    home.write("agent.yaml", manifestOf(MODEL(endpoint.url), telling()));
    const { report, told } = await outcomeOf(home);
    assert.equal(report?.exit_code, 0, told);
    assertNone([VALUE, KEY, LITERAL], "report and events", told);
    const logs = await logsOf(home, report?.run_id ?? "");
    assertNone([VALUE, KEY, LITERAL], "logs", logs);
    for (const text of [told, logs]) assert.match(text, /told: \[redacted\]/);
    const streamed = report?.events.map((event) => event.type === "model.delta" ? event.text : "");
    assert.equal(streamed?.join(""), "It is [redacted].");
    assert.match(logs, /It is \[redacted\]\./);
    assertNone([VALUE, KEY], "disk", home.left());
    const folder = `${home.state}/runs/${report?.run_id}`;
    for (const file of ["trace.jsonl", "mounts/world.stderr.log"]) {
      const text = Deno.readTextFileSync(`${folder}/${file}`);
      assert.notEqual(text, "");
      assertNone([VALUE, KEY, LITERAL], file, text);
    }
    assert.equal(report?.result, "It is [redacted].");
    assert.equal((await home.system.report("1"))?.result, "It is [redacted].");
    const asked = endpoint.requests.map(({ bytes }) => new TextDecoder().decode(bytes));
    assertNone([VALUE], "model", asked.join("\n"));
    assert.ok(asked.join("\n").includes(LITERAL), "a result's own words stay for the model");
  });
  await endpoint.close();
});
