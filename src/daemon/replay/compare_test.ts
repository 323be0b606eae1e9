import assert from "node:assert/strict";
import type { CallAnswer } from "../../journal/entry.ts";
import { compareRuns } from "./compare.ts";
import type { RecordedCall, Recording } from "./recording.ts";

const answer = (text: string): CallAnswer => ({
  outcome: "ok",
  content: [{ type: "text", text }],
});
const made = (call: string, tool: string, input = "x", said = "ok"): RecordedCall => ({
  call,
  tool,
  effect: "read",
  inputSha256: input,
  answer: answer(said),
});

function recording(calls: RecordedCall[], result = "done"): Recording {
  const totals = { turns: 1, tokens: 1, tool_calls: 1, active_ms: 1 };
  const head = { v: 1, seq: 1, ts: 0, synced: 0 };
  return {
    runId: "r",
    start: {
      ...head,
      type: "run.started",
      run_id: "r",
      pid: 1,
      program: "agent",
      agent: "a",
      spec: { sha256: "s", bytes: 1 },
      intent: "",
      cwd: "/",
      model: "m",
      budget: {},
      rnix_version: "0",
    },
    spec: { sha256: "s", bytes: 1 },
    intent: "",
    replies: new Map(),
    calls,
    servers: [],
    exit: { ...head, type: "run.exited", status: "completed", exit_code: 0, result, totals },
    wasCompacted: false,
  };
}

const told = (before: Recording, again: Recording, live: "model" | "mcp") =>
  compareRuns(before, again, live).map(({ what, message }) => `${what}: ${message}`);

Deno.test("calls are the same whatever their order and their ids", () => {
  const before = recording([made("t1.1", "a"), made("t1.2", "b"), made("t2.1", "a")]);
  const again = recording([made("t1.1", "b"), made("t2.1", "a"), made("t3.1", "a")]);
  assert.deepEqual(told(before, again, "model"), []);
});

Deno.test("a call that is made no more, and one that is new, are told", () => {
  const before = recording([made("t1.1", "a"), made("t1.2", "a")]);
  const again = recording([made("t1.1", "a", "other"), made("t1.2", "a")]);
  assert.deepEqual(told(before, again, "model"), [
    "call: call t1.2 of a is not made now",
    "call: call t1.1 of a is made now and wasn't",
  ]);
});

Deno.test("answers and the last words count with live tools, and not with a live model", () => {
  const before = recording([made("t1.1", "a")]);
  const again = recording([made("t1.1", "a", "x", "other")], "other words");
  assert.deepEqual(told(before, again, "model"), []);
  assert.deepEqual(told(before, again, "mcp"), [
    "call: call t1.1 of a is answered otherwise now (call t1.1)",
    "end: its result is another one now",
  ]);
});

Deno.test("a run that ends otherwise is told as such", () => {
  const before = recording([]);
  const { exit: _, ...rest } = before;
  const again = { ...rest, exit: undefined };
  assert.deepEqual(told(before, again, "model"), ["end: it was completed and is suspended now"]);
});
