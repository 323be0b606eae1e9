/** Whole runs whose conversation outgrows their model's window: they come to their end, it is told wherever one looks, and they are the same when they are gone through again. */
import assert from "node:assert/strict";
import type { RunEvent, TraceItem } from "../../src/base/operations.ts";
import { anthropicShape } from "../servers/anthropic_shape.ts";
import { chatShape } from "../servers/chat_shape.ts";
import { geminiShape } from "../servers/gemini_shape.ts";
import { startModelEndpoint } from "../servers/model_endpoint.ts";
import { responsesShape } from "../servers/responses_shape.ts";
import type { WireShape } from "../servers/wire_shape.ts";
import { manifestOf, type ModelHome, withModelHome } from "./model_home.ts";

const MODELS = "{ provider: small, script: script.yaml, preferred: m }";
const PROVIDERS = "providers:\n  small: { kind: scripted, context_window: 4000 }\n";
const READ = { calls: [{ tool: "Read", input: { path: "long.txt" } }] };

function put(home: ModelHome, script: object = {}): void {
  const turns = [...Array.from({ length: 8 }, () => READ), { text: "done" }];
  home.write("config/providers.yaml", PROVIDERS);
  home.write("script.yaml", JSON.stringify({ turns, ...script }));
  home.write("long.txt", `${"l".repeat(1_000)}\n`.repeat(3));
  home.write("agent.yaml", manifestOf(MODELS, "tools: [Read]\n"));
}

async function gathered<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const isCompacted = (event: RunEvent) => event.type === "context.compacted";

Deno.test("a run outgrows its model's window and goes on, and logs, strace and replay know of it", async () => {
  await withModelHome({}, async (home) => {
    put(home, { summary: "It was read." });
    const { run_id, result, turns, events, exit_code } = await home.run("./agent.yaml");
    assert.deepEqual([exit_code, result, turns], [0, "done", 9]);
    const compacted = events.filter(isCompacted);
    assert.ok(compacted.length > 1);
    assert.ok(
      compacted.every((event) => event.type === "context.compacted" && event.how === "summary"),
    );
    const past = await gathered(home.system.pastEvents(run_id));
    assert.equal(past.filter(isCompacted).length, compacted.length);
    const trace = await gathered<TraceItem>(home.system.trace(run_id, "start"));
    const asked = trace.filter((item) =>
      item.kind === "record" && item.record.args["purpose"] === "summary"
    );
    assert.equal(asked.length, compacted.length);
    const replayed = await home.system.replay(run_id);
    assert.deepEqual(replayed.differences, []);
    assert.equal(replayed.requests, turns + compacted.length);
  });
});

Deno.test("a run whose model writes no summary leaves out results, and comes out the same too", async () => {
  await withModelHome({}, async (home) => {
    put(home, { summary: "" });
    const { run_id, result, events } = await home.run("./agent.yaml");
    assert.equal(result, "done");
    const how = events.flatMap((event) => event.type === "context.compacted" ? [event.how] : []);
    assert.ok(how.length > 0 && how.every((each) => each === "results"));
    assert.deepEqual((await home.system.replay(run_id)).differences, []);
  });
});

const WIRES: { kind: string; model: string; shape: WireShape }[] = [
  { kind: "anthropic", model: "claude-sonnet-4-5", shape: anthropicShape },
  { kind: "openai", model: "gpt-5", shape: responsesShape },
  { kind: "google", model: "gemini-3-pro-preview", shape: geminiShape },
  { kind: "openai-compatible", model: "m", shape: chatShape },
];
const READS = 8;

for (const { kind, model, shape } of WIRES) {
  Deno.test(`${kind}: what is left of a compacted history is a conversation that the provider takes, signed thinking included`, async () => {
    let reads = 0;
    const endpoint = startModelEndpoint((body) => {
      if (JSON.stringify(body).includes("Summarise the part")) return { text: "It was read." };
      reads += 1;
      if (reads > READS) return { text: "done" };
      const call = { name: "Read", arguments: '{"path":"long.txt"}' };
      return { reasoning: [{ text: `Once more: ${reads}` }], calls: [call] };
    }, shape);
    try {
      await withModelHome({ KEY: "key-123456" }, async (home) => {
        put(home);
        home.write(
          "config/providers.yaml",
          `providers:
  small: { kind: ${kind}, base_url: "${endpoint.url}", api_key_env: KEY, context_window: 4000 }
`,
        );
        home.write(
          "agent.yaml",
          manifestOf(`{ provider: small, preferred: ${model} }`, "tools: [Read]\n"),
        );
        const { run_id, result, events, error } = await home.run("./agent.yaml");
        assert.equal(result, "done", JSON.stringify(error));
        assert.ok(events.filter(isCompacted).length > 1);
        assert.deepEqual(endpoint.violations, []);
        assert.deepEqual((await home.system.replay(run_id)).differences, []);
      });
    } finally {
      await endpoint.close();
    }
  });
}
