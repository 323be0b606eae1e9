import assert from "node:assert/strict";
import {
  FakeSystem,
  type Play,
  report,
  type RunEventBody,
} from "../../tests/doubles/fake_system.ts";
import { FakeWorld, type WorldOptions } from "../../tests/doubles/fake_world.ts";
import { SysError } from "../base/errors.ts";
import type { UnknownCall } from "../base/operations.ts";

function playing(play: Play, options: WorldOptions = {}): FakeWorld {
  const system = new FakeSystem();
  system.play = play;
  return new FakeWorld({ ...options, system });
}

const talking: Play = (run) => {
  run.events({ type: "model.started", turn: 2 }, {
    type: "model.delta",
    turn: 2,
    kind: "text",
    text: "All is well.",
  });
  return report();
};

/** Goes on for ever, and sends the signal once it is followed. */
function signalled(signal: "SIGINT" | "SIGTERM" | "SIGHUP", options: WorldOptions = {}) {
  const told: string[][] = [];
  const world = playing((run) => {
    told.push(run.told);
    world.signal(signal);
    return new Promise(() => {});
  }, options);
  return { world, told };
}

Deno.test("attach watches a run from its first event and ends as it does", async () => {
  const world = playing(talking, { piped: true });
  assert.equal(await world.run("attach", "3"), 0);
  assert.deepEqual(world.system.asked, ["attach 3 from start"]);
  assert.equal(world.out.text, "All is well.\n");
  assert.match(world.err.text, /^All is well\.\n\[kernel\] PID 1 exited\(0\)/);
  const failed = playing(() => report({ exit_code: 1, result: "" }));
  assert.equal(await failed.run("attach", "3", "--from=now"), 1);
  assert.deepEqual(failed.system.asked, ["attach 3 from now"]);
  const wrong = playing(talking);
  assert.equal(await wrong.run("attach", "3", "--from", "then"), 2);
  assert.deepEqual(wrong.system.asked, []);
});

Deno.test("a signal to attach detaches, and tells the run nothing", async () => {
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]] as const) {
    const { world, told } = signalled(signal);
    assert.equal(await world.run("attach", "3"), code);
    assert.deepEqual(told, [[]]);
    assert.equal(
      world.err.text,
      `[INTERRUPTED] ${signal} ended the watching, the run goes on
hint: rnix attach 3 joins it again, rnix kill 3 ends it
`,
    );
    assert.deepEqual(world.listening, []);
    assert.equal(world.closed, 1);
  }
});

Deno.test("attach --stream prints events as JSON, the report last, also when it is left", async () => {
  const world = playing(talking);
  assert.equal(await world.run("attach", "3", "--stream"), 0);
  const types = world.out.text.trim().split("\n").map((line) => JSON.parse(line).type);
  assert.deepEqual(types, ["model.started", "model.delta", "run.report"]);
  const { world: left } = signalled("SIGINT");
  assert.equal(await left.run("attach", "3", "--stream"), 130);
  const last = JSON.parse(left.out.text.trim());
  assert.equal(last.type, "run.report");
  assert.equal(last.error.code, "INTERRUPTED");
});

Deno.test("who was too slow is told so, in words and in JSON", async () => {
  const missing: Play = (run) => {
    run.observer.onMissed?.(7);
    return report();
  };
  for (const command of ["run", "attach"]) {
    const world = playing(missing, { terminal: true });
    await world.run(command, "3");
    assert.match(world.err.text, /notice: too slow to be told everything, 7 events left out\n/);
    const stream = playing(missing);
    await stream.run(command, "3", "--stream");
    assert.equal(JSON.parse(stream.out.text.split("\n")[0] ?? "").events, 7);
  }
});

Deno.test("run -d prints the pid once the run is up, and asks for a run that outlives it", async () => {
  const ready: RunEventBody = {
    type: "mount.ready",
    server: "files",
    tools: 1,
    duration_ms: 5,
    protocol_version: "2025-11-25",
  };
  const world = playing((run) => {
    run.events({ type: "mount.starting", server: "files" }, { type: "model.started", turn: 1 }, {
      type: "model.delta",
      turn: 1,
      kind: "text",
      text: "not shown",
    });
    // A mount is told when it is on disk, here after the first request has left.
    queueMicrotask(() => run.events(ready));
    return new Promise(() => {});
  }, { piped: true });
  assert.equal(await world.run("run", "-d", "demo"), 0);
  assert.equal(world.out.text, "1\n");
  assert.equal(world.err.text, "[mount] files … 1 tool, 5ms\n");
  assert.equal(world.system.runs[0]?.detached, true);
});

Deno.test("resume -d does the same, and --json gives pid and run id", async () => {
  const world = playing((run) => {
    run.events({ type: "call.started", call: "t1.1", attempt: 2, tool: "pay", input: {} });
    return new Promise(() => {});
  });
  assert.equal(await world.run("resume", "-d", "3", "--json"), 0);
  assert.deepEqual(JSON.parse(world.out.text), {
    ok: true,
    data: { pid: 1, run_id: report().run_id },
  });
  assert.equal(world.system.resumes[0]?.detached, true);
});

Deno.test("a detached run that doesn't come up decides the exit code and says why", async () => {
  const error = { code: "DRIVER", message: "Server did not start", device: "files" };
  const mount = playing(() => report({ exit_code: 3, reason: "mount", result: "", error }));
  assert.equal(await mount.run("run", "-d", "demo"), 3);
  assert.equal(mount.out.text, "");
  assert.match(mount.err.text, /\[DRIVER\] files \(Server did not start\)/);
  const refused = new FakeWorld();
  refused.system.failure = new SysError("INVALID", "The manifest has a mistake", { exitCode: 2 });
  assert.equal(await refused.run("run", "-d", "demo"), 2);
  const fast = playing(() => report());
  assert.equal(await fast.run("run", "-d", "demo"), 0);
  assert.equal(fast.out.text, "1\n");
});

Deno.test("a signal while a detached run comes up leaves it alone", async () => {
  const { world, told } = signalled("SIGINT");
  assert.equal(await world.run("run", "-d", "demo"), 130);
  assert.deepEqual(told, [[]]);
  assert.match(world.err.text, /hint: rnix ps shows|hint: rnix attach 1 joins/);
});

Deno.test("-d and --stream exclude each other", async () => {
  const world = new FakeWorld();
  assert.equal(await world.run("run", "-d", "demo", "--stream"), 2);
  assert.match(world.err.text, /"--detach" and "--stream" exclude each other/);
  assert.deepEqual(world.system.runs, []);
});

const UNKNOWN: UnknownCall = {
  run_id: report().run_id,
  call: "t3.0",
  tool: "append",
  effect: "write",
  cause: "connection lost",
  attempt: 1,
};

Deno.test("who attaches on a terminal can be asked what became of a call, others can't", async () => {
  const decided: unknown[] = [];
  const asking: Play = async (run) => {
    decided.push(await run.observer.decideUnknown?.(UNKNOWN, new AbortController().signal));
    return report();
  };
  const person = playing(asking, { terminal: true, typed: ["s\n"] });
  assert.equal(await person.run("attach", "3"), 0);
  assert.match(person.err.text, /Outcome unknown: t3\.0 append/);
  for (const flags of [["--stream"], ["--json"]]) {
    const program = playing(asking, { terminal: true, typed: ["s\n"] });
    await program.run("attach", "3", ...flags);
  }
  await playing(asking).run("attach", "3");
  assert.deepEqual(decided, [{ how: "skip" }, undefined, undefined, undefined]);
});
