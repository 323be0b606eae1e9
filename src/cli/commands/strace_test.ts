import assert from "node:assert/strict";
import { report } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import type { TraceItem, TraceRow } from "../../base/operations.ts";

const record: TraceRow = {
  timestamp_ms: 1_000,
  pid: 1,
  syscall: "Open",
  args: { path: "/mnt/mcp/1-s/tools/t" },
  result: 3,
  error: null,
  duration_ms: 0,
};
const later = { ...record, pid: 2, timestamp_ms: 90_000, syscall: "Close", result: null };
const TRACED: TraceItem[] = [
  { kind: "record", record },
  { kind: "missed", pid: 1, events: 2 },
  { kind: "record", record: later },
];

Deno.test("a run that is over is told from its beginning, each process from its own", async () => {
  const world = new FakeWorld();
  world.system.traced = TRACED;
  world.system.ended = report({ state: "zombie" });
  assert.equal(await world.run("strace", "2"), 0);
  assert.equal(
    world.out.text,
    `[  0.000s] Open(path="/mnt/mcp/1-s/tools/t") → 3    0μs
[  0.000s] Close(path="/mnt/mcp/1-s/tools/t") → <nil>    0μs
`,
  );
  assert.equal(
    world.err.text,
    `[strace] attached to 2 (state: zombie)
[strace] PID 1: 2 events missed
[strace] goes on as PID 2
[strace] detached from 2 (process exited)
`,
  );
  assert.ok(world.system.asked.includes("trace 2 from start"));
});

Deno.test("a run at work is followed from now on, or with --all from its beginning", async () => {
  for (const [flags, from] of [[[], "now"], [["--all"], "start"]] as const) {
    const world = new FakeWorld();
    assert.equal(await world.run("strace", "2", ...flags), 0);
    assert.ok(world.system.asked.includes(`trace 2 from ${from}`));
  }
});

Deno.test("--follow shows the runs below it too: each line names its process, and all count from one beginning", async () => {
  const world = new FakeWorld();
  world.system.traced = TRACED;
  world.system.ended = report({ state: "zombie" });
  assert.equal(await world.run("strace", "2", "-f"), 0);
  assert.ok(world.system.asked.includes("trace 2 from start with children"));
  const [first = "", second = ""] = world.out.text.split("\n");
  assert.match(first, /^\[pid 1\] \[ +0\.000s\] Open/);
  assert.match(second, /^\[pid 2\] \[ *\d+\.\d+s\] Close/);
  assert.doesNotMatch(world.err.text, /goes on/);
});

Deno.test("--json gives one object a line on stdout and nothing on stderr", async () => {
  const world = new FakeWorld();
  world.system.traced = TRACED;
  world.system.ended = report({});
  assert.equal(await world.run("strace", "2", "--json"), 0);
  const lines = world.out.text.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines, [record, { kind: "missed", pid: 1, events: 2 }, later]);
  assert.equal(world.err.text, "");
});
