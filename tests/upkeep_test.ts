/** config.yaml, repair, export and gc as a person meets them: the real program, a real daemon, a journal that is damaged by hand. */
import assert from "node:assert/strict";
import { TerminalStage } from "./system/terminal_stage.ts";

const JOURNAL = "journal.jsonl";

function configure(stage: TerminalStage, text: string): void {
  Deno.mkdirSync(`${stage.home}/config`, { recursive: true });
  Deno.writeTextFileSync(`${stage.home}/config/config.yaml`, text);
}

/** The folder of the only run. */
function runFolder(stage: TerminalStage): string {
  const runs = `${stage.home}/state/runs`;
  const [name] = [...Deno.readDirSync(runs)].map((entry) => entry.name);
  return `${runs}/${name}`;
}

/** Writes NULs over the middle of a record, from 1. */
function damage(folder: string, record: number): void {
  const bytes = Deno.readFileSync(`${folder}/${JOURNAL}`);
  let start = 0;
  for (let count = 1; count < record; count += 1) start = bytes.indexOf(10, start) + 1;
  bytes.fill(0, start + 20, start + 60);
  Deno.writeFileSync(`${folder}/${JOURNAL}`, bytes);
}

Deno.test("[A13] a run with damage in its middle is refused, repaired when told to, and goes on", async () => {
  await using stage = new TerminalStage();
  stage.agent(
    "payer",
    "turns:\n  - calls: [{ tool: pay, input: { note: x } }]\n  - text: All is paid.\n",
    [stage.ledgerServer("ledger")],
  );
  const first = await stage.rnix("run", "payer");
  assert.equal(first.code, 0, first.stderr);
  const folder = runFolder(stage);
  damage(folder, 4);
  const refused = await stage.rnix("resume", "1");
  assert.equal(refused.code, 7);
  assert.match(refused.stderr, /record 4 .*journal repair/s);
  const planned = await stage.rnix("journal", "repair", "1");
  assert.equal(planned.code, 1);
  assert.match(planned.stdout, /would keep 3 records/);
  assert.match(planned.stdout, /pay \(write\): its outcome is unknown then/);
  const exported = await stage.rnix("journal", "export", "1", "--format", "markdown");
  assert.match(exported.stdout, /Record 4 at byte \d+ can't be read/);
  assert.equal((await stage.rnix("journal", "repair", "1", "--yes")).code, 0);
  assert.equal((await stage.rnix("journal", "verify", "1")).code, 0);
  const fork = await stage.rnix("resume", "1", "--fork");
  assert.equal(fork.code, 2);
  assert.match(fork.stderr, /resume the run itself first/);
  const plan = await stage.rnix("resume", "1", "--plan");
  assert.match(plan.stdout, /settle: t1\.1 mcp__ledger__pay \(write, attempt 1\): cut/);
  const asked = await stage.rnix("resume", "1");
  assert.equal(asked.code, 5, asked.stderr);
  const settled = await stage.rnix("resume", "1", "--on-unknown", "skip");
  assert.equal(settled.code, 0, settled.stderr);
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name.replace(/\d+$/, "N"));
  assert.ok(names.includes("journal.damaged-N"), names.join());
});

Deno.test("a wrong config.yaml is exit 2 for what runs, and neither ends a daemon nor hides what reads", async () => {
  await using stage = new TerminalStage();
  stage.agent("sayer", "turns:\n  - text: Said.\n");
  configure(stage, "daemon: {idle_timout: 1m}\n");
  const wrong = await stage.rnix("run", "sayer");
  assert.equal(wrong.code, 2);
  assert.match(
    wrong.stderr,
    /config\.yaml:1:10: Unknown key "idle_timout".*did you mean `idle_timeout`/,
  );
  assert.equal((await stage.rnix("ps")).code, 0);
  assert.equal((await stage.rnix("gc")).code, 2);
  const before = await stage.data<{ instance: string }>("daemon", "status");
  configure(stage, "on_unknown: skip\nping: {interval: 5s, misses: 2}\n");
  const right = await stage.rnix("run", "sayer");
  assert.equal(right.code, 0, right.stderr);
  const after = await stage.data<{ instance: string }>("daemon", "status");
  assert.equal(after.instance, before.instance, "it is the same daemon");
});

Deno.test("a daemon leaves after the idle_timeout of config.yaml", async () => {
  await using stage = new TerminalStage();
  configure(stage, "daemon: {idle_timeout: 2s}\n");
  assert.equal((await stage.rnix("daemon", "start")).code, 0);
  await stage.until(async () => (await stage.rnix("daemon", "status")).code === 1 || undefined);
});

Deno.test("on_unknown of config.yaml holds for a manifest that doesn't say", async () => {
  for (const [config, code] of [["", 5], ["on_unknown: skip\n", 0]] as const) {
    await using stage = new TerminalStage();
    configure(stage, config);
    stage.agent(
      "dier",
      "turns:\n  - calls: [{ tool: die, input: { note: x } }]\n  - text: Over.\n",
      [stage.ledgerServer("ledger")],
    );
    const ended = await stage.rnix("run", "dier");
    assert.equal(ended.code, code, ended.stderr);
  }
});

Deno.test("gc removes what has ended, and its pid says so", async () => {
  await using stage = new TerminalStage();
  stage.agent("sayer", "turns:\n  - text: Said.\n");
  assert.equal((await stage.rnix("run", "sayer")).code, 0);
  const kept = await stage.data<{ removed: unknown[]; left: number }>("gc");
  assert.deepEqual([kept.removed.length, kept.left], [0, 1]);
  const gone = await stage.data<{ removed: { pid: number }[] }>("gc", "--older-than", "0s");
  assert.deepEqual(gone.removed.map(({ pid }) => pid), [1]);
  const lost = await stage.rnix("logs", "1");
  assert.equal(lost.code, 2);
  assert.match(lost.stderr, /is not there any more/);
  const next = await stage.rnix("run", "-d", "sayer");
  assert.equal(next.stdout, "2\n");
});
