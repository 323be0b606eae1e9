/** What taking up a long run costs, process start and mounting aside: lease, judging, parsing, folding, and finding what has to be settled. */
import { agentProgram } from "../../src/agent/agent_program.ts";
import { systemClock } from "../../src/base/clock.ts";
import { disk } from "../../src/base/disk.ts";
import type { EntryBody } from "../../src/journal/entry.ts";
import { createJournal, openJournal } from "../../src/journal/mod.ts";
import { RunState } from "../../src/kernel/run_state.ts";

const LENGTHS = [100, 1_000, 10_000, 100_000];
const OPTIONS = { clock: systemClock, osPid: Deno.pid, instance: "bench" };
/** Entries between two syncs; a run has fewer, and this would take long. */
const BATCH = 500;
const TOOL = "mcp__files__write_file";
const parent = await Deno.makeTempDir({ prefix: "rnix-bench-" });
globalThis.addEventListener("unload", () => Deno.removeSync(parent, { recursive: true }));

/** Four entries of one step: request, reply, intent, result of about 1 KB. */
function step(turn: number): EntryBody[] {
  const call = `t${turn}.1`;
  const input = { path: `file-${turn}.txt`, content: "x".repeat(200) };
  return [
    {
      type: "model.request",
      turn,
      attempt: 1,
      provider: "openai-compatible",
      model: "m",
      request_sha256: "0".repeat(64),
      tokens_estimate: 1000,
    },
    {
      type: "model.reply",
      turn,
      attempt: 1,
      message: {
        role: "assistant",
        parts: [{ type: "tool-call", provider_id: `call_${turn}`, tool: TOOL, input }],
      },
      usage: { input_tokens: 1000, output_tokens: 50 },
      finish_reason: "tool-calls",
      duration_ms: 900,
    },
    {
      type: "call.intent",
      call,
      attempt: 1,
      tool: TOOL,
      device: "/mnt/mcp/files/tools/write_file",
      effect: "write",
      input_sha256: "0".repeat(64),
      idempotency_key: `run/${call}`,
    },
    {
      type: "call.result",
      call,
      attempt: 1,
      duration_ms: 5,
      outcome: "ok",
      content: [{ type: "text", text: "y".repeat(1_000) }],
    },
  ];
}

async function makeRun(entries: number): Promise<string> {
  const runId = `01900000-0000-7000-8000-${String(entries).padStart(12, "0")}`;
  const journal = await createJournal(disk, `${parent}/${runId}`, OPTIONS);
  journal.append({
    type: "run.started",
    run_id: runId,
    pid: 1,
    program: "agent",
    agent: "bench",
    spec: { sha256: "0".repeat(64), bytes: 2 },
    intent: "Go",
    cwd: "/",
    model: "m",
    budget: {},
    rnix_version: "0",
  });
  // The last step has no result: one outcome to settle.
  const bodies = Array.from({ length: entries / 4 }, (_, turn) => step(turn + 1)).flat();
  for (const [index, body] of bodies.slice(0, -1).entries()) {
    journal.append(body);
    // As in a run, where what leaves waits for what was written before it.
    if (index % BATCH === 0) await journal.barrier();
  }
  await journal.close();
  return `${parent}/${runId}`;
}

for (const entries of LENGTHS) {
  const folder = await makeRun(entries);
  const { size } = await Deno.stat(`${folder}/journal.jsonl`);
  const name = `${entries.toLocaleString("en")} entries (${(size / 1e6).toFixed(1)} MB)`;
  Deno.bench(name, { group: "resume", baseline: entries === 10_000 }, async () => {
    const opened = await openJournal(disk, folder, OPTIONS);
    const state = new RunState(agentProgram(""));
    await opened.replay({ entry: (entry) => state.fold(entry) });
    if (state.ledger.openCalls().length !== 1) throw new Error("One call should be open");
    if (state.decide().length !== 1) throw new Error("One action should be decided");
    await opened.journal.close();
  });
}
