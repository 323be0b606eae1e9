import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { RUN_FOLDER, RUN_ID, taker } from "../../tests/doubles/sample_entries.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import type { BlobRef, EntryBody } from "../journal/entry.ts";
import { createJournal } from "../journal/mod.ts";
import { sealJson } from "../journal/line.ts";
import { loadAgentFile } from "../manifest/load_agent.ts";
import { saveSpec } from "../manifest/spec.ts";
import { exportRun } from "./export_run.ts";

const JOURNAL = `${RUN_FOLDER}/journal.jsonl`;
const SECRET = "literal-secret-4711";
const MANIFEST = `name: demo
instructions: Do it
models: {provider: scripted, script: s.yaml}
mcp: {servers: {bank: {command: bank, env: {TOKEN: "${SECRET}"}}}}
`;
const TOTALS = { turns: 1, tokens: 30, tool_calls: 2, active_ms: 10 };
const LONG = `begin ${"long ".repeat(20_000)} end`;

function intentOf(call: string, tool: string): EntryBody {
  const input_sha256 = "0".repeat(64);
  const device = `/mnt/mcp/bank/tools/${tool}`;
  const idempotency_key = `${RUN_ID}/${call}`;
  return {
    type: "call.intent",
    call,
    attempt: 1,
    tool,
    device,
    effect: "write",
    input_sha256,
    idempotency_key,
  };
}

function resultOf(call: string, text: string): EntryBody {
  const content = [{ type: "text", text }];
  return { type: "call.result", call, attempt: 1, duration_ms: 3, outcome: "ok", content };
}

function callPart(tool: string, input: { [name: string]: string }) {
  return { type: "tool-call", provider_id: "p", tool, input };
}

const REPLY: EntryBody = {
  type: "model.reply",
  turn: 1,
  attempt: 1,
  message: {
    role: "assistant",
    parts: [
      { type: "text", text: "I pay\u001b[2J # now" },
      callPart("pay", { to: "x" }),
      callPart("read", { of: "hidden-argument" }),
      callPart("pay", { to: "```" }),
    ],
  },
  usage: { input_tokens: 10, output_tokens: 20 },
  finish_reason: "tool-calls",
  duration_ms: 7,
};

function bodiesOf(spec: BlobRef): EntryBody[] {
  const tool = { sha256: "1".repeat(64), effect: "write", risk: "medium" } as const;
  return [
    {
      type: "run.started",
      run_id: RUN_ID,
      pid: 3,
      program: "agent",
      agent: "demo",
      spec,
      intent: `pay\nwith ${SECRET}`,
      cwd: "/project",
      model: "m",
      budget: { turns: 9 },
      rnix_version: "0",
    },
    {
      type: "mount.ready",
      server: "bank",
      era: "modern",
      protocol_version: "x",
      tools: { pay: { name: "pay", ...tool }, read: { name: "read", sensitive: true, ...tool } },
    },
    {
      type: "model.request",
      turn: 1,
      attempt: 1,
      provider: "scripted",
      model: "m",
      request_sha256: "2".repeat(64),
      tokens_estimate: 5,
    },
    REPLY,
    intentOf("t1.1", "pay"),
    intentOf("t1.2", "read"),
    intentOf("t1.3", "pay"),
    resultOf("t1.1", LONG),
    resultOf("t1.2", "hidden-result"),
    {
      type: "call.result",
      call: "t1.3",
      attempt: 1,
      duration_ms: 1,
      outcome: "unknown",
      cause: "timeout",
    },
    {
      type: "run.suspended",
      reason: "unknown-outcome",
      reasons: ["unknown-outcome"],
      totals: TOTALS,
    },
  ];
}

/** A run with an open and a secret tool, one long result, and a call whose outcome isn't known. */
async function sampleDisk(): Promise<FaultyDisk> {
  const disk = new FaultyDisk();
  await disk.makeFolder("/agents", 0o700);
  for (const [name, text] of [["agent.yaml", MANIFEST], ["s.yaml", "turns: []"]] as const) {
    const file = await disk.open(`/agents/${name}`, { create: true });
    file.append(new TextEncoder().encode(text));
    file.close();
  }
  const agent = await loadAgentFile(disk, "/agents/agent.yaml");
  const journal = await createJournal(disk, RUN_FOLDER, taker(new VirtualClock()));
  const spec = await journal.putBlob(new TextEncoder().encode(JSON.stringify(saveSpec(agent))));
  const bodies = bodiesOf(spec);
  for (const body of bodies) journal.append(await journal.prepare(body));
  await journal.barrier();
  await journal.close();
  return disk;
}

