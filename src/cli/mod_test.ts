import assert from "node:assert/strict";
import { FakeSystem, report, row } from "../../tests/doubles/fake_system.ts";
import { DAEMON_STATUS, FakeWorld } from "../../tests/doubles/fake_world.ts";
import { SysError } from "../base/errors.ts";
import { allCommands } from "./commands.ts";
import { commandTable } from "./help.ts";
import { main } from "./mod.ts";
import { Output } from "./output.ts";

const ALL_COMMANDS = await allCommands();

/** The envelope on stdout; there must be nothing else. */
function envelope(world: FakeWorld): { ok: boolean; data?: unknown; error?: { code: string } } {
  assert.equal(world.out.text.trimEnd().split("\n").length, 1, world.out.text);
  return JSON.parse(world.out.text);
}

const FULL = Object.assign(new Error("No space left on device"), { code: "ENOSPC" });

Deno.test("version and help need no running system", async () => {
  for (const args of [["version"], ["--version"], [], ["--help"], ["help", "run"], ["run", "-h"]]) {
    const world = new FakeWorld();
    assert.equal(await world.run(...args), 0, args.join(" "));
    assert.equal(world.connectedWith.length, 0);
    assert.equal(world.err.text, "");
    assert.ok(world.out.text.length > 10);
  }
});

Deno.test("where both streams are one file the result stands before what is said of it", async () => {
  const lines: string[] = [];
  /** A result takes longer to write than a line on stderr. */
  const sink = (name: string, turns: number) => ({
    isTerminal: () => false,
    async write(bytes: Uint8Array) {
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      lines.push(name);
      return bytes.length;
    },
  });
  const fake = new FakeWorld();
  fake.system.play = () => report({ result: "all done" });
  const world = fake.world(["run", "demo"]);
  const stdout = new Output(sink("result", 50));
  const stderr = new Output(sink("summary", 1));
  assert.equal(await main({ ...world, stdout, stderr }), 0);
  assert.deepEqual(lines, ["result", "summary"]);
});

Deno.test("every command is in the help, with each of its flags in its own", async () => {
  const world = new FakeWorld();
  await world.run("--help");
  for (const command of ALL_COMMANDS) {
    const text = world.out.text.replace(/\s+/g, " ");
    assert.equal(text.includes(command.summary), !command.hidden, command.name);
    const own = new FakeWorld();
    assert.equal(await own.run(...command.name.split(" "), "--help"), 0);
    for (const flag of command.flags) assert.ok(own.out.text.includes(`--${flag.name}`), flag.name);
  }
});

Deno.test("help for a group lists it, for nonsense it is a usage error", async () => {
  const world = new FakeWorld();
  assert.equal(await world.run("help", "mcp"), 0);
  assert.match(world.out.text, /mcp logs \[flags\] <mount>/);
  assert.equal(await new FakeWorld().run("mcp", "--help"), 0);
  const lost = new FakeWorld();
  assert.equal(await lost.run("help", "xyzzy"), 2);
  assert.equal(lost.err.text, '[INVALID] Unknown command "xyzzy"\nhint: see rnix --help\n');
});

Deno.test("README.md has the table of commands as the commands are", () => {
  const readme = Deno.readTextFileSync(new URL("../../README.md", import.meta.url));
  const cells = (text: string) =>
    text.split("\n").filter((line) => line.startsWith("| `rnix"))
      .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
  assert.deepEqual(cells(readme), cells(commandTable(ALL_COMMANDS)));
});

Deno.test("a usage error exits 2, says what is near, and prints nothing on stdout", async () => {
  const world = new FakeWorld();
  assert.equal(await world.run("run", "demo", "--modle", "x"), 2);
  assert.equal(world.out.text, "");
  assert.equal(
    world.err.text,
    '[INVALID] Unknown flag "--modle" for "rnix run"\nhint: did you mean --model?\n',
  );
});

Deno.test("with --json there is one envelope, also for a usage error", async () => {
  const world = new FakeWorld();
  assert.equal(await world.run("rum", "--json"), 2);
  assert.deepEqual(envelope(world), {
    ok: false,
    error: { code: "INVALID", message: 'Unknown command "rum"', hint: "did you mean rnix run?" },
  });
  assert.equal(world.err.text, "");
});

