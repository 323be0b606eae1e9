import assert from "node:assert/strict";
import { FakeSystem, report } from "../../tests/doubles/fake_system.ts";
import type { Play } from "../../tests/doubles/fake_system.ts";
import { FakeWorld, type WorldOptions } from "../../tests/doubles/fake_world.ts";
import { SysError } from "../base/errors.ts";
import { END_MS_MAX } from "./supervise.ts";
import type { RunReport, UnknownCall, UnknownDecision } from "../base/operations.ts";

const UNKNOWN: UnknownCall = {
  run_id: report().run_id,
  call: "t3.0",
  tool: "append",
  effect: "write",
  cause: "connection lost",
  attempt: 1,
};

function playing(play: Play, options: WorldOptions = {}): FakeWorld {
  const system = new FakeSystem();
  system.play = play;
  return new FakeWorld({ ...options, system });
}

/** A run that says its final text on its way there. */
const talking: Play = (run) => {
  run.events({ type: "model.started", turn: 2 }, {
    type: "model.delta",
    turn: 2,
    kind: "text",
    text: "All is well.",
  });
  return report();
};

Deno.test("stdout holds the final text only, stderr the rest", async () => {
  const world = playing(talking);
  assert.equal(await world.run("run", "demo", "look", "around"), 0);
  assert.equal(world.out.text, "All is well.\n");
  assert.equal(
    world.err.text,
    "[kernel] PID 1 exited(0) | 2 turns | 1,234 tokens | cost - | 2.1s\n",
  );
  assert.equal(world.system.runs[0]?.manifest, "demo");
  assert.equal(world.system.runs[0]?.intent, "look around");
});

Deno.test("calls that failed are counted in the summary, in a pipe too", async () => {
  const world = playing(() => report({ failed_calls: 2 }));
  assert.equal(await world.run("run", "demo"), 0);
  assert.match(world.err.text, /\| 2\.1s \| 2 calls failed\n$/);
});

Deno.test("on one terminal a streamed final text isn't told twice", async () => {
  const world = playing(talking, { terminal: true });
  await world.run("run", "demo");
  assert.equal(world.out.text, "");
  assert.equal(
    world.err.text,
    "All is well.\n[kernel] PID 1 exited(0) | 2 turns | 1,234 tokens | cost - | 2.1s\n",
  );
  const piped = playing(talking, { piped: true });
  await piped.run("run", "demo");
  assert.equal(piped.out.text, "All is well.\n");
  const quiet = playing(talking, { terminal: true });
  await quiet.run("run", "demo", "-q");
  assert.equal(quiet.out.text, "All is well.\n");
  assert.equal(quiet.err.text, "");
});

Deno.test("a final text is made fit for a terminal, and left alone in a pipe", async () => {
  const evil: Play = () => report({ result: "\x1b[2Jgone\r" });
  const terminal = playing(evil, { terminal: true });
  await terminal.run("run", "demo");
  assert.equal(terminal.out.text, "\\x1b[2Jgone\\x0d\n");
  const piped = playing(evil);
  await piped.run("run", "demo");
  assert.equal(piped.out.text, "\x1b[2Jgone\r\n");
});

Deno.test("flags of run reach the system", async () => {
  const world = new FakeWorld();
  const flags = [
    "--model",
    "m",
    "--max-turns=3",
    "--budget",
    "tokens=9",
    "--timeout=1s",
    "--trust",
  ];
  await world.run("run", ...flags, "agents/demo", "look");
  assert.deepEqual(world.system.runs, [{
    manifest: "agents/demo",
    intent: "look",
    client: { cwd: "/project", env: { HOME: "/home/u", NO_COLOR: "1" }, interactive: false },
    trust: true,
    model: "m",
    budget: { turns: 3, tokens: 9, duration_ms: 1000 },
  }]);
});

Deno.test("flags of resume reach the system", async () => {
  const world = new FakeWorld();
  const unknown = ["--unknown=t1.0:done=7", "--unknown", "skip"];
  const rest = [
    "--stored",
    "--accept-cut",
    "--fork",
    "--from-step=2",
    "--yes",
    "--on-unknown=fail",
  ];
  await world.run("resume", "beef", "go", "on", ...unknown, ...rest, "--max-turns", "9");
  assert.deepEqual(world.system.resumes, [{
    run: "beef",
    intent: "go on",
    client: { cwd: "/project", env: { HOME: "/home/u", NO_COLOR: "1" }, interactive: false },
    unknown: [
      { call: "t1.0", decision: { how: "done", result: 7 } },
      { decision: { how: "skip" } },
    ],
    onUnknown: "fail",
    stored: true,
    acceptCut: true,
    fork: true,
    fromStep: 2,
    yes: true,
    trust: false,
    budget: { turns: 9 },
  }]);
  assert.equal(await new FakeWorld().run("resume", "beef", "--from-step=2"), 2);
});

