/** Thinking with signatures over `kill -9` and a resume: what the provider signed goes back byte for byte, from the journal alone. */
import assert from "node:assert/strict";
import { anthropicShape } from "../servers/anthropic_shape.ts";
import { geminiShape } from "../servers/gemini_shape.ts";
import { startModelEndpoint } from "../servers/model_endpoint.ts";
import { responsesShape } from "../servers/responses_shape.ts";
import type { EndpointReply, WireShape } from "../servers/wire_shape.ts";
import { TextLineStream } from "../doubles/text_lines.ts";
import { signaturesIn } from "../suites/wire_suite.ts";
import { ledgerMount, manifestOf, type ModelHome, withModelHome } from "./model_home.ts";

const WIRES: { provider: string; model: string; shape: WireShape; signatures: number }[] = [
  { provider: "anthropic", model: "claude-sonnet-4-5", shape: anthropicShape, signatures: 2 },
  { provider: "openai", model: "gpt-5", shape: responsesShape, signatures: 2 },
  { provider: "google", model: "gemini-3-pro-preview", shape: geminiShape, signatures: 1 },
];

const WAIT_MS_MAX = 60_000;

/** More than goes into a line of the journal: it lies in a blob. */
const LONG_THOUGHT = "I think, therefore 😀 I pay. ".repeat(4_000);

const TURNS: EndpointReply[] = [
  {
    reasoning: [{ text: LONG_THOUGHT }, { text: "withheld", redacted: true }],
    text: "Paying",
    calls: [
      { name: "pay", arguments: '{"note":"one"}' },
      { name: "pay", arguments: '{"note":"two"}' },
    ],
  },
  { hangAfter: 0 },
  { reasoning: [{ text: "All paid" }], text: "done" },
];

/** Runs the agent in a process of its own and kills it once `isTime`. Returns the run's id. */
async function killedRun(home: ModelHome, isTime: () => boolean): Promise<string> {
  const program = new URL("../servers/run_agent.ts", import.meta.url).pathname;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--allow-all", program, "./agent.yaml", "Pay twice"],
    cwd: home.folder,
    env: { ...home.env, DENO_DIR: Deno.env.get("DENO_DIR") ?? denoFolder() },
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextLineStream()).getReader();
  const { value } = await lines.read();
  const deadline = Date.now() + WAIT_MS_MAX;
  while (!isTime()) {
    assert.ok(Date.now() < deadline, "the run didn't get as far as its second request");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  child.kill("SIGKILL");
  await child.status;
  await lines.cancel();
  const { run_id }: { run_id: string } = JSON.parse(value ?? "{}");
  return run_id;
}

function denoFolder(): string {
  return `${Deno.env.get("HOME") ?? ""}/.cache/deno`;
}

for (const { provider, model, shape, signatures } of WIRES) {
  Deno.test(`[A4] ${provider}: signed thinking goes back verbatim after kill -9 and a resume`, async () => {
    const endpoint = startModelEndpoint((_, number) => TURNS[number - 1] ?? { text: "end" }, shape);
    await withModelHome({ KEY: "key-123456" }, async (home) => {
      const models =
        `{ provider: ${provider}, preferred: ${model}, base_url: "${endpoint.url}", api_key_env: KEY }`;
      home.write("agent.yaml", manifestOf(models, ledgerMount(home.folder)));
      const run = await killedRun(home, () => endpoint.requests.length === 2);
      const handle = await home.system.resume({
        run,
        client: { cwd: home.folder, env: home.env, interactive: false },
        unknown: [],
        stored: false,
        acceptCut: false,
        fork: false,
        yes: false,
        trust: false,
      }, { onEvent: () => {} });
      const report = await handle.done;
      assert.equal(report.result, "done", JSON.stringify(report.error));
      assert.deepEqual(endpoint.violations, []);
      const sent = endpoint.requests.map(({ bytes }) => new TextDecoder().decode(bytes));
      assert.equal(sent.length, 3);
      assert.equal(sent[2], sent[1], "the same bytes before the crash and after the resume");
      assert.equal(signaturesIn(sent[2] ?? "").length, signatures);
      const paid = Deno.readTextFileSync(`${home.folder}/ledger`).trim().split("\n");
      assert.equal(paid.length, 2);
    });
    await endpoint.close();
  });
}
