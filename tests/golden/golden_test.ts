/** Journals that earlier versions wrote are read, verified, planned, exported and taken up by this one; what isn't a journal of a known version is refused by name. */
import assert from "node:assert/strict";
import { agentProgram } from "../../src/agent/agent_program.ts";
import { dirname } from "../../src/base/posix_path.ts";
import { AgentSource } from "../../src/daemon/agent_source.ts";
import { exportRun } from "../../src/daemon/export_run.ts";
import { planOf } from "../../src/daemon/plan.ts";
import { Runs } from "../../src/daemon/runs.ts";
import { sealJson } from "../../src/journal/line.ts";
import { openJournal, planRepair, readRun, verifyRun } from "../../src/journal/mod.ts";
import { Pids } from "../../src/kernel/pids.ts";
import { RunState } from "../../src/kernel/run_state.ts";
import { TrustStore } from "../../src/manifest/trust.ts";
import { FaultyDisk } from "../doubles/faulty_disk.ts";
import { taker } from "../doubles/sample_entries.ts";
import { VirtualClock } from "../doubles/virtual_clock.ts";
import { makeRun } from "./make_golden.ts";

const GOLDEN = import.meta.dirname ?? "";
const RUNS_FOLDER = "/state/runs";
const JOURNAL = "journal.jsonl";

interface Golden {
  disk: FaultyDisk;
  runId: string;
  folder: string;
}

/** The golden run in a state folder. */
async function golden(name: string): Promise<Golden> {
  const [runId = ""] = [...Deno.readDirSync(`${GOLDEN}/${name}`)].map((entry) => entry.name);
  const disk = new FaultyDisk();
  const folder = `${RUNS_FOLDER}/${runId}`;
  await copy(disk, `${GOLDEN}/${name}/${runId}`, folder);
  return { disk, runId, folder };
}

async function madeAnew(name: string): Promise<Golden> {
  const { disk, runId } = await makeRun(name);
  return { disk: disk.kill(), runId, folder: `${RUNS_FOLDER}/${runId}` };
}

async function copy(disk: FaultyDisk, from: string, to: string): Promise<void> {
  await disk.makeFolder(to, 0o700);
  for (const { name, isDirectory } of Deno.readDirSync(from)) {
    if (isDirectory) await copy(disk, `${from}/${name}`, `${to}/${name}`);
    else await put(disk, `${to}/${name}`, Deno.readFileSync(`${from}/${name}`));
  }
}

async function put(disk: FaultyDisk, path: string, bytes: Uint8Array): Promise<void> {
  await disk.makeFolder(dirname(path), 0o700);
  const file = await disk.open(path, { create: true });
  file.append(bytes);
  file.close();
}

async function planFor({ disk, runId }: Golden) {
  const runs = new Runs(disk, new Pids(disk, new VirtualClock(), "/state"), "/state");
  const trust = new TrustStore(disk, "/state");
  const agents = new AgentSource({ storage: disk, config: "/config", uid: 0, trust });
  return await planOf({ storage: disk, runs, agents }, runId, {
    run: runId,
    client: { cwd: "/", env: { HOME: "/" }, interactive: false },
    unknown: [],
    stored: true,
    acceptCut: false,
    fork: false,
    yes: false,
    trust: false,
  });
}

async function exported({ disk, folder }: Golden, format: "json" | "markdown"): Promise<string> {
  let text = "";
  for await (const piece of exportRun(disk, folder, format)) text += piece;
  return text;
}

/** What each golden run is known to be. */
const EXPECTED: {
  name: string;
  types: { [type: string]: number };
  end: string;
  open: string[];
  plan: { next: string; exit: number; settle: string[] };
  transcript: RegExp;
}[] = [
  {
    name: "v1-completed",
    types: { "run.started": 1, "call.result": 2, "call.intent": 2, "run.exited": 1 },
    end: "exited",
    open: [],
    plan: { next: "refused", exit: 2, settle: [] },
    transcript: /> All is paid\./,
  },
  {
    name: "v1-undecided",
    types: { "run.started": 1, "call.intent": 1, "run.suspended": 1 },
    end: "suspended",
    open: ["t1.1"],
    plan: { next: "suspend (unknown-outcome)", exit: 5, settle: ["t1.1"] },
    transcript: /Outcome unknown, not settled: t1\.1 mcp__world__pay_slowly \(crash\)/,
  },
  {
    name: "v1-cut",
    types: { "run.resumed": 1, "journal.cut": 1, "call.settled": 1, "run.exited": 1 },
    end: "exited",
    open: [],
    plan: { next: "refused", exit: 2, settle: [] },
    transcript: /Up to 3 records from record 4 on were cut off/,
  },
];

