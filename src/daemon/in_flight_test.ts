import assert from "node:assert/strict";
import { KernelStage, ServerDouble } from "../../tests/kernel/kernel_stage.ts";
import { ok, taking } from "../../tests/kernel/server_double.ts";
import type { Entry } from "../journal/entry.ts";
import { InFlightFold } from "./in_flight.ts";

/** What is in flight by these entries: `syscall path`. */
function flying(entries: readonly Entry[]): string[] {
  const fold = new InFlightFold();
  for (const entry of entries) fold.take(entry);
  return fold.list().map(({ syscall, path }) => `${syscall} ${path}`);
}

Deno.test("what was begun and isn't over is in flight: the request, then the call that it asked for, then nothing", async () => {
  const stage = new KernelStage({
    servers: [
      new ServerDouble({
        tools: { slow: { does: taking(60_000) }, read: { does: () => ok("x") } },
      }),
    ],
    replies: [[{ tool: "world__slow" }, { tool: "world__read" }], "Done."],
  });
  const { runId, done } = await stage.start();
  await stage.clock.run(done);
  const entries = await stage.entries(runId);
  const upTo = (type: Entry["type"]) =>
    flying(entries.slice(0, entries.findIndex((entry) => entry.type === type) + 1));
  assert.match(upTo("model.request").join(), /^Model \/dev\/llm\/[^,]+$/);
  assert.deepEqual(upTo("call.result"), ["Write /mnt/mcp/world/tools/slow"]);
  assert.deepEqual(flying(entries), []);
});

Deno.test("a new process has nothing of the one before it in flight but the children that it takes up", () => {
  const head = { v: 1, synced: 0 };
  const intent = {
    type: "call.intent" as const,
    attempt: 1,
    effect: "write" as const,
    input_sha256: "",
    idempotency_key: "",
  };
  const resumed = {
    type: "run.resumed" as const,
    pid: 4,
    spec: { sha256: "", bytes: 0 },
    model: "m",
    budget: {},
    active_ms: 0,
    rnix_version: "0",
  };
  const fold = new InFlightFold();
  fold.take({ ...head, seq: 1, ts: 10, ...intent, call: "t1.1", tool: "x", device: "/dev/x" });
  const agent = { tool: "agent__a", device: "/dev/agents/a", child_run_id: "r" };
  fold.take({ ...head, seq: 2, ts: 11, ...intent, call: "t1.2", ...agent });
  fold.take({ ...head, seq: 3, ts: 99, ...resumed });
  assert.deepEqual(fold.list(), [
    { pid: 4, syscall: "Wait", path: "/dev/agents/a", started_ms: 99 },
  ]);
});