Deno.test("a person is asked on a terminal alone, and not when a program reads", async () => {
  const decisions: (UnknownDecision | undefined)[] = [];
  const asks: Play = async (run) => {
    decisions.push(await run.observer.decideUnknown?.(UNKNOWN, new AbortController().signal));
    return report();
  };
  const world = playing(asks, { terminal: true, typed: ["skip\n"] });
  await world.run("run", "demo");
  assert.deepEqual(decisions, [{ how: "skip" }]);
  assert.equal(world.system.runs[0]?.client.interactive, true);
  for (const flag of ["--json", "--stream"]) {
    const program = playing(() => report(), { terminal: true });
    await program.run("run", "demo", flag);
    assert.equal(program.system.runs[0]?.client.interactive, false, flag);
  }
});

Deno.test("--json gives the report, and an error whenever the exit code isn't 0", async () => {
  const world = playing(talking);
  assert.equal(await world.run("run", "demo", "--json"), 0);
  assert.deepEqual(JSON.parse(world.out.text), { ok: true, data: report() });
  const endings: [Partial<RunReport>, string][] = [
    [{ exit_code: 1, error: { code: "DRIVER", message: "model refused" } }, "DRIVER"],
    [{ exit_code: 5, state: "suspended", reason: "unknown-outcome" }, "UNKNOWN_OUTCOME"],
    [{ exit_code: 6, state: "suspended", reason: "limit" }, "BUDGET_EXCEEDED"],
    [{ exit_code: 7, state: "suspended", reason: "journal" }, "JOURNAL_DAMAGED"],
    [{ exit_code: 9, state: "suspended", reason: "paused" }, "INTERRUPTED"],
    [{ exit_code: 130, signal: "INT" }, "INTERRUPTED"],
  ];
  for (const [changes, code] of endings) {
    const ending = playing(() => report(changes));
    assert.equal(await ending.run("run", "demo", "--json"), changes.exit_code);
    const { ok, data, error } = JSON.parse(ending.out.text);
    assert.equal(ok, false);
    assert.deepEqual(data, report(changes));
    assert.equal(error.code, code);
  }
});

Deno.test("--stream prints each event as it comes and the report last", async () => {
  const world = playing((run) => {
    run.events({ type: "mount.starting", server: "files" });
    return report({ exit_code: 6, state: "suspended", reason: "limit", result: "" });
  });
  assert.equal(await world.run("run", "demo", "--stream"), 6);
  const lines = world.out.text.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines[0], { pid: 1, ts: 0, type: "mount.starting", server: "files" });
  assert.equal(lines.length, 2);
  assert.equal(lines[1].type, "run.report");
  assert.equal(lines[1].ok, false);
  assert.equal(lines[1].data.reason, "limit");
  assert.equal(lines[1].error.code, "BUDGET_EXCEEDED");
});

Deno.test("--stream ends with an error line when the run can't start", async () => {
  const system = new FakeSystem();
  system.failure = new SysError("INVALID", "No agent", { exitCode: 2 });
  const world = new FakeWorld({ system });
  assert.equal(await world.run("run", "demo", "--stream"), 2);
  const line = JSON.parse(world.out.text);
  assert.equal(line.type, "run.report");
  assert.deepEqual(line.error, { code: "INVALID", message: "No agent" });
  assert.equal(world.err.text, "[INVALID] No agent\n");
});

