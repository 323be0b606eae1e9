import assert from "node:assert/strict";
import { TextLineStream } from "./doubles/text_lines.ts";
import { removeFolder } from "./doubles/remove_folder.ts";

const launcher = new URL("../scripts/rnix", import.meta.url).pathname;

/** Speaks for ten seconds, so that a signal always finds it at work. */
const SCRIPT = `stream: { size: 1, every: 100ms }
turns:
  - text: "${"a long answer. ".repeat(7)}"
`;

const MANIFEST = `name: talker
description: Talks for a long time
instructions: Talk.
models: { provider: scripted, script: script.yaml }
`;

interface Ended {
  code: number;
  events: { type: string; data?: { state: string; reason?: string; run_id: string } }[];
}

/** Runs the agent until its text streams, then lets `act` work on the process, and waits for its end. */
async function interrupted(
  folder: string,
  args: string[],
  act: (child: Deno.ChildProcess) => void | Promise<void>,
): Promise<Ended> {
  const child = new Deno.Command(launcher, {
    args: [...args, "--stream"],
    cwd: folder,
    env: { RNIX_HOME: `${folder}/home`, NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const events: Ended["events"] = [];
  let acted = false;
  for await (const line of child.stdout.pipeThrough(new TextLineStream())) {
    const event: Ended["events"][number] = JSON.parse(line);
    events.push(event);
    if (event.type !== "model.delta" || acted) continue;
    acted = true;
    await act(child);
  }
  return { code: (await child.status).code, events };
}

async function inAgentFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-signals-" }));
  try {
    Deno.mkdirSync(`${folder}/talker`);
    Deno.writeTextFileSync(`${folder}/talker/agent.yaml`, MANIFEST);
    Deno.writeTextFileSync(`${folder}/talker/script.yaml`, SCRIPT);
    await work(folder);
  } finally {
    await rnix(folder, "daemon", "stop");
    await removeFolder(folder);
  }
}

async function rnix(folder: string, ...args: string[]): Promise<{ code: number; stdout: string }> {
  const { code, stdout } = await new Deno.Command(launcher, {
    args,
    cwd: folder,
    env: { RNIX_HOME: `${folder}/home`, NO_COLOR: "1" },
    stdin: "null",
  }).output();
  return { code, stdout: new TextDecoder().decode(stdout) };
}

for (
  const [signal, reason] of [
    ["SIGINT", "paused"],
    ["SIGTERM", "detached"],
    ["SIGHUP", "detached"],
  ] as const
) {
  Deno.test(`${signal} suspends a run (${reason}), exit 9, and it can be resumed`, async () => {
    await inAgentFolder(async (folder) => {
      const { code, events } = await interrupted(
        folder,
        ["run", "talker", "speak"],
        (child) => child.kill(signal),
      );
      assert.equal(code, 9);
      const report = events.at(-1);
      assert.equal(report?.type, "run.report");
      assert.equal(report?.data?.state, "suspended");
      assert.equal(report?.data?.reason, reason);
      const ps = JSON.parse((await rnix(folder, "ps", "--json")).stdout);
      assert.equal(ps.data.processes[0].reason, reason);
      const plan = await rnix(folder, "resume", "1", "--plan", "--json");
      assert.equal(plan.code, 0);
      assert.equal(JSON.parse(plan.stdout).data.reason, reason);
      const again = await interrupted(folder, ["resume", "1"], (child) => child.kill(signal));
      assert.equal(again.code, 9);
      assert.equal(again.events.at(-1)?.data?.run_id, report?.data?.run_id);
    });
  });
}

const ledgerServer = new URL("./servers/ledger_server.ts", import.meta.url).pathname;

/** An agent whose first turn pays, which takes effect at once and is answered after a minute. */
function makePayer(folder: string): void {
  const args = ["run", "-A", "--no-config", "--no-lock", "--no-check", ledgerServer];
  Deno.mkdirSync(`${folder}/payer`);
  Deno.writeTextFileSync(
    `${folder}/payer/agent.yaml`,
    `name: payer
description: Pays once
instructions: Pay.
models: { provider: scripted, script: script.yaml }
mcp:
  servers:
    ledger:
      command: ${JSON.stringify(Deno.execPath())}
      args: ${JSON.stringify([...args, `${folder}/ledger`])}
`,
  );
  Deno.writeTextFileSync(
    `${folder}/payer/script.yaml`,
    `turns:
  - calls:
      - { tool: pay, input: { note: rent, after_ms: 60000 } }
  - text: Done.
`,
  );
}

/** Runs the payer as a person would see it; `act` is called with all that stderr said so far, after each piece. */
async function watched(
  folder: string,
  args: string[],
  act: (child: Deno.ChildProcess, told: string) => void,
): Promise<{ code: number; told: string }> {
  const child = new Deno.Command(launcher, {
    args,
    cwd: folder,
    env: { DENO_NO_UPDATE_CHECK: "1", RNIX_HOME: `${folder}/home`, NO_COLOR: "1" },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let told = "";
  for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) {
    told += piece;
    act(child, told);
  }
  return { code: (await child.status).code, told };
}

/** Does something the first time that a text is there. */
function onceTold(text: string, work: (child: Deno.ChildProcess) => void) {
  let done = false;
  return (child: Deno.ChildProcess, told: string) => {
    if (done || !told.includes(text)) return;
    done = true;
    work(child);
  };
}

/** Until the payment is in the ledger; the answer to it will not come. */
async function untilPaid(folder: string): Promise<void> {
  for await (const _ of Deno.watchFs(folder, { recursive: false })) {
    if (ledgerLines(folder).length > 0) return;
  }
}

function ledgerLines(folder: string): string[] {
  try {
    return Deno.readTextFileSync(`${folder}/ledger`).trim().split("\n").filter((line) => line);
  } catch {
    return [];
  }
}

Deno.test("Ctrl-C twice ends a run that still waits for an answer: exit 130, dead", async () => {
  await inAgentFolder(async (folder) => {
    makePayer(folder);
    const first = onceTold("→", (child) => child.kill("SIGINT"));
    const second = onceTold("Ctrl-C again", (child) => child.kill("SIGINT"));
    const { code, told } = await watched(folder, ["run", "payer", "pay", "-v"], (child, text) => {
      first(child, text);
      second(child, text);
    });
    assert.equal(code, 130, told);
    assert.match(told, /PID 1 ended by SIGINT/);
    const ps = JSON.parse((await rnix(folder, "ps", "-a", "--json")).stdout);
    assert.equal(ps.data.processes[0].state, "dead");
  });
});

Deno.test("a call that Ctrl-C cut off is told with the command that settles it, and that command does", async () => {
  await inAgentFolder(async (folder) => {
    makePayer(folder);
    const paid = untilPaid(folder);
    const started = onceTold("→", (child) => void paid.then(() => child.kill("SIGINT")));
    const { code, told } = await watched(folder, ["run", "payer", "pay", "-v"], started);
    assert.equal(code, 9, told);
    assert.match(told, /outcome unknown: t1\.\d+ mcp__ledger__pay \(write\)/);
    const ps = await rnix(folder, "ps");
    assert.match(ps.stdout, /PID 1 outcome unknown: t1\.\d+ mcp__ledger__pay/);
    const undecided = await watched(folder, ["resume", "1"], () => {});
    assert.equal(undecided.code, 5, undecided.told);
    const command = undecided.told.match(/to go on: rnix (resume .*:)DECISION/)?.[1];
    assert.ok(command !== undefined, undecided.told);
    const settled = await watched(folder, `${command}skip`.split(" "), () => {});
    assert.equal(settled.code, 0, settled.told);
    assert.equal(ledgerLines(folder).length, 1);
  });
});

/** The first process that `ps` lists, once it is suspended. */
async function untilSuspended(folder: string): Promise<{ reason: string }> {
  for (;;) {
    const [row] = JSON.parse((await rnix(folder, "ps", "--json")).stdout).data.processes;
    if (row.state === "suspended") return row;
  }
}

Deno.test("kill -9 of the client suspends its run, which resume takes up", async () => {
  await inAgentFolder(async (folder) => {
    const { code, events } = await interrupted(
      folder,
      ["run", "talker", "speak"],
      (child) => child.kill("SIGKILL"),
    );
    assert.equal(code, 137);
    assert.notEqual(events.at(-1)?.type, "run.report");
    assert.equal((await untilSuspended(folder)).reason, "detached");
    const again = await interrupted(folder, ["resume", "1"], (child) => child.kill("SIGINT"));
    assert.equal(again.code, 9);
    const [resumed] = again.events;
    assert.equal(resumed?.type, "run.resumed");
  });
});
