import assert from "node:assert/strict";
import { Redactor } from "../base/redaction.ts";
import type { Entry, EntryBody } from "../journal/entry.ts";
import { Story } from "./past_events.ts";

const INTENT: EntryBody = {
  type: "call.intent",
  call: "t1.1",
  attempt: 1,
  tool: "mcp__s__pay",
  device: "/mnt/mcp/s/tools/pay",
  effect: "write",
  input_sha256: "",
  idempotency_key: "r/t1.1",
};

function told(story: Story, body: EntryBody) {
  const entry: Entry = { v: 1, seq: 1, ts: 5, synced: 0, ...body };
  return story.take(entry).map(({ pid: _pid, ts: _ts, ...event }) => event);
}

Deno.test("an unknown outcome is told from the journal with its cause and all that is known of it", () => {
  const lost = {
    type: "call.result",
    call: "t1.1",
    attempt: 1,
    duration_ms: 3_000,
    outcome: "unknown",
    cause: "timeout",
  } as const;
  const story = new Story(new Redactor(["s3cr3t"]));
  told(story, INTENT);
  const facts = { call: "t1.1", attempt: 1, tool: "mcp__s__pay", effect: "write" };
  assert.deepEqual(
    told(story, { ...lost, error: { code: "TIMEOUT", message: "timeout 3s of s3cr3t" } }),
    [{
      type: "call.unknown",
      ...facts,
      cause: "timeout",
      message: "timeout 3s of [redacted]",
    }],
  );
  assert.deepEqual(told(story, lost), [{ type: "call.unknown", ...facts, cause: "timeout" }]);
});
