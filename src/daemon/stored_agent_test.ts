import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { RUN_FOLDER, taker } from "../../tests/doubles/sample_entries.ts";
import { createJournal } from "../journal/mod.ts";
import type { ServerConfig } from "../manifest/agent_manifest.ts";
import { saveSpec } from "../manifest/spec.ts";
import { transportsOf } from "./stored_agent.ts";

const TERMS = {
  ...{ startupTimeoutMs: 1, timeoutMs: 1, maxTimeoutMs: 1, required: true },
  rules: { effects: {}, risk: {}, sensitive: [] },
};
const SERVERS: ServerConfig[] = [
  {
    ...TERMS,
    ...{ name: "local", transport: "stdio", command: "a", args: [], env: {}, inheritEnv: [] },
  },
  { ...TERMS, name: "open", transport: "auto", url: "https://x", headers: {} },
  { ...TERMS, name: "old", transport: "sse", url: "https://y", headers: {} },
];

Deno.test("how the servers of a run are reached is read from its own manifest", async () => {
  const storage = new FaultyDisk();
  const journal = await createJournal(storage, RUN_FOLDER, taker());
  const spec = saveSpec({
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
      servers: SERVERS,
    },
    path: "/a/agent.yaml",
    folder: "/a",
  });
  const put = (value: unknown) => journal.putBlob(new TextEncoder().encode(JSON.stringify(value)));
  const [good, bad] = [await put(spec), await put({ v: 99 })];
  await journal.close();
  assert.deepEqual(
    [...await transportsOf(storage, RUN_FOLDER, good)],
    [["local", "stdio"], ["open", "auto"], ["old", "sse"]],
  );
  const gone = { sha256: "0".repeat(64), bytes: 2 };
  for (const unreadable of [bad, gone, undefined]) {
    assert.equal((await transportsOf(storage, RUN_FOLDER, unreadable)).size, 0);
  }
});