Deno.test("an error of the system is printed with its place and hint, and keeps its exit code", async () => {
  const system = new FakeSystem();
  system.failure = new SysError("NOT_FOUND", "no run ends in it", {
    syscall: "Resume",
    device: "beef",
    pid: 3,
    hint: "rnix ps -a lists them",
    exitCode: 2,
    cause: new Error("deep"),
  });
  const world = new FakeWorld({ system });
  assert.equal(await world.run("resume", "beef"), 2);
  assert.equal(
    world.err.text,
    "[NOT_FOUND] PID 3 Resume: beef (no run ends in it)\nhint: rnix ps -a lists them\n",
  );
  assert.equal(world.closed, 1);
});

Deno.test("where the system's hint says RUN, the run's own name is printed", async () => {
  const system = new FakeSystem();
  system.failure = new SysError("INVALID", "The run has completed", {
    device: row().run_id,
    hint: 'Give it a new intent (rnix resume RUN "…")',
    exitCode: 2,
  });
  const world = new FakeWorld({ system });
  await world.run("resume", "beef", "--json");
  assert.deepEqual(envelope(world).error, {
    code: "INVALID",
    message: "The run has completed",
    hint: 'Give it a new intent (rnix resume 0f3a9c2e "…")',
    device: row().run_id,
  });
});

Deno.test("stacks are shown with RNIX_DEBUG alone", async () => {
  const connect = () => Promise.reject(new TypeError("boom"));
  const plain = new FakeWorld({ connect });
  assert.equal(await plain.run("ps"), 1);
  assert.equal(plain.err.text, "[INTERNAL] boom\n");
  const debug = new FakeWorld({ connect, env: { RNIX_DEBUG: "1" } });
  assert.equal(await debug.run("ps"), 1);
  assert.match(debug.err.text, /TypeError: boom\n +at /);
});

Deno.test("--home is RNIX_HOME for the system and for what it starts", async () => {
  const world = new FakeWorld();
  await world.run("--home", "place", "run", "demo");
  assert.equal(world.connectedWith[0]?.["RNIX_HOME"], "/project/place");
  assert.equal(world.system.runs[0]?.client.env["RNIX_HOME"], "/project/place");
  assert.equal(world.closed, 1);
});

