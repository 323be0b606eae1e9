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

Deno.test("what a sensitive tool said is masked, of one that came later and in pieces of a cut result too", () => {
  const story = new Story(new Redactor([]));
  const record = { sha256: "", effect: "read", risk: "low" } as const;
  const mount = { server: "s", era: "modern", protocol_version: "x" };
  told(story, {
    type: "mount.ready",
    ...mount,
    tools: { pay: { ...record, name: "mcp__s__pay" } },
  });
  told(story, {
    type: "mount.changed",
    ...mount,
    tools: { get: { ...record, name: "mcp__s__get", sensitive: true } },
  });
  const shown = (
    call: string,
    tool: string,
    more: { whole?: { sha256: string; bytes: number } } = {},
  ) => {
    told(story, { ...INTENT, call, tool } as EntryBody);
    const content = [{ type: "text", text: `of ${tool}` }];
    const [event] = told(story, {
      type: "call.result",
      call,
      attempt: 1,
      duration_ms: 1,
      outcome: "ok",
      content,
      ...more,
    });
    return event?.type === "call.finished" ? event.preview : undefined;
  };
  assert.equal(shown("t1.1", "mcp__s__pay"), "of mcp__s__pay");
  assert.equal(shown("t1.2", "ReadResult"), "of ReadResult");
  const whole = { sha256: "aa", bytes: 9 };
  assert.equal(shown("t2.1", "mcp__s__get", { whole }), "[masked]");
  assert.equal(shown("t3.1", "ReadResult"), "[masked]");
  assert.equal(shown("t3.2", "mcp__s__pay", { whole }), "of mcp__s__pay");
});
