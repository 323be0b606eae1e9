import assert from "node:assert/strict";
import { row } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";

Deno.test("keys select a process, pause it, and end it once that is confirmed", async () => {
  const typed = ["\x1b[B", "p", "k", "n", "k", "y", "s", "q"];
  const world = new FakeWorld({ terminal: true, columns: 80, typed });
  world.system.rows = [row({ pid: 1, run_id: "a" }), row({ pid: 2, run_id: "b" })];
  assert.equal(await world.run("top"), 0);
  assert.deepEqual(world.system.asked.filter((each) => each.startsWith("signal")), [
    "signal b PAUSE",
    "signal b TERM",
  ]);
  assert.ok(world.out.text.startsWith("\x1b[?1049h\x1b[?25l"));
  assert.match(world.out.text, /End PID 2\? y\/n/);
  assert.ok(world.out.text.endsWith("\x1b[?25h\x1b[?1049l"));
});

Deno.test("an error of a key is told on the screen, which stays", async () => {
  const world = new FakeWorld({ terminal: true, columns: 80, typed: ["p", "q"] });
  world.system.rows = [row({ pid: 1, run_id: "a" })];
  const signal = world.system.signal.bind(world.system);
  world.system.signal = (run, what) => {
    void signal(run, what);
    return Promise.reject(new Error("No such luck"));
  };
  assert.equal(await world.run("top"), 0);
  assert.match(world.out.text, /No such luck/);
});

Deno.test("without a terminal, and with --json, the present state is told once", async () => {
  const world = new FakeWorld();
  world.system.rows = [row({ pid: 1, intent: "Look" })];
  assert.equal(await world.run("top"), 0);
  assert.match(world.out.text, /^rnix top .*\n\n.*PID .*\n.*1 .*Look\n/);
  assert.ok(!world.out.text.includes("\x1b"));
  const json = new FakeWorld({ terminal: true, columns: 80 });
  json.system.rows = [row({ pid: 1 })];
  assert.equal(await json.run("top", "--json"), 0);
  assert.equal(JSON.parse(json.out.text).data.processes[0].pid, 1);
});
