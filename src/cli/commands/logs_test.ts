import assert from "node:assert/strict";
import { FakeSystem, report } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import { SysError } from "../../base/errors.ts";
import type { RunEvent } from "../../base/operations.ts";

const HEAD = { pid: 1, ts: 0 };
const PAST: RunEvent[] = [
  { ...HEAD, type: "run.started", run_id: "r", agent: "demo", intent: "", model: "scripted/s" },
  { ...HEAD, type: "model.delta", turn: 1, kind: "text", text: "Hello." },
  { ...HEAD, type: "run.suspended", reason: "paused" },
  {
    ...HEAD,
    pid: 2,
    type: "run.resumed",
    run_id: "r",
    agent: "demo",
    intent: "",
    model: "scripted/s",
  },
  { ...HEAD, pid: 2, type: "run.exited", status: "completed", exit_code: 0 },
];

function withPast(): FakeWorld {
  const world = new FakeWorld();
  world.system.past = PAST;
  world.system.ended = report({ pid: 2, exit_code: 1 });
  return world;
}

Deno.test("logs tell on stdout what happened, incarnation after incarnation, and exit 0", async () => {
  const world = withPast();
  assert.equal(await world.run("logs", "2"), 0);
  assert.equal(
    world.out.text,
    `[kernel] spawning PID 1 (scripted/s)
Hello.
[kernel] PID 1 suspended (paused)
[kernel] resuming as PID 2 (scripted/s)
[kernel] PID 2 exited(1) | 2 turns | 1,234 tokens | cost - | 2.1s
`,
  );
  assert.equal(world.err.text, "");
});

Deno.test("with --json they are one envelope, with --stream a line each", async () => {
  const json = withPast();
  assert.equal(await json.run("logs", "2", "--json"), 0);
  assert.deepEqual(JSON.parse(json.out.text), { ok: true, data: { events: PAST } });
  for (const flags of [["--stream"], ["-f", "--json"], ["-f", "--stream"]]) {
    const lines = withPast();
    assert.equal(await lines.run("logs", "2", ...flags), 0, flags.join(" "));
    const printed = lines.out.text.trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(printed.slice(0, -1), PAST);
    assert.equal(printed.at(-1).type, "run.report");
  }
});

Deno.test("-f follows a run at work to its end", async () => {
  const world = new FakeWorld();
  world.system.play = (run) => {
    run.observer.onEvent(PAST[0] ?? assert.fail());
    return report({ exit_code: 9, state: "suspended", reason: "paused", result: "" });
  };
  assert.equal(await world.run("logs", "-f", "1"), 0);
  assert.deepEqual(world.system.asked, ["report 1", "attach 1 from start"]);
  assert.equal(
    world.out.text,
    `[kernel] spawning PID 1 (scripted/s)
[kernel] PID 1 suspended (paused) | 2 turns | 1,234 tokens | cost - | 2.1s
`,
  );
});

Deno.test("Ctrl-C leaves a followed run alone", async () => {
  for (const flags of [["-f"], ["-f", "--json"]]) {
    const world = new FakeWorld();
    const told: string[][] = [];
    world.system.play = (run) => {
      told.push(run.told);
      world.signal("SIGINT");
      return new Promise(() => {});
    };
    assert.equal(await world.run("logs", ...flags, "1"), 130);
    assert.deepEqual(told, [[]]);
  }
});

/** A run that is over before it can be joined. */
class OverSystem extends FakeSystem {
  override attach(): Promise<never> {
    return Promise.reject(new SysError("INVALID", "Run is not at work", { exitCode: 2 }));
  }
}

Deno.test("-f of a run that ends meanwhile tells its journal", async () => {
  for (const flags of [[], ["--json"]]) {
    const system = new OverSystem();
    system.past = PAST;
    const world = new FakeWorld({ system });
    assert.equal(await world.run("logs", "-f", "1", ...flags), 0);
    assert.match(world.out.text, /Hello\./);
    assert.doesNotMatch(world.out.text, /not at work/);
  }
});

Deno.test("a run that there isn't is an error in every form", async () => {
  for (const flags of [[], ["-f"], ["--json"], ["-f", "--json"]]) {
    const world = new FakeWorld();
    world.system.failure = new SysError("NOT_FOUND", "There is no run", { exitCode: 2 });
    assert.equal(await world.run("logs", "7", ...flags), 2, flags.join(" "));
  }
});

Deno.test("logs say why a run failed, also with -f, and not twice what a mount's failure said", async () => {
  const error = { code: "TIMEOUT", message: "Model gave no answer", hint: "Try again" };
  const failed = report({ exit_code: 1, result: "", error });
  const past = withPast();
  past.system.ended = failed;
  assert.equal(await past.run("logs", "2"), 0);
  assert.match(
    past.out.text,
    /exited\(1\).*\n\[TIMEOUT\] Model gave no answer\nhint: try again\n$/,
  );
  const live = new FakeWorld();
  live.system.play = () => failed;
  await live.run("logs", "-f", "1");
  assert.match(live.out.text, /\[TIMEOUT\] Model gave no answer/);
  const mount = withPast();
  mount.system.past = [{ ...HEAD, type: "mount.failed", server: "w", required: true, error }];
  mount.system.ended = failed;
  await mount.run("logs", "2");
  assert.equal(mount.out.text.match(/Model gave no answer/g)?.length, 1);
});
