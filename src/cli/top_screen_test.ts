import assert from "node:assert/strict";
import type { MountRow, ProcessRow, TraceRow } from "../base/operations.ts";
import { textWidth } from "./plain_text.ts";
import { styleFor } from "./style.ts";
import { topScreen, topText, type TopView } from "./top_screen.ts";

const plain = styleFor(false, {});
const row = (pid: number, changes: Partial<ProcessRow> = {}): ProcessRow => ({
  pid,
  ppid: 0,
  run_id: `run-${pid}`,
  state: "running",
  agent: "reviewer",
  intent: `Intent of ${pid}`,
  model: "scripted/s",
  turns: 3,
  tokens_used: 1_234,
  cost_usd: 0.5,
  elapsed_ms: 61_000,
  mounts: [],
  started_ms: 0,
  ...changes,
});
const mount: MountRow = {
  mount: "1-files",
  pid: 1,
  agent: "reviewer",
  server: "files",
  transport: "stdio",
  status: "connected",
  tools: 14,
  protocol_version: "2025-11-25",
};
const call = (syscall: string, args: TraceRow["args"], result: TraceRow["result"]): TraceRow => ({
  timestamp_ms: 1_000,
  pid: 1,
  syscall,
  args,
  result,
  error: null,
  duration_ms: 12,
});
const view = (changes: Partial<TopView> = {}): TopView => ({
  rows: [row(1), row(2, { state: "suspended", reason: "limit" })],
  mounts: [mount],
  calls: new Map(),
  selected: "run-1",
  tracing: false,
  nowMs: 13_000,
  message: undefined,
  ...changes,
});
const calls = new Map([["run-1", [
  call("Open", { path: "/mnt/mcp/1-files/tools/read" }, 3),
  call("Write", { fd: 3, size: 10 }, null),
  { ...call("Read", { fd: 3, length: 1_048_576 }, 20), duration_ms: 0 },
  call("Close", { fd: 3 }, null),
]]]);
const flying = (syscall: "Write" | "Model", path: string) => ({
  pid: 1,
  syscall,
  path,
  started_ms: 1_000,
});

Deno.test("80 by 24 holds processes, the last call of each, mounts and the keys", () => {
  assert.deepEqual(topScreen(view({ calls }), { columns: 80, rows: 24 }, plain), [
    "rnix top   1 at work, 1 suspended   1 mount   2,468 tokens",
    "",
    "PID  STATE              AGENT     TOKENS  ELAPSED  LAST CALL",
    " >1  running            reviewer   1,234    1m01s  Write files/read 12ms",
    "  2  suspended (limit)  reviewer   1,234    1m01s  Intent of 2",
    ...Array.from({ length: 16 }, () => ""),
    "MOUNT    TRANSPORT  STATUS     TOOLS  PROTOCOL",
    "1-files  stdio      connected     14  2025-11-25",
    "↑↓ select   p pause   k kill   s calls   q leave",
  ]);
});

Deno.test("what is in flight is named with the time that it has taken so far", () => {
  const tool = flying("Write", "/mnt/mcp/files/tools/read");
  const lineOf = (in_flight: ProcessRow["in_flight"] & object) =>
    topScreen(view({ calls, rows: [row(1, { in_flight })] }), { columns: 120, rows: 24 }, plain)[3];
  assert.match(lineOf([tool]) ?? "", /1m01s {2}files\/read … 12\.0s$/);
  const child = { ...tool, syscall: "Wait" as const, path: "/proc/self/children/writer" };
  assert.match(lineOf([child]) ?? "", /1m01s {2}Wait writer … 12\.0s$/);
  const model = flying("Model", "/dev/llm/openai");
  assert.match(lineOf([model, tool]) ?? "", /Model \/dev\/llm\/openai … 12\.0s \(and 1 more\)$/);
});

Deno.test("a descriptor that was used again names the file that it was then", () => {
  const again = [...calls.get("run-1") ?? [], call("Open", { path: "/dev/fs/tools/Grep" }, 3)];
  const [, , , first] = topScreen(
    view({ calls: new Map([["run-1", again]]) }),
    { columns: 80, rows: 24 },
    plain,
  );
  assert.match(first ?? "", /Write files\/read 12ms$/);
});

Deno.test("whatever the size and the words, no line is wider and none is missing", () => {
  const wide = row(3, { agent: "見直し係", intent: "変更を見直して😀\x1b[2J\n次" });
  const rows = [wide, ...Array.from({ length: 60 }, (_, index) => row(index + 10))];
  for (
    const size of [{ columns: 80, rows: 24 }, { columns: 200, rows: 50 }, { columns: 20, rows: 6 }]
  ) {
    for (const tracing of [false, true]) {
      const lines = topScreen(view({ rows, calls, tracing }), size, plain);
      assert.equal(lines.length, size.rows);
      for (const line of lines) {
        assert.ok(textWidth(line) <= size.columns, line);
        assert.ok(!line.includes("\x1b"));
      }
    }
  }
});

Deno.test("the selected process is among those shown", () => {
  const rows = Array.from({ length: 60 }, (_, index) => row(index + 1));
  for (const pid of [1, 30, 60]) {
    const lines = topScreen(
      view({ rows, selected: `run-${pid}` }),
      { columns: 80, rows: 24 },
      plain,
    );
    assert.ok(lines.some((line) => line.includes(`>${pid} `)), String(pid));
  }
});

Deno.test("the calls of the selected process stand below, the newest first", () => {
  const lines = topScreen(view({ calls, tracing: true }), { columns: 80, rows: 24 }, plain);
  const shown = lines.filter((line) => line.startsWith("["));
  assert.deepEqual(shown.map((line) => /\] (\w+)/.exec(line)?.[1]), [
    ...["Close", "Read", "Write", "Open"],
  ]);
  const rows = [row(1, { in_flight: [flying("Write", "/dev/shell/tools/Bash")] })];
  const first = topScreen(view({ rows, tracing: true }), { columns: 80, rows: 24 }, plain);
  assert.ok(first.includes("[in flight] Bash … 12.0s"));
  const none = topScreen(view({ tracing: true }), { columns: 80, rows: 24 }, plain);
  assert.ok(none.includes("PID 1 has made no call since this began."));
});

Deno.test("nothing to see is said, a message takes the place of the keys", () => {
  const empty = { rows: [], mounts: [], message: "End PID 1? y/n" };
  const lines = topScreen(view(empty), { columns: 80, rows: 24 }, plain);
  assert.ok(lines.includes("No active processes."));
  assert.ok(lines.includes("Nothing is mounted."));
  assert.equal(lines.at(-1), "End PID 1? y/n");
});

Deno.test("as plain text it is told whole", () => {
  assert.match(topText(view({ calls })), /Write files\/read 12ms\n/);
});