Deno.test("Windows is refused in a sentence", async () => {
  const world = new FakeWorld({ platform: "windows" });
  assert.equal(await world.run("version"), 2);
  assert.match(world.err.text, /rnix doesn't run on Windows\nhint: use it in WSL/);
});

Deno.test("a reader that has gone changes neither the exit code nor the run", async () => {
  const world = new FakeWorld({ terminal: true });
  world.out.failure = new Deno.errors.BrokenPipe("gone");
  world.err.failure = new Deno.errors.BrokenPipe("gone");
  world.system.play = (run) => {
    run.events({ type: "notice", message: "still here" });
    return report();
  };
  assert.equal(await world.run("run", "demo"), 0);
  assert.equal(await world.run("ps"), 0);
});

Deno.test("a result that can't be written is exit 1 and a sentence, in all its forms", async () => {
  const lines = [["run", "demo"], ["run", "demo", "--stream"], ["ps"], ["ps", "--json"], [
    "version",
  ]];
  for (const line of lines) {
    const world = new FakeWorld();
    world.system.rows = [row()];
    world.out.failure = FULL;
    assert.equal(await world.run(...line), 1, line.join(" "));
    assert.match(
      world.err.text,
      /\[RESOURCE_EXHAUSTED\] Write: stdout \(No space left on device\)\nhint: free space/,
      line.join(" "),
    );
  }
});

Deno.test("it doesn't hide why a run ended, and what stderr loses changes nothing", async () => {
  const failed = new FakeWorld();
  failed.system.play = () => report({ exit_code: 6, state: "suspended", reason: "limit" });
  failed.out.failure = FULL;
  assert.equal(await failed.run("run", "demo", "--json"), 6);
  const mute = new FakeWorld();
  mute.err.failure = FULL;
  assert.equal(await mute.run("run", "demo"), 0);
  assert.equal(mute.out.text, "All is well.\n");
});

Deno.test("ps prints a table with its counts, and what is unknown", async () => {
  const world = new FakeWorld();
  world.system.rows = [
    row(),
    row({ pid: 12, ppid: 1, state: "suspended", reason: "limit", agent: "体", cost_usd: 0.0123 }),
    row({
      pid: 13,
      state: "suspended",
      reason: "unknown-outcome",
      turns: 1200,
      intent: "two\nlines \x1b[31m",
      elapsed_ms: 3_700_000,
      unknown_calls: [{
        run_id: row().run_id,
        call: "t3.0",
        tool: "append",
        effect: "write",
        cause: "interrupted",
        message: "rnix was stopped",
        attempt: 1,
      }],
    }),
  ];
  assert.equal(await world.run("ps", "-a"), 0);
  assert.deepEqual(world.system.asked, ["processes all=true"]);
  assert.equal(
    world.out.text,
    `PID  PPID  STATE                        AGENT     TURNS  TOKENS     COST  ELAPSED  INTENT
  1     0  running                      reviewer      2   1,234        -     2.1s  review the change
 12     1  suspended (limit)            └ 体          2   1,234  $0.0123     2.1s  review the change
 13     0  suspended (unknown-outcome)  reviewer  1,200   1,234        -    1h01m  two lines \\x1b[31m
1 active, 2 suspended, 3 total
PID 13 outcome unknown: t3.0 append (write): interrupted: rnix was stopped
`,
  );
});

Deno.test("ps without processes says so, -q prints pids, and --json gives rows", async () => {
  const empty = new FakeWorld();
  assert.equal(await empty.run("ps"), 0);
  assert.equal(empty.out.text, "No active processes.\n");
  assert.deepEqual(empty.system.asked, ["processes all=false"]);
  const quiet = new FakeWorld();
  quiet.system.rows = [row({ pid: 12 }), row({ pid: 3 })];
  await quiet.run("ps", "-q");
  assert.equal(quiet.out.text, "3\n12\n");
  const nothing = new FakeWorld();
  await nothing.run("ps", "-q");
  assert.equal(nothing.out.text, "");
  const json = new FakeWorld();
  json.system.rows = [row({ pid: 3 })];
  await json.run("ps", "--json");
  assert.deepEqual(envelope(json), { ok: true, data: { processes: [row({ pid: 3 })] } });
});

Deno.test("on a terminal ps cuts the intent to its width", async () => {
  const world = new FakeWorld({ terminal: true, columns: 80 });
  world.system.rows = [row({ intent: "a very long intent that goes on and on" })];
  await world.run("ps");
  for (const line of world.out.text.trimEnd().split("\n")) assert.ok(line.length <= 80, line);
  assert.match(world.out.text, /a very.*…\n/);
});

Deno.test("at 80 columns nothing that ps prints is wider, whatever states and agents there are", async () => {
  const world = new FakeWorld({ terminal: true, columns: 80 });
  const call = { call: "t1.1", tool: `mcp__files__${"x".repeat(60)}`, effect: "write" };
  world.system.rows = [row({
    pid: 1234,
    state: "suspended",
    reason: "unknown-outcome",
    agent: "an-agent-with-a-long-name",
    tokens_used: 12_345_678,
    unknown_calls: [{ ...call, run_id: row().run_id, cause: "disconnected", attempt: 1 }],
  })];
  await world.run("ps");
  for (const line of world.out.text.trimEnd().split("\n")) assert.ok(line.length <= 80, line);
  assert.match(world.out.text, /suspended \(unknown-outcome\)/);
});

Deno.test("ps -a tells how each dead process came to its end", async () => {
  const world = new FakeWorld();
  world.system.rows = [
    row({ pid: 1, state: "dead", exit_code: 0 }),
    row({ pid: 2, state: "dead", exit_code: 1 }),
    row({ pid: 3, state: "dead", exit_code: 143, signal: "TERM" }),
  ];
  await world.run("ps", "-a");
  const states = world.out.text.match(/dead \(\w+\)/g);
  assert.deepEqual(states, ["dead (0)", "dead (1)", "dead (TERM)"]);
});

Deno.test("daemon status tells of one and of none, in JSON with an error that has a name", async () => {
  const none = new FakeWorld();
  assert.equal(await none.run("daemon", "status"), 1);
  assert.deepEqual([none.out.text, none.err.text], ["daemon is not running\n", ""]);
  const json = new FakeWorld();
  assert.equal(await json.run("daemon", "status", "--json"), 1);
  const error = { code: "NOT_FOUND", message: "Daemon is not running" };
  assert.deepEqual(envelope(json), { ok: false, data: { running: false }, error });
  const one = new FakeWorld();
  one.daemonStatus = { ...DAEMON_STATUS, runs: 1, clients: 1 };
  assert.equal(await one.run("daemon", "status"), 0);
  assert.match(one.out.text, /\n1 run at work, 1 client\n/);
});

Deno.test("mcp logs prints lines as the server wrote them", async () => {
  const lines = ["Starting server v2.1.0...", "ready"].map((text) => ({
    server: "files",
    run_id: row().run_id,
    source: "stderr" as const,
    text,
  }));
  const world = new FakeWorld();
  world.system.lines = lines;
  assert.equal(await world.run("mcp", "logs", "1-files"), 0);
  assert.equal(world.out.text, "[stderr] Starting server v2.1.0...\n[stderr] ready\n");
  assert.deepEqual(world.system.asked, ["logs 1-files"]);
  const json = new FakeWorld();
  json.system.lines = lines;
  await json.run("mcp", "logs", "files", "--json");
  assert.deepEqual(envelope(json), { ok: true, data: { lines } });
  const mute = new FakeWorld();
  assert.equal(await mute.run("mcp", "logs", "7-files"), 0);
  assert.deepEqual([mute.out.text, mute.err.text], ["", "7-files wrote nothing to stderr\n"]);
});

Deno.test("journal verify exits 0 for a whole journal and 1 with record and offset of each problem", async () => {
  const whole = new FakeWorld();
  whole.system.findings = {
    run_id: row().run_id,
    entries: 120,
    bytes: 35_000,
    ok: true,
    problems: [],
  };
  assert.equal(await whole.run("journal", "verify", "1"), 0);
  assert.equal(whole.out.text, "run 0f3a9c2e: 120 records, 34.2 KiB, whole\n");
  const damaged = new FakeWorld();
  damaged.system.findings = {
    run_id: row().run_id,
    entries: 7,
    bytes: 900,
    ok: false,
    problems: [{ record: 3, offset: 412, kind: "checksum", message: "crc does not match" }],
  };
  assert.equal(await damaged.run("journal", "verify", "1"), 1);
  assert.equal(
    damaged.out.text,
    "run 0f3a9c2e: 7 records, 900 B, 1 problem\nrecord 3 at byte 412: checksum: crc does not match\n",
  );
  assert.equal(damaged.err.text, "");
  const middle = new FakeWorld();
  const found = { record: 3, offset: 412, kind: "damaged", message: "no good" };
  middle.system.findings = { ...damaged.system.findings, problems: [found] };
  assert.equal(await middle.run("journal", "verify", "1"), 1);
  assert.match(middle.err.text, /^hint: rnix journal repair 0f3a9c2e says what could be kept\n$/);
  const torn = new FakeWorld();
  const tail = { ...found, kind: "torn" };
  torn.system.findings = { ...damaged.system.findings, problems: [found, tail] };
  assert.equal(await torn.run("journal", "verify", "1"), 1);
  assert.equal(torn.err.text, "");
  const json = new FakeWorld();
  json.system.findings = damaged.system.findings;
  assert.equal(await json.run("journal", "verify", "1", "--json"), 1);
  assert.equal(envelope(json).error?.code, "JOURNAL_DAMAGED");
  assert.equal(envelope(json).ok, false);
});
