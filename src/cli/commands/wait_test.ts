import assert from "node:assert/strict";
import { FakeSystem, report } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import { SysError } from "../../base/errors.ts";
import type { RunReport } from "../../base/operations.ts";

Deno.test("wait is silent until the end, then prints the result and exits as the run", async () => {
  const world = new FakeWorld({ piped: true });
  world.system.play = (run) => {
    run.events({ type: "notice", message: "something" });
    return report({ exit_code: 1 });
  };
  assert.equal(await world.run("wait", "3"), 1);
  assert.deepEqual(world.system.asked, ["report 3", "attach 3 from now"]);
  assert.equal(world.out.text, "All is well.\n");
  assert.doesNotMatch(world.err.text, /something/);
  assert.match(world.err.text, /^\[kernel\] PID 1 exited\(1\)/);
});

Deno.test("a run that is over or suspended ends it at once", async () => {
  const over = new FakeWorld();
  over.system.ended = report();
  assert.equal(await over.run("wait", "3"), 0);
  assert.deepEqual(over.system.asked, ["report 3"]);
  const suspended = new FakeWorld();
  suspended.system.ended = report({
    state: "suspended",
    reason: "limit",
    exit_code: 6,
    result: "",
  });
  assert.equal(await suspended.run("wait", "3", "--json"), 6);
  const envelope = JSON.parse(suspended.out.text);
  assert.equal(envelope.ok, false);
  assert.equal(envelope.data.reason, "limit");
});

/** A run that can't be joined any more, and whose end is on disk only at the second look. */
class EndingSystem extends FakeSystem {
  override attach(): Promise<never> {
    this.asked.push("attach");
    this.ended = report();
    return Promise.reject(new SysError("INVALID", "Run is not at work", { exitCode: 2 }));
  }
  override report(run: string): Promise<RunReport | undefined> {
    return super.report(run);
  }
}

Deno.test("a run that ends between two looks is looked at again", async () => {
  const system = new EndingSystem();
  const world = new FakeWorld({ system });
  const code = world.run("wait", "3");
  await world.clock.advance(20);
  assert.equal(await code, 0);
  assert.deepEqual(system.asked, ["report 3", "attach", "report 3"]);
});

Deno.test("Ctrl-C ends the waiting and not the run", async () => {
  const world = new FakeWorld();
  const told: string[][] = [];
  world.system.play = (run) => {
    told.push(run.told);
    world.signal("SIGINT");
    return new Promise(() => {});
  };
  assert.equal(await world.run("wait", "3"), 130);
  assert.deepEqual(told, [[]]);
});