Deno.test("a suspended run says why, and the exact command that goes on", async () => {
  const cases: [Partial<RunReport>, string][] = [
    [
      { exit_code: 9, reason: "paused" },
      "[kernel] PID 1 suspended (paused) | 2 turns | 1,234 tokens | cost - | 2.1s\nto go on: rnix resume 0f3a9c2e\n",
    ],
    [
      {
        exit_code: 9,
        reason: "paused",
        reasons: ["paused", "unknown-outcome"],
        unknown_calls: [UNKNOWN, { ...UNKNOWN, call: "t3.1", effect: "read" }],
      },
      `[kernel] PID 1 suspended (paused) | 2 turns | 1,234 tokens | cost - | 2.1s
[kernel] outcome unknown: t3.0 append (write): connection lost
[kernel] outcome unknown: t3.1 append (read): connection lost
to go on: rnix resume 0f3a9c2e --unknown=t3.0:DECISION  # DECISION: retry, done, skip or fail
`,
    ],
    [
      {
        exit_code: 5,
        reason: "unknown-outcome",
        error: {
          code: "UNKNOWN_OUTCOME",
          message: "It is not known whether these calls took effect: t3.0 (append)",
        },
        unknown_calls: [UNKNOWN, { ...UNKNOWN, call: "t3.1" }],
      },
      `[kernel] PID 1 suspended (unknown-outcome) | 2 turns | 1,234 tokens | cost - | 2.1s
[kernel] outcome unknown: t3.0 append (write): connection lost
[kernel] outcome unknown: t3.1 append (write): connection lost
to go on: rnix resume 0f3a9c2e --unknown=t3.0:DECISION --unknown=t3.1:DECISION  # DECISION: retry, done, skip or fail
`,
    ],
    [
      {
        exit_code: 6,
        reason: "limit",
        error: {
          code: "BUDGET_EXCEEDED",
          message: 'Budget "turns" is used up: 2 of 2',
          hint: "Go on with a higher limit: rnix resume RUN --max-turns N",
        },
      },
      `[kernel] PID 1 suspended (limit) | 2 turns | 1,234 tokens | cost - | 2.1s
[BUDGET_EXCEEDED] Budget "turns" is used up: 2 of 2
hint: go on with a higher limit: rnix resume 0f3a9c2e --max-turns N
`,
    ],
  ];
  for (const [changes, text] of cases) {
    const world = playing(() => report({ state: "suspended", result: "", ...changes }));
    assert.equal(await world.run("run", "demo"), changes.exit_code);
    assert.equal(world.out.text, "");
    assert.equal(world.err.text, text);
  }
});

Deno.test("a run that couldn't write its journal goes on by what its error says", async () => {
  const cases: [Partial<RunReport>, string][] = [
    [
      { exit_code: 7, reason: "journal", pid: null },
      `[kernel] run 0f3a9c2e suspended (journal) | 2 turns | 1,234 tokens | cost - | 2.1s
to go on: rnix journal verify 0f3a9c2e
to go on: rnix resume 0f3a9c2e
`,
    ],
    [
      {
        exit_code: 7,
        reason: "journal",
        error: {
          code: "RESOURCE_EXHAUSTED",
          message: "No space left on device",
          hint: "Free space (or open files), then go on: rnix resume RUN",
        },
        unknown_calls: [UNKNOWN],
      },
      `[kernel] PID 1 suspended (journal) | 2 turns | 1,234 tokens | cost - | 2.1s
[RESOURCE_EXHAUSTED] No space left on device
hint: free space (or open files), then go on: rnix resume 0f3a9c2e
[kernel] outcome unknown: t3.0 append (write): connection lost
`,
    ],
    [
      {
        exit_code: 7,
        reason: "journal",
        error: {
          code: "JOURNAL_DAMAGED",
          message: "Journal was changed by someone else",
          hint: "Nothing more was written; rnix journal verify RUN says what is left of it",
        },
      },
      `[kernel] PID 1 suspended (journal) | 2 turns | 1,234 tokens | cost - | 2.1s
[JOURNAL_DAMAGED] Journal was changed by someone else
hint: nothing more was written; rnix journal verify 0f3a9c2e says what is left of it
`,
    ],
  ];
  for (const [changes, text] of cases) {
    const world = playing(() => report({ state: "suspended", result: "", ...changes }));
    assert.equal(await world.run("run", "demo"), changes.exit_code);
    assert.equal(world.out.text, "");
    assert.equal(world.err.text, text);
  }
});

Deno.test("a call of a child run is named with its run", async () => {
  const child = { ...UNKNOWN, run_id: "01990000-0000-7000-8000-0000beefcafe" };
  const world = playing(() =>
    report({
      state: "suspended",
      reason: "unknown-outcome",
      exit_code: 5,
      result: "",
      unknown_calls: [child],
    })
  );
  assert.equal(await world.run("run", "demo"), 5);
  assert.match(world.err.text, /rnix resume 0f3a9c2e --unknown=beefcafe\/t3\.0:DECISION/);
});

