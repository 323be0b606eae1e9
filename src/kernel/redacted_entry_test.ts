import assert from "node:assert/strict";
import { Redactor } from "../base/redaction.ts";
import type { CallAnswer, EntryBody, ErrorRecord } from "../journal/entry.ts";
import { redactEntry } from "./redacted_entry.ts";

const SECRET = "s3cret-value";
const redactor = new Redactor([SECRET]);
const error: ErrorRecord = { code: "DRIVER", message: `no ${SECRET}`, hint: `try ${SECRET}` };
const totals = { turns: 0, tokens: 0, tool_calls: 0, active_ms: 0 };
const answer: CallAnswer = { outcome: "error", content: [{ type: "text", text: `[X] ${SECRET}` }] };
const call = { call: "t1.1", attempt: 1 };

Deno.test("whatever an entry tells of errors and servers is without secrets", () => {
  const mount = { server: "a", era: "e", protocol_version: "p", tools: {} };
  const request = {
    ...{ turn: 1, attempt: 1, provider: "p", model: "m" },
    ...{ request_sha256: "", tokens_estimate: 1 },
  };
  const told: EntryBody[] = [
    { type: "mount.failed", server: "a", required: true, error },
    {
      type: "mount.ready",
      ...mount,
      server_info: { name: SECRET },
      set_aside: { [SECRET]: SECRET },
    },
    { type: "mount.changed", ...mount, set_aside: { tool: SECRET } },
    { type: "model.request", ...request, fallback_for: { provider: "p", model: "m", error } },
    { type: "call.result", ...call, duration_ms: 1, error, ...answer },
    { type: "call.result", ...call, duration_ms: 1, error, outcome: "unknown", cause: "timeout" },
    {
      type: "call.result",
      ...call,
      duration_ms: 1,
      outcome: "ok",
      content: [],
      warnings: [SECRET],
    },
    {
      type: "call.settled",
      ...call,
      how: "answer",
      by: "answer",
      answer: { outcome: "ok", content: [], warnings: [SECRET] },
    },
    { type: "run.suspended", reason: "model", reasons: ["model"], error, totals },
    { type: "run.exited", status: "failed", exit_code: 1, result: "", error, totals },
  ];
  for (const body of told) {
    const redacted = redactEntry(body, redactor);
    assert.ok(JSON.stringify(body).includes(SECRET));
    assert.ok(!JSON.stringify(redacted).includes(SECRET), body.type);
    assert.equal(redacted.type, body.type);
    assert.ok(JSON.stringify(redacted).includes("[redacted]"), body.type);
  }
});

Deno.test("a model's own words and results that have been through the intake pass as they are", () => {
  const own: EntryBody[] = [
    {
      type: "model.reply",
      turn: 1,
      attempt: 1,
      message: { parts: [{ signature: SECRET }] },
      usage: { input_tokens: 1, output_tokens: 1 },
      finish_reason: "stop",
      duration_ms: 1,
    },
    { type: "call.result", ...call, duration_ms: 1, ...answer },
    { type: "call.settled", ...call, how: "answer", by: "answer", answer },
    { type: "run.exited", status: "completed", exit_code: 0, result: SECRET, totals },
  ];
  for (const body of own) assert.equal(redactEntry(body, redactor), body);
});

Deno.test("without secrets no entry is touched", () => {
  const body: EntryBody = { type: "mount.failed", server: "a", required: true, error };
  assert.equal(redactEntry(body, new Redactor([])), body);
});
