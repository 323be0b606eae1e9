import assert from "node:assert/strict";
import { TextLineStream } from "./doubles/text_lines.ts";

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
    Deno.removeSync(folder, { recursive: true });
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
    ["SIGTERM", "shutdown"],
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

Deno.test("kill -9 leaves an interrupted run that ps shows and resume takes up", async () => {
  await inAgentFolder(async (folder) => {
    const { code, events } = await interrupted(
      folder,
      ["run", "talker", "speak"],
      (child) => child.kill("SIGKILL"),
    );
    assert.equal(code, 137);
    assert.notEqual(events.at(-1)?.type, "run.report");
    const ps = JSON.parse((await rnix(folder, "ps", "--json")).stdout);
    assert.equal(ps.data.processes[0].state, "suspended");
    assert.equal(ps.data.processes[0].reason, "interrupted");
    const again = await interrupted(folder, ["resume", "1"], (child) => child.kill("SIGINT"));
    assert.equal(again.code, 9);
    const [resumed] = again.events;
    assert.equal(resumed?.type, "run.resumed");
  });
});
