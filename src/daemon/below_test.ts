import assert from "node:assert/strict";
import { FaultyDisk, LOST } from "../../tests/doubles/faulty_disk.ts";
import { intent, taker } from "../../tests/doubles/sample_entries.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { newRunId, systemRandom } from "../base/ids.ts";
import type { EntryBody } from "../journal/entry.ts";
import { createJournal } from "../journal/mod.ts";
import { forkRun } from "../kernel/fork.ts";
import type { KernelDeps } from "../kernel/launch.ts";
import { Pids } from "../kernel/pids.ts";
import { KERNEL_LIMITS } from "../kernel/ports.ts";
import { pastOf } from "./below.ts";
import { Runs } from "./runs.ts";

const TOTALS = { turns: 1, tokens: 5, tool_calls: 0, active_ms: 10 };
const EXITED: EntryBody = {
  type: "run.exited",
  status: "completed",
  exit_code: 0,
  result: "done",
  totals: TOTALS,
};

function started(runId: string, parentRunId?: string): EntryBody {
  return {
    type: "run.started",
    run_id: runId,
    pid: 1,
    ...(parentRunId === undefined ? {} : { parent_run_id: parentRunId }),
    program: "agent",
    agent: "demo",
    spec: { sha256: "0".repeat(64), bytes: 2 },
    intent: "work",
    cwd: "/project",
    model: "m",
    budget: {},
    rnix_version: "0",
  };
}

/** Runs on a disk, and processes that die between a write and its sync. */
class Stage {
  readonly clock = new VirtualClock();
  disk = new FaultyDisk();

  get runs(): Runs {
    return new Runs(this.disk, new Pids(this.disk, this.clock, "/state"), "/state");
  }

  /** A run of which a part is durable, and the rest was only written when its process was killed. */
  async run(runId: string, durable: EntryBody[], written: EntryBody[]): Promise<void> {
    const journal = await createJournal(this.disk, this.runs.folderOf(runId), taker(this.clock));
    for (const body of durable) journal.append(body);
    await journal.barrier();
    this.disk.holdSyncs();
    for (const body of written) journal.append(body);
    await settle();
    this.disk = this.disk.kill();
  }

  get kernel(): KernelDeps {
    return {
      storage: this.disk,
      random: systemRandom,
      pids: new Pids(this.disk, this.clock, "/state"),
      runsFolder: "/state/runs",
      limits: KERNEL_LIMITS,
      version: "0",
      ...taker(this.clock),
    };
  }
}

Deno.test("a child's end that only the page cache had outlives the machine once its parent was told of it", async () => {
  const stage = new Stage();
  const runId = newRunId(stage.clock.now(), systemRandom);
  await stage.run(runId, [started(runId)], [EXITED]);
  assert.equal((await pastOf(stage.kernel, stage.runs, runId))?.end.state, "exited");
  stage.disk = stage.disk.crash(LOST);
  assert.equal((await stage.runs.view(runId)).state, "dead");
});

Deno.test("a fork shares with its source only children whose end can't be lost any more", async () => {
  const stage = new Stage();
  const parent = newRunId(stage.clock.now(), systemRandom);
  const child = newRunId(stage.clock.now(), systemRandom);
  await stage.run(parent, [started(parent), { ...intent("n.a"), child_run_id: child }], []);
  await stage.run(child, [started(child, parent)], [EXITED]);
  const request = { sourceRunId: parent, step: undefined, confirmed: true, hasIntent: false };
  const fork = await forkRun(stage.kernel, request);
  stage.disk = stage.disk.crash(LOST);
  const { ledger } = await stage.runs.view(fork);
  assert.deepEqual(ledger.openChildren().map(({ childRunId }) => childRunId), [child]);
  assert.equal((await stage.runs.view(child)).state, "dead");
});
