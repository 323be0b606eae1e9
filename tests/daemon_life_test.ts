/** The daemon as commands meet it: coming up once, going down in time, left behind by a crash, of another version, and where its socket can't be. */
import assert from "node:assert/strict";
import { fallbackFolder } from "../src/base/daemon_files.ts";
import { type Terminal, TerminalStage } from "./system/terminal_stage.ts";
import { markedProcesses, noneMarked } from "./servers/marked_processes.ts";

interface Status {
  running: boolean;
  os_pid: number;
  instance: string;
  socket: string;
  runs: number;
}

async function status(stage: TerminalStage): Promise<Status> {
  return await stage.data("daemon", "status");
}

Deno.test("[A7] commands that start a daemon at the same time end up with one", async () => {
  await using stage = new TerminalStage();
  const started = await Promise.all(
    Array.from({ length: 4 }, () => stage.data<Status>("daemon", "start")),
  );
  assert.equal(new Set(started.map(({ instance }) => instance)).size, 1);
  const again = await stage.rnix("daemon", "run");
  assert.equal(again.code, 1);
  assert.match(again.stderr, /Another daemon serves this state folder/);
});

Deno.test("[A7] after kill -9 of the daemon the next command works, and its run can be resumed", async () => {
  await using stage = new TerminalStage();
  stage.talker();
  const followed = stage.open(["run", "talker", "-v"]);
  await followed.until("turn 1");
  const before = await status(stage);
  Deno.kill(before.os_pid, "SIGKILL");
  const lost = await followed.ended;
  assert.equal(lost.code, 8);
  assert.match(lost.stderr, /The daemon was lost|The daemon can't be reached/);
  assert.match(lost.stderr, /rnix resume [0-9a-f]{8}/);
  assert.ok(Deno.statSync(before.socket).isSocket, "the socket of the killed one is still there");
  const ps = await stage.data<{ processes: { state: string; reason: string }[] }>("ps");
  assert.equal(ps.processes[0]?.reason, "interrupted");
  assert.equal((await stage.rnix("daemon", "status")).code, 1);
  const resumed = await stage.rnix("resume", "-d", "1");
  assert.equal(resumed.stdout, "2\n", resumed.stderr);
  const after = await status(stage);
  assert.notEqual(after.instance, before.instance);
  assert.equal(after.socket, before.socket);
});

/** Five servers that ignore the end of stdin and SIGTERM, in a run at work. */
async function stubborn(stage: TerminalStage): Promise<Status> {
  const flags = ["--ignore-term", "--ignore-eof"];
  stage.agent(
    "holder",
    "turns:\n  - delay: 60s\n    text: Done.\n",
    // Each another one: equal servers of a process are one.
    [1, 2, 3, 4, 5].map((number) => stage.ledgerServer(`s${number}`, [...flags, `--n${number}`])),
  );
  const started = await stage.rnix("run", "-d", "holder");
  assert.equal(started.code, 0, started.stderr);
  const found = await status(stage);
  assert.ok((await markedProcesses(found.instance)).length >= 5);
  return found;
}

/** Less than the end of five servers takes, one after another. */
const STOPPED_MS_MAX = 20_000;

for (const how of ["stop", "SIGTERM", "SIGHUP"] as const) {
  Deno.test(`[A5] ${how} ends the daemon and five servers that won't go, in time, and nothing is left`, async () => {
    await using stage = new TerminalStage();
    const { instance, os_pid } = await stubborn(stage);
    const stopped = how === "stop" ? stage.open(["daemon", "stop"]) : undefined;
    if (how !== "stop") Deno.kill(os_pid, how);
    await stage.until(() => Promise.resolve(isStopping(stage) ? true : undefined));
    const began = performance.now();
    // Who comes while it is on its way out waits with it.
    const second = stage.rnix("daemon", "stop");
    if (stopped === undefined) {
      await stage.until(async () => await isGone(os_pid) ? true : undefined);
    } else {
      const { stdout, stderr } = await stopped.ended;
      assert.equal(stdout, "daemon stopped\n", stderr);
      assert.match(stderr, /^1 run was at work; to go on: rnix resume --all$/m);
    }
    const tookMs = performance.now() - began;
    await noneMarked(instance);
    assert.equal((await second).stdout, "daemon stopped\n");
    assert.ok(tookMs < STOPPED_MS_MAX, `took ${Math.round(tookMs)} ms`);
    const { processes } = await stage.data<{ processes: { reason: string }[] }>("ps");
    assert.equal(processes[0]?.reason, "shutdown");
    assert.equal((await stage.rnix("daemon", "stop")).stdout, "daemon is not running\n");
  });
}

/** Whether the daemon has begun to stop, as its record says, or is through with it. */
function isStopping(stage: TerminalStage): boolean {
  try {
    return Deno.readTextFileSync(`${stage.home}/state/daemon.json`).includes("stopping");
  } catch {
    return true;
  }
}

/** Gone, or dead and not yet waited for by whoever adopted it. */
async function isGone(osPid: number): Promise<boolean> {
  const { success } = await new Deno.Command("sh", {
    args: ["-c", `kill -0 ${osPid} && ! grep -q '^State:.Z' /proc/${osPid}/status`],
    stderr: "null",
  }).output();
  return !success;
}

/** A daemon of another version in place of the stage's own. */
async function otherVersion(stage: TerminalStage, runs: number): Promise<Terminal> {
  Deno.mkdirSync(`${stage.home}/state`, { recursive: true });
  const program = new URL("./servers/other_daemon.ts", import.meta.url).pathname;
  const other = stage.open(
    ["run", "-A", "--no-config", program, `${stage.home}/state`, String(runs)],
    { program: Deno.execPath() },
  );
  await other.until("up\n");
  return other;
}

Deno.test("an idle daemon of another protocol is replaced", async () => {
  await using stage = new TerminalStage();
  stage.agent("short", "turns:\n  - text: Done.\n");
  const other = await otherVersion(stage, 0);
  const ran = await stage.rnix("run", "short");
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(ran.stdout, "Done.\n");
  assert.equal((await other.ended).stdout, "up\nstopped\n");
  assert.notEqual((await status(stage)).instance, "other-version");
});

Deno.test("a busy daemon of another protocol is left alone: exit 8, and what to do", async () => {
  await using stage = new TerminalStage();
  stage.agent("short", "turns:\n  - text: Done.\n");
  const other = await otherVersion(stage, 2);
  const ran = await stage.rnix("run", "short");
  assert.equal(ran.code, 8);
  assert.match(ran.stderr, /rnix 9\.9\.9 and speaks another protocol, and 2 runs are at work/);
  assert.match(ran.stderr, /hint: wait for them/);
  // What only reads needs no daemon.
  assert.equal((await stage.rnix("ps")).code, 0);
  other.child.kill("SIGKILL");
  assert.equal((await other.ended).stdout, "up\n");
});

Deno.test("[A7] a socket path over the system's limit goes to the short fallback", async () => {
  await using stage = new TerminalStage("x".repeat(100));
  stage.agent("short", "turns:\n  - text: Done.\n");
  const ran = await stage.rnix("run", "short");
  assert.equal(ran.code, 0, ran.stderr);
  const { socket } = await status(stage);
  assert.ok(socket.startsWith(`${fallbackFolder(Deno.uid() ?? 0)}/`), socket);
});

Deno.test("[A7] a folder for the socket that is a link, or open to others, is refused at once", async () => {
  await using stage = new TerminalStage();
  stage.agent("short", "turns:\n  - text: Done.\n");
  Deno.mkdirSync(stage.home);
  const run = `${stage.home}/run`;
  const refused = async (why: string) => {
    const began = performance.now();
    const ran = await stage.rnix("run", "short");
    assert.equal(ran.code, 8);
    assert.match(ran.stderr, new RegExp(`The folder can't hold the daemon's socket: ${why}`));
    assert.ok(performance.now() - began < 8_000, "it must not wait for its limit");
  };
  Deno.symlinkSync(stage.folder, run);
  await refused("it is a link");
  Deno.removeSync(run);
  Deno.mkdirSync(run);
  Deno.chmodSync(run, 0o777);
  await refused("others may enter it");
  Deno.chmodSync(run, 0o700);
  if (Deno.uid() === 0) {
    Deno.chownSync(run, 1, 1);
    await refused("it belongs to user 1");
    Deno.chownSync(run, 0, 0);
  }
  assert.equal((await stage.rnix("run", "short")).code, 0);
});

Deno.test("a daemon started from within a run doesn't carry that run's mark", async () => {
  await using stage = new TerminalStage();
  const mark = `test-${crypto.randomUUID()}`;
  const started = await stage.open(["daemon", "start"], { env: { RNIX_INSTANCE: mark } }).ended;
  assert.equal(started.code, 0, started.stderr);
  assert.deepEqual(await markedProcesses(mark), []);
});

Deno.test({
  name: "a daemon keeps nothing of the environment of whoever started it but what it needs",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using stage = new TerminalStage();
    const value = `secret-${crypto.randomUUID()}`;
    const started = await stage.open(["daemon", "start"], { env: { GIVEN_KEY: value } }).ended;
    assert.equal(started.code, 0, started.stderr);
    const { os_pid } = await status(stage);
    const { stdout } = await new Deno.Command("cat", { args: [`/proc/${os_pid}/environ`] })
      .output();
    const environment = new TextDecoder().decode(stdout);
    assert.ok(environment.includes(`RNIX_HOME=${stage.home}`));
    assert.ok(!environment.includes(value));
  },
});
