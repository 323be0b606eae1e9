import assert from "node:assert/strict";
import { SysError } from "../../base/errors.ts";
import { FakeSystem } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";

function worldWith(changes: Partial<FakeSystem> = {}, insideRun = false): FakeWorld {
  const system = Object.assign(new FakeSystem(), changes);
  return new FakeWorld({ system, insideRun });
}

Deno.test("ls lists the root unless told another folder, a name a line", async () => {
  const world = worldWith({ vfsAnswer: { kind: "names", path: "/", names: ["mnt", "proc"] } });
  assert.equal(await world.run("ls"), 0);
  assert.equal(world.out.text, "mnt\nproc\n");
  assert.equal(await world.run("ls", "/proc/self", "--pid", "3"), 0);
  assert.deepEqual(world.system.used, [
    { operation: "list", path: "/" },
    { operation: "list", path: "/proc/self", pid: 3 },
  ]);
});

Deno.test("cat prints what is there, and with --json an envelope", async () => {
  const answer = { kind: "content", path: "/proc/3/intent", text: "go\n" } as const;
  const world = worldWith({ vfsAnswer: answer });
  assert.equal(await world.run("cat", "/proc/3/intent"), 0);
  assert.equal(world.out.text, "go\n");
  world.out.text = "";
  assert.equal(await world.run("cat", "/proc/3/intent", "--json"), 0);
  const { ok, data } = JSON.parse(world.out.text);
  assert.deepEqual([ok, data], [true, { path: "/proc/3/intent", text: "go\n" }]);
});

Deno.test("stat tells kind, mode and class", async () => {
  const path = "/mnt/mcp/3-s/tools/pay";
  const node = { path, kind: "tool", writable: true, effect: "write", pid: 3 } as const;
  const world = worldWith({ vfsAnswer: { kind: "node", node } });
  assert.equal(await world.run("stat", path), 0);
  assert.equal(world.out.text, `Path:\t${path}\nKind:\ttool\nMode:\trw\nEffect:\twrite\nPid:\t3\n`);
});

Deno.test("[R5] write prints the answer; one that is an error is DRIVER, and exits 1", async () => {
  const path = "/mnt/mcp/3-s/tools/pay";
  const content = [{ type: "text", text: "paid" }];
  const answer = {
    kind: "result",
    path,
    call: "o1",
    outcome: "ok",
    text: "paid",
    content,
  } as const;
  const world = worldWith({ vfsAnswer: answer });
  assert.equal(await world.run("write", path, '{"to":"a"}'), 0);
  assert.equal(await world.run("write", path), 0);
  assert.equal(world.out.text, "paid\npaid\n");
  assert.deepEqual(world.system.used.map(({ input }) => input), [{ to: "a" }, {}]);
  world.system.vfsAnswer = { ...answer, outcome: "error", text: "no money" };
  assert.equal(await world.run("write", path), 1);
  assert.match(world.err.text, /\[DRIVER\] Write: \/mnt\/mcp\/3-s\/tools\/pay \(The tool reported/);
  assert.match(world.out.text, /no money/);
});

Deno.test("what can't be written or found is a usage error before anything is asked", async () => {
  const world = worldWith();
  assert.equal(await world.run("write", "/mnt/mcp/3-s/tools/pay", "{to: a}"), 2);
  assert.match(world.err.text, /The arguments are not JSON/);
  assert.equal(await world.run("write", "/mnt/mcp/3-s/tools/pay", '{"id": 9007199254740993}'), 2);
  assert.match(world.err.text, /The number 9007199254740993 can't be kept exactly/);
  assert.equal(await world.run("ls", "proc"), 2);
  assert.equal(await world.run("cat"), 2);
  assert.equal(await world.run("ls", "/", "--pid", "x"), 2);
  assert.deepEqual(world.system.used, []);
});

Deno.test("[R18] an agent is refused all of them, and nothing is asked", async () => {
  const world = worldWith({}, true);
  for (const command of ["ls", "cat", "stat", "write"]) {
    assert.equal(await world.run(command, "/proc/1/context"), 2);
  }
  assert.equal(world.err.text.match(/\[PERMISSION\] .*An agent can't/g)?.length, 4);
  assert.deepEqual(world.system.used, []);
});

Deno.test("Ctrl-C gives a write up, and the daemon is told by it", async () => {
  const world = worldWith();
  let given: AbortSignal | undefined;
  world.system.vfs = (_request, signal?: AbortSignal) => {
    given = signal;
    world.signal("SIGINT");
    return Promise.reject(signal?.reason ?? new SysError("INTERNAL", "Not given up"));
  };
  assert.equal(await world.run("write", "/mnt/mcp/3-s/tools/pay"), 130);
  assert.equal(given?.aborted, true);
  assert.match(world.err.text, /hint: .*rnix logs RUN/);
  assert.deepEqual(world.listening, []);
});
