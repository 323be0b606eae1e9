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

Deno.test("left in the middle, it tells what is in flight by its time so far", async () => {
  const world = new FakeWorld();
  const started_ms = world.clock.now();
  const write = { pid: 1, syscall: "Write" as const, path: "/dev/shell/tools/Bash", started_ms };
  world.system.flying = [write, { ...write, pid: 2, syscall: "Model", path: "/dev/llm/x" }];
  world.system.trace = async function* () {
    yield { kind: "record", record };
    await world.clock.advance(12_000);
    world.signal("SIGINT");
  };
  assert.equal(await world.run("strace", "1", "-f"), 130);
  assert.match(world.err.text, /\[strace\] in flight: \[pid 1\] Bash … 12\.0s\n/);
  assert.match(world.err.text, /\[strace\] in flight: \[pid 2\] Model \/dev\/llm\/x … 12\.0s\n/);
  assert.doesNotMatch(world.out.text, /flight/, "stdout has the calls alone");
  assert.ok(world.system.asked.includes("in flight 1 with children"));
  const json = new FakeWorld();
  json.system.flying = [write];
  json.system.trace = async function* () {
    json.signal("SIGINT");
    yield { kind: "record", record };
  };
  await json.run("strace", "1", "--json");
  const lines = json.out.text.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.filter(({ kind }) => kind !== undefined).slice(0, 1), [
    { kind: "in_flight", ...write },
  ]);
});

Deno.test("times count from the first of all, also from what was in flight before one looked", async () => {
  const world = new FakeWorld();
  world.system.flying = [{ pid: 1, syscall: "Wait", path: "/proc/agents/a", started_ms: 4_000 }];
  world.system.traced = [
    { kind: "record", record: { ...record, pid: 2, timestamp_ms: 9_000 } },
    { kind: "record", record: { ...record, syscall: "Wait", timestamp_ms: 4_000 } },
  ];
  assert.equal(await world.run("strace", "1", "-f"), 0);
  assert.match(world.out.text, /^\[pid 2\] \[ +5\.000s\] Open.*\n\[pid 1\] \[ +0\.000s\] Wait/);
});
