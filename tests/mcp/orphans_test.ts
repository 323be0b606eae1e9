/** `kill -9` of what holds mounts: soon nothing of its servers is left, whatever they do to stay. */
import assert from "node:assert/strict";
import type { StdioLaunch } from "../../src/mcp/launch.ts";
import { inShell, scripted } from "../servers/launch_server.ts";
import {
  markedProcesses,
  noneMarked,
  noneNaming,
  processesNaming,
} from "../servers/marked_processes.ts";
import { TextLineStream } from "../doubles/text_lines.ts";

const VICTIM = new URL("../servers/mount_victim.ts", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

interface Victim {
  instance: string;
  child: Deno.ChildProcess;
}

async function startVictim(launches: StdioLaunch[]): Promise<Victim> {
  const instance = `test-${crypto.randomUUID()}`;
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-check",
      "--config",
      CONFIG,
      VICTIM,
      instance,
      JSON.stringify(launches),
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextLineStream()).getReader();
  assert.equal((await reader.read()).value, "up");
  await reader.cancel();
  return { instance, child };
}

const STUBBORN = scripted({ ignoreTerm: true, ignoreEof: true });
const HELD = "exec 3<&0; ";

const FORMS: { [name: string]: StdioLaunch } = {
  "a server that ignores SIGTERM and the end of stdin": STUBBORN,
  "sh -c 'server & wait'": inShell(STUBBORN, `${HELD}$CMD <&3 & wait`),
  "a wrapper that waits for its child, as npx does": inShell(
    inShell(STUBBORN, "$CMD; true"),
    "$CMD; true",
  ),
  "grandchildren in sessions of their own": inShell(
    STUBBORN,
    `setsid sh -c 'trap "" TERM HUP; sleep 600; sleep 600' >/dev/null 2>&1 & setsid setsid sleep 600 & exec $CMD`,
  ),
};

for (const [name, launch] of Object.entries(FORMS)) {
  Deno.test(`[C05] kill -9 leaves nothing of ${name}`, async () => {
    const { instance, child } = await startVictim([launch]);
    child.kill("SIGKILL");
    await child.status;
    await noneMarked(instance);
  });
}

Deno.test("[C05] kill -9 leaves nothing of a server that emptied its environment", async () => {
  const word = `bare-${crypto.randomUUID()}`;
  const bare = scripted({ ignoreTerm: true, ignoreEof: true, tools: [word] });
  const { instance, child } = await startVictim([inShell(bare, "exec env -i $CMD")]);
  // The holder has the word in its own command line, the server besides.
  const servers = (await processesNaming(word)).filter((pid) => pid !== child.pid);
  assert.equal(servers.length, 1);
  assert.deepEqual(await markedProcesses(instance), []);
  child.kill("SIGKILL");
  await child.status;
  await noneNaming(word);
});

Deno.test("[C01] [C07] kill -9 with all of them mounted at once: 0 left soon after", async () => {
  const { instance, child } = await startVictim(
    Object.values(FORMS).map((launch, index) => ({ ...launch, server: `s${index}` })),
  );
  assert.ok((await markedProcesses(instance)).length >= 7);
  child.kill("SIGKILL");
  await child.status;
  await noneMarked(instance);
});

Deno.test("[C01] SIGTERM to a holder that doesn't catch it leaves nothing either", async () => {
  const { instance, child } = await startVictim([STUBBORN]);
  child.kill("SIGTERM");
  await child.status;
  await noneMarked(instance);
});

Deno.test("[C07] a kill in the middle of starting servers leaves nothing", async () => {
  const instance = `test-${crypto.randomUUID()}`;
  const slow = scripted({ start: { delayMs: 60_000 }, ignoreTerm: true, ignoreEof: true });
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--config", CONFIG, VICTIM, instance, JSON.stringify([slow])],
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  while ((await markedProcesses(instance)).length === 0);
  child.kill("SIGKILL");
  await child.status;
  await noneMarked(instance);
});
