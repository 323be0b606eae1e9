/** A server that is killed every three seconds while an agent works with it: what may be repeated is, what may not is told, and the run completes. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { processesNaming } from "../servers/marked_processes.ts";
import { removeFolder } from "../doubles/remove_folder.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const CALLS = 50;
const KILL_EVERY_MS = 3_000;
/** Far more than the run takes with all its pauses. */
const LIMIT_MS = 240_000;

const SCRIPT = `turns:
  - repeat: ${CALLS}
    calls: [{ tool: pay, input: { note: "n\${{ index }}", delay_ms: 80, after_ms: 80 } }]
  - text: All paid.
`;

function manifest(effect: string, ledger: string): string {
  const server = join(ROOT, "tests/servers/ledger_server.ts");
  return `name: payer
instructions: Pay.
models: { provider: scripted, script: script.yaml }
on_unknown: skip
mcp:
  servers:
    ledger:
      command: ${Deno.execPath()}
      args: [run, --quiet, -A, ${server}, ${ledger}]
      startup_timeout: 1m
      tools: { allow: [pay], effects: { pay: ${effect} } }
budget: { turns: 100 }
`;
}

interface Entry {
  type: string;
  call?: string;
  outcome?: string;
  how?: string;
}

interface Told {
  /** Keys of the payments that were made, in order. */
  paid: string[];
  entries: Entry[];
  kills: number;
}

/** Kills the server, which alone has the ledger in its command line; whether it was there. */
async function killServer(ledger: string): Promise<boolean> {
  const [pid] = await processesNaming(ledger);
  if (pid === undefined) return false;
  try {
    Deno.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
  return true;
}

function linesOf(file: string): string[] {
  try {
    return Deno.readTextFileSync(file).split("\n").filter((line) => line !== "");
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return [];
    throw thrown;
  }
}

async function runUnderKills(effect: string): Promise<Told> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-server-kills-" }));
  const ledger = join(folder, "ledger");
  Deno.writeTextFileSync(join(folder, "agent.yaml"), manifest(effect, ledger));
  Deno.writeTextFileSync(join(folder, "script.yaml"), SCRIPT);
  const rnix = (...args: string[]) =>
    new Deno.Command(join(ROOT, "scripts/rnix"), {
      args: ["--json", ...args],
      cwd: folder,
      env: { RNIX_HOME: join(folder, "home"), NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "null",
      signal: AbortSignal.timeout(LIMIT_MS),
    });
  try {
    let isOver = false;
    const run = rnix("run", join(folder, "agent.yaml"), "Pay").output();
    run.finally(() => isOver = true);
    let kills = 0;
    let linesBefore = 0;
    for (let nextMs = performance.now() + KILL_EVERY_MS; !isOver;) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      // The time runs from its first work on: one that is starting, or may not yet, isn't killed.
      if (linesOf(ledger).length <= linesBefore) nextMs = performance.now() + KILL_EVERY_MS;
      if (performance.now() < nextMs) continue;
      nextMs = performance.now() + KILL_EVERY_MS;
      if (await killServer(ledger)) kills += 1;
      linesBefore = linesOf(ledger).length;
    }
    const { code, stdout } = await run;
    assert.equal(code, 0, new TextDecoder().decode(stdout));
    const runs = join(folder, "home/state/runs");
    const [{ name = "" } = {}] = Deno.readDirSync(runs);
    const journal = Deno.readTextFileSync(join(runs, name, "journal.jsonl")).trimEnd();
    const paid = linesOf(ledger).map((line) => line.split("/").at(-1) ?? "");
    return { paid, entries: journal.split("\n").map((line) => JSON.parse(line)), kills };
  } finally {
    await rnix("daemon", "stop").output();
    await removeFolder(folder);
  }
}

const callsWith = (entries: Entry[], type: string, of: Partial<Entry>) =>
  new Set(
    entries.filter((entry) =>
      entry.type === type && Object.entries(of).every(([key, value]) =>
        Object.entries(entry).some(([name, said]) => name === key && said === value)
      )
    ).map((entry) => entry.call),
  );

Deno.test("[A3] of fifty idempotent calls on a server that is killed every three seconds, each is answered", async () => {
  const { paid, entries, kills } = await runUnderKills("idempotent");
  assert.ok(kills >= 2, `${kills} kills`);
  assert.equal(callsWith(entries, "call.result", { outcome: "ok" }).size, CALLS);
  assert.equal(new Set(paid).size, CALLS);
});

Deno.test("[A3] of fifty writes on it none is sent twice; what is unknown is told", async () => {
  const { paid, entries, kills } = await runUnderKills("write");
  assert.ok(kills >= 2, `${kills} kills`);
  assert.equal(new Set(paid).size, paid.length, `paid twice: ${paid}`);
  const done = callsWith(entries, "call.result", { outcome: "ok" });
  const skipped = callsWith(entries, "call.settled", { how: "skip" });
  assert.equal(done.size + skipped.size, CALLS, "no call was refused, all waited for the server");
  for (const call of paid) assert.ok(done.has(call) || skipped.has(call), call);
});