function bothWays(expected: typeof EXPECTED[number]) {
  return Object.keys(WRITTEN).map((when) => ({ ...expected, when }));
}

const WRITTEN: { [when: string]: (name: string) => Promise<Golden> } = {
  "as it was written then": golden,
  "as it is written now": madeAnew,
};

for (const { name, when, types, end, open, plan, transcript } of EXPECTED.flatMap(bothWays)) {
  Deno.test(`${name}, ${when}, is read, verified, planned, exported and taken up`, async () => {
    const run = await WRITTEN[when]?.(name) ?? await golden(name);
    const { disk, folder, runId } = run;
    const findings = await verifyRun(disk, folder);
    assert.deepEqual([findings.ok, findings.problems], [true, []]);
    const counts: { [type: string]: number } = {};
    await readRun(disk, folder, ({ type }) => void (counts[type] = (counts[type] ?? 0) + 1));
    for (const [type, count] of Object.entries(types)) assert.equal(counts[type], count, type);
    const planned = await planFor(run);
    assert.deepEqual([planned.next, planned.exit_code], [plan.next, plan.exit]);
    assert.deepEqual(planned.settle.map(({ call }) => call), plan.settle);
    const document = JSON.parse(await exported(run, "json"));
    assert.deepEqual([document.run.run_id, document.damage], [runId, []]);
    assert.equal(document.entries.length, findings.entries);
    assert.match(await exported(run, "markdown"), transcript);
    const opened = await openJournal(disk, folder, taker());
    const state = new RunState(agentProgram(""));
    await opened.replay({ entry: (entry) => state.fold(entry) });
    assert.equal(state.ledger.state.end?.state, end);
    assert.deepEqual(state.ledger.openCalls().map(({ call }) => call), open);
    assert.deepEqual([opened.notices, opened.cut], [[], undefined]);
    await opened.journal.close();
  });
}

Deno.test("a journal of a newer format is refused by its number, whatever is asked of it", async () => {
  const run = await golden("v1-completed");
  const { disk, folder } = run;
  disk.damage(
    `${folder}/${JOURNAL}`,
    () => sealJson(`{"v":2,"seq":1,"ts":1,"type":"x","synced":0`),
  );
  const refused = { code: "INVALID", exitCode: 7, message: /format version 2 at record 1/ };
  await assert.rejects(openJournal(disk, folder, { ...taker(), acceptCut: true }), refused);
  await assert.rejects(readRun(disk, folder, () => {}), refused);
  await assert.rejects(planRepair(disk, folder), refused);
  await assert.rejects(exported(run, "json"), refused);
  const { ok, problems } = await verifyRun(disk, folder);
  assert.equal(ok, false);
  assert.equal(problems[0]?.kind, "newer");
});

const encoder = new TextEncoder();
const FOREIGN: { [name: string]: Uint8Array } = {
  "another program's log": encoder.encode('{"type":"user","text":"hi"}\n{"type":"assistant"}\n'),
  "a JSON document": encoder.encode('{\n  "version": 1,\n  "entries": []\n}\n'),
  "a picture": Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 10),
  "a database": new Uint8Array([...encoder.encode("SQLite format 3\0"), ...new Uint8Array(84), 10]),
  "a text": encoder.encode("Dear diary,\ntoday nothing was journaled.\n"),
};

for (const [what, bytes] of Object.entries(FOREIGN)) {
  Deno.test(`[A13] ${what} in the place of a journal is refused and left as it is`, async () => {
    const { disk, folder } = await golden("v1-completed");
    const path = `${folder}/${JOURNAL}`;
    disk.damage(path, () => bytes.slice());
    const refused = { code: "JOURNAL_DAMAGED", exitCode: 7 };
    await assert.rejects(openJournal(disk, folder, taker()), refused);
    await assert.rejects(planRepair(disk, folder), refused);
    assert.equal((await verifyRun(disk, folder)).ok, false);
    assert.deepEqual(disk.peek(path), bytes);
  });
}
