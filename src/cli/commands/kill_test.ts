import assert from "node:assert/strict";
import { FakeSystem } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import { SysError } from "../../base/errors.ts";

Deno.test("kill sends TERM to each run and says so", async () => {
  const world = new FakeWorld();
  assert.equal(await world.run("kill", "1", "0f3a9c2e"), 0);
  assert.deepEqual(world.system.asked, ["signal 1 TERM", "signal 0f3a9c2e TERM"]);
  assert.equal(
    world.out.text,
    "[kernel] PID 1: signal sent (SIGTERM)\n[kernel] run 0f3a9c2e: signal sent (SIGTERM)\n",
  );
});

Deno.test("signals have names, with SIG or without, and numbers; pause is one of them", async () => {
  const world = new FakeWorld();
  for (const name of ["INT", "sigkill", "9", "1", "pause"]) {
    assert.equal(await world.run("kill", "-s", name, "1"), 0);
  }
  assert.equal(await world.run("pause", "1"), 0);
  assert.deepEqual(
    world.system.asked.map((line) => line.split(" ")[2]),
    ["INT", "KILL", "KILL", "HUP", "PAUSE", "PAUSE"],
  );
  const wrong = new FakeWorld();
  assert.equal(await wrong.run("kill", "-s", "TREM", "1"), 2);
  assert.equal(wrong.err.text, '[INVALID] There is no signal "TREM"\nhint: did you mean TERM?\n');
  assert.deepEqual(wrong.system.asked, []);
  assert.equal(await new FakeWorld().run("kill"), 2);
});

/** Knows run 1 alone. */
class OneRun extends FakeSystem {
  override async signal(run: string): Promise<void> {
    if (run !== "1") throw new SysError("NOT_FOUND", `There is no run "${run}"`, { exitCode: 2 });
    await Promise.resolve();
  }
}

Deno.test("of several runs each is signalled, and one failure makes it exit 1", async () => {
  const world = new FakeWorld({ system: new OneRun() });
  assert.equal(await world.run("kill", "7", "1", "8"), 1);
  assert.equal(world.out.text, "[kernel] PID 1: signal sent (SIGTERM)\n");
  assert.equal(
    world.err.text,
    '[NOT_FOUND] There is no run "7"\n[NOT_FOUND] There is no run "8"\n',
  );
  const json = new FakeWorld({ system: new OneRun() });
  assert.equal(await json.run("kill", "1", "7", "--json"), 1);
  const { ok, data, error } = JSON.parse(json.out.text);
  assert.equal(ok, false);
  assert.deepEqual(data.signals.map(({ sent }: { sent: boolean }) => sent), [true, false]);
  assert.equal(error.code, "NOT_FOUND");
  assert.equal(await new FakeWorld({ system: new OneRun() }).run("kill", "7"), 2);
});

Deno.test("no run found exits 2, however many were named and whatever the signal", async () => {
  for (const args of [["999"], ["-s", "PAUSE", "999", "998"], ["999", "998"]]) {
    assert.equal(await new FakeWorld({ system: new OneRun() }).run("kill", ...args), 2);
  }
  assert.equal(await new FakeWorld({ system: new OneRun() }).run("pause", "999", "998"), 2);
});

Deno.test("a signal stands behind a dash as in Unix, before or after the run", async () => {
  for (const [dashed, signal] of [["-9", "KILL"], ["-TERM", "TERM"], ["-SIGHUP", "HUP"]]) {
    const world = new FakeWorld();
    assert.equal(await world.run("kill", dashed ?? "", "1"), 0);
    assert.equal(await world.run("kill", "1", dashed ?? ""), 0);
    assert.deepEqual(world.system.asked, Array(2).fill(`signal 1 ${signal}`));
  }
  const wrong = new FakeWorld();
  assert.equal(await wrong.run("kill", "-77", "1"), 2);
  assert.equal(await wrong.run("kill", "-9", "-s", "INT", "1"), 2);
  assert.deepEqual(wrong.system.asked, []);
});

Deno.test("PAUSE is told by the name that rnix gives it", async () => {
  const world = new FakeWorld();
  await world.run("pause", "1");
  assert.equal(world.out.text, "[kernel] PID 1: signal sent (PAUSE)\n");
});

/** Has a daemon that doesn't answer. */
class Silent extends FakeSystem {
  override signal(run: string): Promise<void> {
    this.asked.push(`signal ${run}`);
    return Promise.reject(
      new SysError("TIMEOUT", "The daemon doesn't answer within 5 s", { exitCode: 8 }),
    );
  }
}

Deno.test("a daemon that is silent for one run is asked for no other, and told of once", async () => {
  const world = new FakeWorld({ system: new Silent() });
  assert.equal(await world.run("kill", "1", "2", "3"), 8);
  assert.deepEqual(world.system.asked, ["signal 1"]);
  assert.equal(world.err.text, "[TIMEOUT] The daemon doesn't answer within 5 s\n");
});
