/** Two terminals over one daemon: what one starts the other sees, follows and ends. */
import assert from "node:assert/strict";
import { LAUNCHER, TerminalStage } from "./system/terminal_stage.ts";

interface Row {
  pid: number;
  state: string;
  reason?: string;
  mounts: string[];
}

async function rows(stage: TerminalStage): Promise<Row[]> {
  return (await stage.data<{ processes: Row[] }>("ps", "-a")).processes;
}

/** Pays, which takes effect at once and is answered after a minute. */
const PAYS = `turns:
  - calls: [{ tool: pay, input: { note: rent, after_ms: 60000 } }]
  - text: Done.
`;

Deno.test("[A2] what runs in one terminal is listed, followed, joined and ended in another", async () => {
  await using stage = new TerminalStage();
  stage.agent("payer", PAYS, [stage.ledgerServer("ledger")]);
  const first = stage.open(["run", "payer", "pay"]);
  const [row] = await stage.until(async () => {
    const found = await rows(stage);
    return found[0]?.mounts.length === 1 ? found : undefined;
  });
  assert.equal(row?.state, "running");
  const logs = stage.open(["logs", "-f", "1"]);
  const attached = stage.open(["attach", "1", "--stream"]);
  const waiting = stage.open(["wait", "1"]);
  await Promise.all([logs.until("mcp__ledger__pay"), attached.until("call.started")]);
  assert.equal((await stage.rnix("mcp", "list", "-q")).stdout, "1-ledger\n");
  const killed = await stage.rnix("kill", "1");
  assert.equal(killed.stdout, "[kernel] PID 1: signal sent (SIGTERM)\n");
  const ended = await Promise.all([first, attached, waiting].map((each) => each.ended));
  assert.deepEqual(ended.map(({ code }) => code), [143, 143, 143]);
  assert.match(ended[0]?.stderr ?? "", /PID 1 ended by SIGTERM/);
  const told = await logs.ended;
  assert.equal(told.code, 0, told.stderr);
  assert.match(told.stdout, /^\[kernel\] spawning PID 1 \(scripted/);
  assert.match(told.stdout, /PID 1 ended by SIGTERM \| /);
  const events: { type: string }[] =
    ended[1]?.stdout.trim().split("\n").map((line) => JSON.parse(line)) ?? [];
  assert.equal(events[0]?.type, "run.started");
  assert.equal(events.at(-1)?.type, "run.report");
  assert.equal((await rows(stage))[0]?.state, "dead");
});

Deno.test("[A2] a run has the environment and the folder of its own client, not the daemon's", async () => {
  await using stage = new TerminalStage();
  const seen = `${stage.folder}/seen`;
  stage.agent("shower", "turns:\n  - text: Done.\n", [
    `shower: { command: sh, args: ["-c", ${
      JSON.stringify(
        `echo "$$MARK $$OTHER $$PATH" > ${seen}; exec ${Deno.execPath()} run -A ${
          new URL("./servers/ledger_server.ts", import.meta.url).pathname
        } /dev/null`,
      )
    }], env: { MARK: "\${MARK}", OTHER: "\${OTHER:-none}" } }`,
  ]);
  const path = Deno.env.get("PATH") ?? "";
  const started = await stage.open(["daemon", "start"], {
    cwd: "/",
    env: { MARK: "daemon", OTHER: "daemon", PATH: `${path}:/daemon` },
  }).ended;
  assert.equal(started.code, 0, started.stderr);
  const client = { MARK: "client", PATH: `${path}:/client` };
  const ran = await stage.open(["run", "./shower"], { env: client }).ended;
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(Deno.readTextFileSync(seen), `client none ${path}:/client\n`);
  const mode = (Deno.statSync(seen).mode ?? 0) & 0o777;
  assert.equal(mode, 0o666 & ~Deno.umask(), "what a server writes has the user's own umask");
  // No manifest is found from the daemon's folder; the client's is the one that counts.
  const elsewhere = await stage.open(["run", "./shower"], { cwd: "/", env: client }).ended;
  assert.equal(elsewhere.code, 2);
  const unset = await stage.rnix("run", "./shower");
  assert.equal(unset.code, 3, "the daemon's MARK must not stand in for the client's");
});

Deno.test("[A2] a terminal that is closed suspends its foreground run, and not one left to itself", async () => {
  await using stage = new TerminalStage();
  stage.talker();
  stage.talker("speaker", 10);
  const foreground = stage.open(["-c", '"$0" run -v speaker; true', LAUNCHER], {
    program: "sh",
    session: true,
  });
  await foreground.until("turn 1");
  const detached = stage.open(["-c", '"$0" run -d talker; sleep 100', LAUNCHER], {
    program: "sh",
    session: true,
  });
  await detached.until("2\n");
  for (const { child } of [foreground, detached]) Deno.kill(-child.pid, "SIGHUP");
  await Promise.all([foreground.ended, detached.ended]);
  const [first, second] = await stage.until(async () => {
    const found = await rows(stage);
    return found[0]?.state === "suspended" ? found : undefined;
  });
  assert.equal(first?.reason, "detached");
  assert.equal(second?.state, "running");
  const ended = await stage.rnix("wait", "2");
  assert.equal(ended.code, 0);
  assert.match(ended.stdout, /^a long answer\./);
  const suspended = await stage.rnix("wait", "1");
  assert.equal(suspended.code, 9);
  assert.match(suspended.stderr, /suspended \(detached\)/);
});

Deno.test("Ctrl-C on attach detaches: exit 130, and the run goes on", async () => {
  await using stage = new TerminalStage();
  stage.talker("talker", 10);
  assert.equal((await stage.rnix("run", "-d", "talker")).stdout, "1\n");
  const attached = stage.open(["attach", "1", "-v"]);
  await attached.until("turn 1");
  attached.child.kill("SIGINT");
  const left = await attached.ended;
  assert.equal(left.code, 130);
  assert.match(left.stderr, /SIGINT ended the watching, the run goes on\nhint: rnix attach 1/);
  assert.equal((await rows(stage))[0]?.state, "running");
  assert.equal((await stage.rnix("pause", "1")).code, 0);
  const paused = await stage.rnix("wait", "1");
  assert.equal(paused.code, 9);
  const again = await stage.rnix("attach", "1");
  assert.equal(again.code, 2);
  assert.match(again.stderr, / is suspended\nhint: rnix resume \S+ takes it up again/);
  assert.equal((await stage.rnix("kill", "1")).code, 0);
  assert.equal((await stage.rnix("wait", "1")).code, 143);
  assert.equal((await stage.rnix("kill", "1")).code, 2);
});

Deno.test("a detached run whose server doesn't start says so and exits 3", async () => {
  await using stage = new TerminalStage();
  stage.agent("broken", "turns:\n  - text: Done.\n", ["gone: { command: no-such-program }"]);
  const ended = await stage.rnix("run", "-d", "broken");
  assert.equal(ended.code, 3);
  assert.equal(ended.stdout, "");
  assert.match(ended.stderr, /no-such-program/);
  const json = await stage.rnix("run", "-d", "broken", "--json");
  assert.equal(JSON.parse(json.stdout).data.exit_code, 3);
});

Deno.test("a run can't settle its own unknown outcomes, nor can what it starts", async () => {
  await using stage = new TerminalStage();
  const refused = await stage.open(["resume", "1", "--unknown=skip"], {
    env: { RNIX_INSTANCE: "12345678-test" },
  }).ended;
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /An agent can't settle what became of a call/);
  const below = await stage.open(
    ["-c", 'env -u RNIX_INSTANCE "$0" resume 1 --unknown=skip; exit $?', LAUNCHER],
    { program: "sh", env: { RNIX_INSTANCE: "12345678-test" } },
  ).ended;
  assert.match(below.stderr, /An agent can't settle what became of a call/);
});
