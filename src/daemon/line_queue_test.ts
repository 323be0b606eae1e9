import assert from "node:assert/strict";
import type { RunEvent } from "../base/operations.ts";
import type { RunLine } from "../base/wire.ts";
import { CHARS_WAITING_MAX, EVENTS_WAITING_MAX, LineQueue } from "./line_queue.ts";

const notice = (message: string): RunEvent => ({ type: "notice", pid: 1, ts: 0, message });
const event = (message: string): RunLine => ({ line: "event", event: notice(message) });
const LAST: RunLine = { line: "error", error: { code: "INTERNAL", message: "x" }, exit_code: 1 };

async function linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<RunLine[]> {
  const text = await new Response(body).text();
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

Deno.test("lines come out in their order, each on a line of its own, and the body ends after the last", async () => {
  const queue = new LineQueue<RunLine>();
  queue.push({ line: "accepted", pid: 3, run_id: "r" });
  queue.event(event("a\nb"));
  queue.end(LAST);
  queue.event(event("too late"));
  assert.deepEqual(await linesOf(queue.body), [
    { line: "accepted", pid: 3, run_id: "r" },
    { line: "event", event: notice("a\nb") },
    LAST,
  ]);
});

Deno.test("a reader that waits gets a line as soon as there is one", async () => {
  const queue = new LineQueue<RunLine>();
  const reader = queue.body.getReader();
  const first = reader.read();
  queue.event(event("now"));
  const { value } = await first;
  assert.match(new TextDecoder().decode(value), /"now"/);
  await reader.cancel();
});

Deno.test("a slow reader loses events, is told how many, and still gets the last line", async () => {
  const queue = new LineQueue<RunLine>();
  for (let index = 0; index < EVENTS_WAITING_MAX + 7; index += 1) {
    queue.event(event(String(index)));
  }
  queue.push({ line: "withdrawn", id: "q" });
  queue.end(LAST);
  const lines = await linesOf(queue.body);
  assert.equal(lines.filter(({ line }) => line === "event").length, EVENTS_WAITING_MAX);
  assert.ok(lines.some((line) => line.line === "withdrawn"));
  assert.deepEqual(lines.find(({ line }) => line === "missed"), { line: "missed", events: 7 });
  assert.ok(lines.some(({ line }) => line === "error"));
});

Deno.test("a client that goes before the end is noticed, once; after the end it is not", async () => {
  let gone = 0;
  const left = new LineQueue<RunLine>();
  left.onGone = () => gone += 1;
  await left.body.cancel();
  left.event(event("nobody hears this"));
  assert.equal(gone, 1);
  const over = new LineQueue<RunLine>();
  over.onGone = () => gone += 1;
  over.end(LAST);
  await linesOf(over.body);
  assert.equal(gone, 1);
});

Deno.test("that the daemon is alive is said only where nothing else waits to be said", async () => {
  const queue = new LineQueue<RunLine>();
  queue.alive();
  queue.alive();
  queue.push({ line: "withdrawn", id: "a" });
  queue.alive();
  queue.end({ line: "accepted", pid: 1, run_id: "r" });
  const text = await new Response(queue.body).text();
  assert.deepEqual(
    text.trim().split("\n").map((line) => JSON.parse(line).line),
    ["alive", "withdrawn", "accepted"],
  );
});

Deno.test("what waits is bounded by its size too", async () => {
  const queue = new LineQueue<RunLine>();
  const large = "x".repeat(CHARS_WAITING_MAX / 2);
  for (let index = 0; index < 4; index += 1) queue.event(event(large));
  queue.end(LAST);
  const lines = await linesOf(queue.body);
  assert.deepEqual(lines.map(({ line }) => line), ["event", "event", "error", "missed"]);
});
