import assert from "node:assert/strict";
import type { EntryBody } from "../journal/entry.ts";
import { NodeTimes } from "./node_times.ts";

const RUN = "01990000-0000-7000-8000-00000f3a9c2e";
const SPEC = { sha256: "", bytes: 0 };
const started = {
  pid: 3,
  spec: SPEC,
  model: "workflow",
  budget: {},
  rnix_version: "0",
};
const call = { call: "n.part", attempt: 1, tool: "agent__x" };

Deno.test("the time in which a run was suspended is no time of its nodes either", () => {
  const times = new NodeTimes();
  let seq = 0;
  const tell = (ts: number, body: EntryBody) =>
    times.take({ v: 1, seq: ++seq, ts, synced: 0, ...body });
  tell(1_000, {
    type: "run.started",
    run_id: RUN,
    program: "workflow",
    agent: "flow",
    intent: "",
    cwd: "/",
    ...started,
  });
  const sent = { device: "", input_sha256: "", idempotency_key: "" };
  tell(1_500, { type: "call.intent", ...call, ...sent, effect: "write", child_run_id: RUN });
  const used = { turns: 0, tokens: 0, tool_calls: 1 };
  tell(3_000, {
    type: "run.suspended",
    reason: "paused",
    reasons: ["paused"],
    totals: { ...used, active_ms: 2_000 },
  });
  tell(63_000, { type: "run.resumed", ...started, active_ms: 2_000 });
  tell(63_700, { type: "call.result", ...call, outcome: "ok", content: [], duration_ms: 700 });
  assert.deepEqual(times.of("part"), { started_ms: 1_500, duration_ms: 2_200 });
});
