import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import type { RunEvent } from "../base/operations.ts";
import { BUFFERED_CHARS_MAX, Output } from "./output.ts";
import { StreamWriter } from "./stream.ts";

function notice(message: string): RunEvent {
  return { type: "notice", pid: 1, ts: 5, message };
}

/** An output whose reader takes nothing until it is released. */
function stalled() {
  const gate = Promise.withResolvers<void>();
  const lines: { type: string; events?: number }[] = [];
  const decoder = new TextDecoder();
  let text = "";
  const output = new Output({
    write: async (bytes) => {
      await gate.promise;
      text += decoder.decode(bytes, { stream: true });
      return bytes.length;
    },
    isTerminal: () => false,
  });
  const read = async () => {
    gate.resolve();
    await output.flush();
    lines.push(...text.trimEnd().split("\n").map((line) => JSON.parse(line)));
    return lines;
  };
  return {
    writer: new StreamWriter(output, new VirtualClock()),
    read,
    output,
    release: gate.resolve,
  };
}

const BIG = "x".repeat(BUFFERED_CHARS_MAX);

Deno.test("a reader that is far too slow is told how many events it missed, and gets the report", async () => {
  const { writer, read } = stalled();
  writer.onEvent(notice(BIG));
  writer.onEvent(notice("lost"));
  writer.onEvent(notice("lost too"));
  writer.end({ pid: 1 });
  const lines = await read();
  assert.deepEqual(lines.map(({ type }) => type), ["notice", "stream.missed", "run.report"]);
  assert.equal(lines[1]?.events, 2);
});

Deno.test("once there is room the gap is told before the next event", async () => {
  const { writer, read, output, release } = stalled();
  writer.onEvent(notice(BIG));
  writer.onEvent(notice("lost"));
  release();
  await output.flush();
  writer.onEvent(notice("seen"));
  writer.end({ pid: 1 });
  const lines = await read();
  assert.deepEqual(lines.map(({ type }) => type), [
    "notice",
    "stream.missed",
    "notice",
    "run.report",
  ]);
  assert.equal(lines[1]?.events, 1);
});