async function exported(disk: FaultyDisk, format: "json" | "markdown"): Promise<string> {
  let text = "";
  for await (const piece of exportRun(disk, RUN_FOLDER, format)) text += piece;
  return text;
}

Deno.test("the JSON export is one document with facts and every entry, long contents in place", async () => {
  const document = JSON.parse(await exported(await sampleDisk(), "json"));
  assert.deepEqual(Object.keys(document), ["format", "version", "run", "entries", "damage"]);
  assert.deepEqual(
    [document.format, document.version, document.damage, document.entries.length],
    ["rnix-run", 1, [], 11],
  );
  const { run_id, agent, state, reason, turns, unknown_calls } = document.run;
  assert.deepEqual([run_id, agent, state, reason, turns], [
    RUN_ID,
    "demo",
    "suspended",
    "unknown-outcome",
    1,
  ]);
  assert.deepEqual(unknown_calls.map(({ call }: { call: string }) => call), ["t1.3"]);
  assert.equal(document.entries[7].content[0].text, LONG);
  assert.equal(document.entries[0].spec.content.manifest.name, "demo");
});

Deno.test("the transcript tells intent, words, calls, results shortened, unknown outcomes and the end", async () => {
  const text = await exported(await sampleDisk(), "markdown");
  for (
    const wanted of [
      "# demo\n",
      "> pay\n> with [redacted]\n",
      "## Turn 1",
      "> I pay\\u001b[2J # now",
      "### Call t1.1: `pay` (write)",
      '"to": "x"',
      "**t1.1** of `pay`: ok, 3 ms",
      "more characters",
      "````json\n",
      "**Call t1.3: outcome unknown** (timeout)",
      "_Suspended: unknown-outcome_",
      "- State: suspended, unknown-outcome",
      "Outcome unknown, not settled: t1.3 pay (timeout)",
    ]
  ) assert.ok(text.includes(wanted), wanted);
  assert.ok(text.length < 20_000);
});

for (const format of ["json", "markdown"] as const) {
  Deno.test(`nothing secret and nothing of a sensitive tool is in the ${format} export`, async () => {
    const text = await exported(await sampleDisk(), format);
    assert.doesNotMatch(text, /literal-secret|hidden-argument|hidden-result/);
    assert.match(text, /\[masked\]/);
    // deno-lint-ignore no-control-regex
    assert.doesNotMatch(text, /[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
  });
}

Deno.test("what is damaged or lost is told where it stood, and the rest is exported", async () => {
  const disk = await sampleDisk();
  const bytes = disk.peek(JOURNAL);
  let start = 0;
  for (let record = 1; record < 5; record += 1) start = bytes.indexOf(10, start) + 1;
  disk.flipBit(JOURNAL, start + 20);
  for (const name of await disk.list(`${RUN_FOLDER}/blobs`)) {
    const path = `${RUN_FOLDER}/blobs/${name}`;
    if ((await disk.stat(path))?.sizeBytes === LONG.length) await disk.remove(path);
  }
  const document = JSON.parse(await exported(disk, "json"));
  assert.equal(document.entries.length, 10);
  assert.deepEqual(document.damage, [
    { record: 5, offset: start, problem: "its checksum doesn't match" },
  ]);
  assert.match(JSON.stringify(document), /This content is lost: Blob/);
  assert.match(await exported(disk, "markdown"), /_Record 5 at byte \d+ can't be read/);
});

Deno.test("a newer format is refused by its number, a run that never began is NOT_FOUND", async () => {
  const disk = await sampleDisk();
  disk.damage(JOURNAL, (all) => new Uint8Array([...all, ...sealJson('{"v":7,"seq":12,"ts":1')]));
  await assert.rejects(exported(disk, "json"), { code: "INVALID", message: /version 7/ });
  const empty = new FaultyDisk();
  await (await createJournal(empty, RUN_FOLDER, taker())).close();
  await assert.rejects(exported(empty, "json"), { code: "NOT_FOUND", exitCode: 2 });
});

Deno.test("a piece is no larger than an entry, however long the run is", async () => {
  const disk = new FaultyDisk();
  const journal = await createJournal(disk, RUN_FOLDER, taker());
  for (let index = 0; index < 2_000; index += 1) journal.append(resultOf(`t${index}.1`, "y"));
  await journal.barrier();
  await journal.close();
  for (const format of ["json", "markdown"] as const) {
    let pieces = 0;
    for await (const piece of exportRun(disk, RUN_FOLDER, format)) {
      pieces += 1;
      assert.ok(piece.length < 1_000);
    }
    assert.ok(pieces > 2_000);
  }
});