Deno.test("with -q a suspended run still says why and how to go on", async () => {
  const world = playing(() =>
    report({ state: "suspended", reason: "paused", exit_code: 9, result: "" })
  );
  assert.equal(await world.run("run", "demo", "-q"), 9);
  assert.equal(
    world.err.text,
    "[INTERRUPTED] PID 1: Run is suspended (paused)\nhint: go on with rnix resume 0f3a9c2e\n",
  );
});

Deno.test("Ctrl-C once suspends, twice ends, and a third one changes nothing", async () => {
  const world = playing(async (run) => {
    world.signal("SIGINT");
    await run.untilTold(1);
    world.signal("SIGINT");
    await run.untilTold(2);
    world.signal("SIGINT");
    assert.deepEqual(run.told, ["suspend paused", "kill INT"]);
    return report({ exit_code: 130, signal: "INT" });
  });
  assert.equal(await world.run("run", "demo"), 130);
  assert.equal(
    world.err.text,
    `suspending; Ctrl-C again ends the run
[kernel] PID 1 ended by SIGINT | 2 turns | 1,234 tokens | cost - | 2.1s
`,
  );
  assert.deepEqual(world.listening, []);
});

/** Interrupts a command twice once it has `reached` what never ends. */
async function leftAfter(world: FakeWorld, reached: Promise<void>, ...args: string[]) {
  const code = world.run("run", "demo", ...args);
  await reached;
  world.signal("SIGINT");
  world.signal("SIGINT");
  await world.clock.advance(END_MS_MAX - 1);
  assert.ok(world.listening.length > 0, "it still waits");
  await world.clock.advance(1);
  assert.equal(await code, 130);
  assert.deepEqual([world.listening, world.clock.pending], [[], 0]);
}

Deno.test("a second Ctrl-C ends the command in time, whether or not the daemon reacts", async () => {
  for (const args of [[], ["--stream"], ["--json"]]) {
    const started = Promise.withResolvers<void>();
    const world = playing(() => {
      started.resolve();
      return new Promise(() => {});
    });
    await leftAfter(world, started.promise, ...args);
    assert.match(
      world.err.text + world.out.text,
      /INTERRUPTED.*The run did not end within 10 s, and was left/,
    );
    assert.equal(world.err.text.split("suspending; ").length - 1, args[0] === "--stream" ? 0 : 1);
  }
});

/** Never says whether there is a run. */
class Silent extends FakeSystem {
  readonly asking = Promise.withResolvers<void>();

  override run(): Promise<never> {
    this.asking.resolve();
    return new Promise(() => {});
  }
}

Deno.test("so it does where not even the start is answered", async () => {
  const system = new Silent();
  await leftAfter(new FakeWorld({ system }), system.asking.promise);
});

Deno.test("TERM and HUP of a client are a detachment, on resume too", async () => {
  for (const [signal, told] of [["SIGTERM", "detached"], ["SIGHUP", "detached"]] as const) {
    for (const command of ["run", "resume"]) {
      const world = playing(async (run) => {
        world.signal(signal);
        await run.untilTold(1);
        assert.deepEqual(run.told, [`suspend ${told}`]);
        return report({ exit_code: 9, state: "suspended", reason: told });
      });
      assert.equal(await world.run(command, "demo"), 9);
    }
  }
});

Deno.test("a signal that comes before the run has a handle isn't lost", async () => {
  const system = new FakeSystem();
  const told = Promise.withResolvers<void>();
  system.play = async (run) => {
    await run.untilTold(1);
    assert.deepEqual(run.told, ["suspend paused"]);
    told.resolve();
    return report({ exit_code: 9, state: "suspended", reason: "paused" });
  };
  const world: FakeWorld = new FakeWorld({
    system,
    connect: () => {
      world.signal("SIGINT");
      return Promise.resolve({ system, close: () => Promise.resolve() });
    },
  });
  assert.equal(await world.run("run", "demo"), 9);
  await told.promise;
});

