import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { RUN_FOLDER, taker } from "../../tests/doubles/sample_entries.ts";
import type { Json } from "../base/json.ts";
import type { BlobRef } from "../journal/entry.ts";
import { createJournal } from "../journal/mod.ts";
import { saveSpec } from "../manifest/spec.ts";
import { storedRedactor } from "./stored_secrets.ts";

function specWith(env: { [name: string]: string }): Json {
  const server = {
    ...{
      name: "a",
      transport: "stdio" as const,
      command: "a",
      args: [],
      env,
      inheritEnv: [],
      required: true,
    },
    ...{ startupTimeoutMs: 1, timeoutMs: 1, maxTimeoutMs: 1 },
    rules: { effects: {}, risk: {}, sensitive: [] },
  };
  return saveSpec({
    manifest: {
      ...{
        name: "a",
        description: "",
        instructions: "",
        budget: {},
        tools: [],
        agents: [],
        onUnknown: "ask",
      },
      models: { provider: "scripted", preferred: "s", timeoutMs: 1, maxTimeoutMs: 1 },
      servers: [server],
    },
    path: "/a/agent.yaml",
    folder: "/a",
  });
}

/** A run that began with the first spec and was resumed with each of the others. */
async function runWith(specs: (Json | BlobRef)[]): Promise<FaultyDisk> {
  const storage = new FaultyDisk();
  const journal = await createJournal(storage, RUN_FOLDER, taker());
  const shared = { pid: 1, model: "s", budget: {}, rnix_version: "0" };
  for (const [index, given] of specs.entries()) {
    const spec = isRef(given)
      ? given
      : await journal.putBlob(new TextEncoder().encode(JSON.stringify(given)));
    if (index > 0) journal.append({ type: "run.resumed", ...shared, spec, active_ms: 0 });
    else {
      const facts = { run_id: "r", program: "agent", agent: "a", intent: "", cwd: "/" };
      journal.append({ type: "run.started", ...shared, ...facts, spec });
    }
  }
  await journal.barrier();
  await journal.close();
  return storage;
}

function isRef(spec: Json | BlobRef): spec is BlobRef {
  return typeof spec === "object" && spec !== null && "sha256" in spec;
}

Deno.test("the literals of every manifest that a run has had are known; references to variables aren't values", async () => {
  const first = specWith({ A: "first-literal", B: "${TOKEN}", C: "tiny" });
  const storage = await runWith([first, first, specWith({ A: "second-literal" })]);
  const redactor = await storedRedactor(storage, RUN_FOLDER);
  assert.equal(
    redactor.redact("first-literal second-literal ${TOKEN} tiny"),
    "[redacted] [redacted] ${TOKEN} tiny",
  );
});

Deno.test("a manifest that is gone, or of another version, keeps no run from being told of", async () => {
  const gone = { sha256: "0".repeat(64), bytes: 2 };
  const storage = await runWith([gone, { v: 99 }, specWith({ A: "known-literal" })]);
  const redactor = await storedRedactor(storage, RUN_FOLDER);
  assert.equal(redactor.redact("known-literal"), "[redacted]");
});
