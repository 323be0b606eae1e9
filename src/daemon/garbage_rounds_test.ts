import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { taker } from "../../tests/doubles/sample_entries.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { newRunId, systemRandom } from "../base/ids.ts";
import { createJournal } from "../journal/mod.ts";
import type { ConfigFile } from "../manifest/config_file.ts";
import { FIRST_ROUND_MS, GarbageRounds, ROUND_MS } from "./garbage_rounds.ts";

const DAY_MS = 24 * 3_600_000;

/** Adds a run that ended now. */
async function addEnded(disk: FaultyDisk, clock: VirtualClock): Promise<void> {
  const runId = newRunId(clock.now(), systemRandom);
  const journal = await createJournal(disk, `/state/runs/${runId}`, taker(clock));
  journal.append({
    type: "run.started",
    run_id: runId,
    pid: 1,
    program: "agent",
    agent: "demo",
    spec: { sha256: "0".repeat(64), bytes: 2 },
    intent: "",
    cwd: "/",
    model: "m",
    budget: {},
    rnix_version: "0",
  });
  const totals = { turns: 0, tokens: 0, tool_calls: 0, active_ms: 0 };
  journal.append({ type: "run.exited", status: "completed", exit_code: 0, result: "", totals });
  await journal.barrier();
  await journal.close();
}

async function stage(settings: Pick<ConfigFile, "retentionMs" | "maxRuns">) {
  const disk = new FaultyDisk();
  const clock = new VirtualClock();
  await disk.makeFolder("/state/runs", 0o700);
  const deps = { storage: disk, clock, state: "/state", osPid: 1, instance: "i", settings };
  const left = async () => (await disk.list("/state/runs")).length;
  return { disk, clock, rounds: new GarbageRounds(deps), left };
}

Deno.test("the daemon removes old runs a little after its start, and once a day", async () => {
  const { disk, clock, rounds, left } = await stage({ retentionMs: 2 * DAY_MS });
  await addEnded(disk, clock);
  await clock.advance(2 * DAY_MS);
  await addEnded(disk, clock);
  rounds.start();
  await clock.advance(FIRST_ROUND_MS - 1);
  assert.equal(await left(), 2);
  await clock.advance(1);
  await clock.advance(100);
  assert.equal(await left(), 1);
  await clock.advance(2 * ROUND_MS + 100);
  assert.equal(await left(), 0);
  await rounds.close();
  assert.equal(clock.pending, 0);
});

Deno.test("without limits, and once closed, nothing is removed", async () => {
  const { disk, clock, rounds, left } = await stage({ retentionMs: Infinity, maxRuns: Infinity });
  await addEnded(disk, clock);
  rounds.start();
  await clock.advance(400 * DAY_MS);
  assert.equal(await left(), 1);
  await rounds.close();
  const closed = await stage({ maxRuns: 0 });
  await addEnded(closed.disk, closed.clock);
  closed.rounds.start();
  await closed.rounds.close();
  await closed.clock.advance(DAY_MS);
  assert.equal(await closed.left(), 1);
});