Deno.test("resume --plan prints what would be done and does nothing", async () => {
  const system = new FakeSystem();
  system.play = () => assert.fail("a plan started something");
  system.plan = {
    run_id: report().run_id,
    state: "suspended",
    reason: "interrupted",
    agent: "reviewer",
    entries: 21,
    turns: 3,
    notices: ["a torn record would be cut"],
    mounts: ["files", "ledger"],
    settle: [{
      call: "t3.0",
      tool: "append",
      effect: "write",
      cause: "interrupted",
      attempt: 1,
      would: "ask, as on_unknown says",
    }],
    send: [{ call: "t3.1", tool: "read", effect: "read" }],
    next: "model request of turn 4",
    exit_code: 5,
  };
  const world = new FakeWorld({ system });
  assert.equal(await world.run("resume", "beef", "--plan"), 0);
  assert.equal(
    world.out.text,
    `run 0f3a9c2e  reviewer  suspended (interrupted)
3 turns in 21 journal records
notice: a torn record would be cut
mount: files, ledger
settle: t3.0 append (write, attempt 1): interrupted
        ask, as on_unknown says
send: t3.1 read (read)
next: model request of turn 4
as it stands the resume would exit 5
`,
  );
  const json = new FakeWorld({ system });
  assert.equal(await json.run("resume", "beef", "--plan", "--json"), 0);
  assert.deepEqual(JSON.parse(json.out.text), { ok: true, data: system.plan });
});

Deno.test("an agent can't settle unknown outcomes, but may resume and look at plans", async () => {
  for (
    const args of [
      ["3", "--unknown=skip"],
      ["3", "--on-unknown=retry"],
      ["3", "--on-unknown=skip"],
      ["3", "--accept-cut"],
      ["--all", "--on-unknown=retry"],
      ["--all", "--accept-cut"],
      ["--all", "--unknown=skip"],
    ]
  ) {
    const inside = new FakeWorld({ insideRun: true });
    assert.equal(await inside.run("resume", ...args), 2, args.join(" "));
    assert.match(inside.err.text, /^\[PERMISSION\] .*An agent can't settle what became of a call/);
    assert.deepEqual(inside.system.resumes, []);
    assert.deepEqual(inside.system.asked, []);
  }
  const inside = new FakeWorld({ insideRun: true });
  assert.equal(await inside.run("resume", "3", "--on-unknown=ask"), 0);
  assert.equal(inside.system.resumes.length, 1);
  const outside = new FakeWorld();
  assert.equal(await outside.run("resume", "3", "--unknown=skip"), 0);
});

Deno.test("a terminal that an agent holds is no person's", async () => {
  const world = new FakeWorld({
    terminal: true,
    env: { HOME: "/home/u", RNIX_INSTANCE: "12345678" },
  });
  await world.run("run", "demo");
  assert.equal(world.system.runs[0]?.client.interactive, false);
});

Deno.test("the error of a mount that ends the run is told once, with its hint, however loud it is", async () => {
  const error = { code: "DRIVER", message: "spawn failed", hint: "Install it" };
  for (const flags of [[], ["-q"], ["-d"], ["-v"]]) {
    const world = playing((run) => {
      const device = { syscall: "Mount", device: "world" };
      run.events({ type: "mount.starting", server: "world" }, {
        type: "mount.failed",
        server: "world",
        required: true,
        error: { ...error, ...device },
      });
      return report({ exit_code: 3, reason: "mount", result: "", error });
    });
    assert.equal(await world.run("run", "demo", ...flags), 3, flags.join(" "));
    assert.equal(world.err.text.match(/spawn failed/g)?.length, 1, world.err.text);
    assert.equal(world.err.text.match(/hint: install it/g)?.length, 1, world.err.text);
  }
  const other = playing((run) => {
    const failed = { code: "DRIVER", message: "another one" };
    run.events({ type: "mount.failed", server: "x", required: false, error: failed });
    return report({ exit_code: 1, result: "", error });
  });
  await other.run("run", "demo");
  assert.match(other.err.text, /another one[^]*goes on without it\n[^]*spawn failed/);
});

Deno.test("a plan of a fork says what stays done, and one that is refused why, with the name of the run", async () => {
  const system = new FakeSystem();
  system.plan = {
    run_id: report().run_id,
    state: "dead",
    agent: "reviewer",
    entries: 6,
    turns: 1,
    notices: [],
    fork: { from_step: 1, stays_done: [{ call: "t2.1", tool: "pay", effect: "write" }] },
    mounts: [],
    settle: [],
    send: [],
    next: "refused",
    error: { code: "INVALID", message: "No", hint: "Say rnix resume RUN --fork" },
    exit_code: 2,
  };
  const world = new FakeWorld({ system });
  assert.equal(await world.run("resume", "beef", "--fork", "--from-step", "1", "--plan"), 0);
  assert.equal(
    world.out.text,
    `run 0f3a9c2e  reviewer  dead
1 turn in 6 journal records
fork: a new run that goes on from step 1
stays done: t2.1 pay (write)
next: refused
[INVALID] No
hint: say rnix resume 0f3a9c2e --fork
as it stands the resume would exit 2
`,
  );
});
