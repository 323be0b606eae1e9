import assert from "node:assert/strict";
import type { TraceRow } from "../base/operations.ts";
import { durationText, traceLine } from "./trace_text.ts";

const row = (changes: Partial<TraceRow>): TraceRow => ({
  timestamp_ms: 2_234,
  pid: 1,
  syscall: "Open",
  args: {},
  result: null,
  error: null,
  duration_ms: 0,
  ...changes,
});
const line = (changes: Partial<TraceRow>, full = false) => traceLine(row(changes), 1_000, full);

Deno.test("the four calls of a tool's use read as in the seed", () => {
  const path = "/mnt/mcp/1-github/tools/search_repos";
  const lines = [
    line({ args: { path }, result: 5, duration_ms: 2 }),
    line({
      timestamp_ms: 2_236,
      syscall: "Write",
      args: { fd: 5, size: 45, input: { query: "x" } },
      duration_ms: 350,
    }),
    line({
      timestamp_ms: 2_586,
      syscall: "Read",
      args: { fd: 5, length: 1_048_576 },
      result: 2048,
      duration_ms: 1,
    }),
    line({ timestamp_ms: 2_587, syscall: "Close", args: { fd: 5 } }),
  ];
  assert.deepEqual(lines, [
    `[  1.234s] Open(path="${path}") → 5    2ms`,
    "[  1.236s] Write(fd=5, size=45) → <nil>    350ms",
    "[  1.586s] Read(fd=5, length=1048576) → 2048    1ms",
    "[  1.587s] Close(fd=5) → <nil>    0μs",
  ]);
});

Deno.test("no time is before the first, for a duration that was rounded up", () => {
  assert.match(line({ timestamp_ms: 999 }), /^\[ +0\.000s\] /);
});

Deno.test("model calls and slow operations are marked", () => {
  assert.match(line({ syscall: "Model", duration_ms: 20 }), / 20ms ← LLM call$/);
  assert.match(line({ syscall: "Write", duration_ms: 1_250 }), / 1\.25s ← slow op$/);
  assert.match(line({ syscall: "Write", duration_ms: 1_000 }), / 1\.00s$/);
});

Deno.test("a failed call shows its error, and the arguments of a tool only in full", () => {
  const failed = { syscall: "Write", args: { fd: 3, input: { a: 1 } }, error: "[DRIVER] No" };
  assert.equal(line(failed), "[  1.234s] Write(fd=3) → [DRIVER] No    0μs");
  assert.equal(line(failed, true), '[  1.234s] Write(fd=3, input={"a":1}) → [DRIVER] No    0μs');
});

Deno.test("nothing in a line can move the cursor or begin another line", () => {
  assert.equal(
    line({ args: { path: "a\n\x1b[2J" }, error: "[DRIVER] x\r\n\x1b[31m" }),
    '[  1.234s] Open(path="a\\n\\u001b[2J") → [DRIVER] x \\x1b[31m    0μs',
  );
});

Deno.test("durations have the unit that fits", () => {
  assert.deepEqual([0, 0.12, 0.9996, 2, 999, 61_000].map(durationText), [
    ...["0μs", "120μs", "1000μs", "2ms", "999ms", "61.00s"],
  ]);
});
