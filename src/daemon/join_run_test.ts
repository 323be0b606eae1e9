import assert from "node:assert/strict";
import type { RunEvent, RunHandle } from "../base/operations.ts";
import type { EntryBody } from "../journal/entry.ts";
import { report } from "../../tests/doubles/fake_system.ts";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { makeRun, RUN_FOLDER } from "../../tests/doubles/sample_entries.ts";
import { joinRun } from "./join_run.ts";
import { RunHub, STREAMED_CHARS_MAX } from "./run_hub.ts";

const HEAD = { pid: 1, ts: 0 };

const STARTED: EntryBody = {
  type: "run.started",
  run_id: "01990000-0000-7000-8000-00000f3a9c2e",
  pid: 1,
  program: "agent",
  agent: "demo",
  spec: { sha256: "0".repeat(64), bytes: 2 },
  intent: "",
  cwd: "/",
  model: "scripted/s",
  budget: {},
  rnix_version: "0.1.0",
};

function replied(turn: number, text: string): EntryBody {
  return {
    type: "model.reply",
    turn,
    attempt: 1,
    message: { parts: [{ type: "text", text }] },
    usage: { input_tokens: 1, output_tokens: 1 },
    finish_reason: "stop",
    duration_ms: 7,
  };
}

function delta(turn: number, text: string): RunEvent {
  return { ...HEAD, type: "model.delta", turn, kind: "text", text };
}

function finished(turn: number): RunEvent {
  return {
    ...HEAD,
    type: "model.finished",
    turn,
    duration_ms: 7,
    input_tokens: 1,
    output_tokens: 1,
  };
}

/** A run at work with this journal; `join` gives what a follower from the start is told, `during` happens while it reads the past. */
async function stage(entries: EntryBody[]) {
  const storage = new FaultyDisk();
  await makeRun(storage, [entries]);
  const hub = new RunHub({ onEvent: () => {} });
  const end = Promise.withResolvers<ReturnType<typeof report>>();
  const handle: RunHandle = {
    pid: 1,
    runId: "r",
    suspend: () => {},
    kill: () => {},
    done: end.promise,
  };
  const join = async (during: () => void = () => {}, from: "start" | "now" = "start") => {
    const told: RunEvent[] = [];
    const observer = { onEvent: (event: RunEvent) => void told.push(event) };
    const joining = joinRun(hub, handle, { from, observer, storage, folder: RUN_FOLDER });
    during();
    return { told, handle: await joining };
  };
  return { hub, join, end };
}

function textOf(events: RunEvent[]): string {
  return events.flatMap((event) => event.type === "model.delta" ? [event.text] : []).join("");
}

Deno.test("who joins in the middle of a turn gets the text streamed so far, then the rest", async () => {
  const { hub, join } = await stage([STARTED, replied(1, "one ")]);
  hub.onEvent({ ...HEAD, type: "model.started", turn: 2 });
  hub.onEvent(delta(2, "tw"));
  hub.onEvent(delta(2, "o"));
  const { told } = await join(() => hub.onEvent(delta(2, " three")));
  hub.onEvent(delta(2, " four"));
  assert.equal(textOf(told), "one two three four");
  assert.equal(told[0]?.type, "run.started");
});

Deno.test("text of a turn whose reply is on disk isn't told twice", async () => {
  const { hub, join } = await stage([STARTED, replied(1, "one")]);
  hub.onEvent({ ...HEAD, type: "model.started", turn: 1 });
  hub.onEvent(delta(1, "on"));
  const { told } = await join(() => {
    hub.onEvent(delta(1, "e"));
    hub.onEvent(finished(1));
  });
  assert.equal(textOf(told), "one");
  assert.equal(told.filter(({ type }) => type === "model.finished").length, 1);
});

Deno.test("from now on means without the past, and without what was streamed", async () => {
  const { hub, join } = await stage([STARTED]);
  hub.onEvent(delta(1, "before "));
  const { told } = await join(() => {}, "now");
  hub.onEvent(delta(1, "after"));
  assert.equal(textOf(told), "after");
});

Deno.test("text that is kept for late followers is bounded, and gone with its turn", () => {
  const hub = new RunHub({ onEvent: () => {} });
  for (let size = 0; size <= STREAMED_CHARS_MAX; size += 1 << 16) {
    hub.onEvent(delta(1, "x".repeat(1 << 16)));
  }
  assert.ok(textOf([...hub.streamed]).length <= STREAMED_CHARS_MAX);
  hub.onEvent(finished(1));
  assert.deepEqual(hub.streamed, []);
});

Deno.test("a follower that left the run's end behind hears nothing any more", async () => {
  const { hub, join, end } = await stage([STARTED]);
  const { told, handle } = await join();
  end.resolve(report());
  await handle.done;
  const before = told.length;
  hub.onEvent(delta(9, "late"));
  assert.equal(told.length, before);
  assert.equal(hub.followers, 1);
});
