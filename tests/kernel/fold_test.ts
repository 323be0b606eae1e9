import assert from "node:assert/strict";
import { agentProgram } from "../../src/agent/agent_program.ts";
import type { Entry } from "../../src/journal/entry.ts";
import { openJournal } from "../../src/journal/mod.ts";
import { RunState } from "../../src/kernel/run_state.ts";
import { taker } from "../doubles/sample_entries.ts";
import { KernelStage, RUNS_FOLDER, ServerDouble } from "./kernel_stage.ts";
import { lost, ok, taking } from "./server_double.ts";

const DONE = "Done.";

/** A run with a bit of everything: loss, skips, repeats, limits, a crash, withdrawn tools, a new intent. */
async function eventful(): Promise<{ stage: KernelStage; runId: string }> {
  const server = new ServerDouble({
    tools: {
      pay: { does: ({ times }) => times === 1 ? lost() : ok("paid") },
      get: { effect: "read", does: ({ times }) => times < 3 ? lost("timeout") : ok("got") },
      slow: { does: taking(1_000) },
    },
  });
  const stage = new KernelStage({
    servers: [server],
    onUnknown: "skip",
    budget: { turns: 2 },
    replies: [
      [{ tool: "world__pay", id: "" }, { tool: "world__get" }, { tool: "none" }],
      [{ tool: "world__pay", id: "a" }, { tool: "world__pay", id: "a" }],
      [{ tool: "world__slow" }],
      DONE,
      "Again.",
    ],
  });
  const { runId } = await stage.run();
  const live = await stage.resume(runId, { budgetChange: { turns: 9 } });
  await stage.clock.advance(100);
  stage.kill();
  server.tools = { pay: {}, slow: {} };
  await stage.resumeToEnd(live.runId);
  await stage.resumeToEnd(runId, { intent: "Once more" });
  return { stage, runId };
}

function stateOf(entries: readonly Entry[]) {
  const state = new RunState(agentProgram("system"));
  for (const entry of entries) state.fold(entry);
  return state;
}

Deno.test("a state that was saved and loaded at any entry folds on to the same state", async () => {
  const { stage, runId } = await eventful();
  const entries = await stage.entries(runId);
  assert.ok(entries.length > 30);
  const whole = stateOf(entries);
  for (let cut = 1; cut <= entries.length; cut += 1) {
    const saved = stateOf(entries.slice(0, cut)).save();
    const loaded = new RunState(agentProgram("system"));
    loaded.load(JSON.parse(JSON.stringify(saved)));
    assert.equal(loaded.fingerprint(), stateOf(entries.slice(0, cut)).fingerprint(), `at ${cut}`);
    for (const entry of entries.slice(cut)) loaded.fold(entry);
    assert.equal(loaded.fingerprint(), whole.fingerprint(), `from ${cut}`);
    assert.deepEqual(loaded.decide(), whole.decide());
  }
});

Deno.test("what a process knows is what its journal folds to", async () => {
  const { stage, runId } = await eventful();
  const { ledger } = await stage.resumeToEnd(runId, { intent: "?" }).catch(() => ({
    ledger: undefined,
  }));
  const { ledger: folded } = await stage.fold(runId);
  if (ledger !== undefined) assert.deepEqual(ledger.save(), folded.save());
});

Deno.test("folding keeps nothing of the entries it was given, and gives the same twice", async () => {
  const { stage, runId } = await eventful();
  const entries = await stage.entries(runId);
  const copy: Entry[] = structuredClone(entries);
  const first = stateOf(entries).fingerprint();
  assert.deepEqual(entries, copy, "folding changes no entry");
  assert.equal(stateOf(copy).fingerprint(), first);
});

Deno.test("the program's fold and decisions know no time: other timestamps give the same", async () => {
  const { stage, runId } = await eventful();
  const entries = await stage.entries(runId);
  const program = agentProgram("system");
  const foldAt = (shiftMs: number) => {
    let state = program.initial();
    return entries.map((entry) => {
      state = program.reduce(state, { ...entry, ts: entry.ts + shiftMs * entry.seq });
      return JSON.stringify([program.save(state), program.decide(state)]);
    });
  };
  assert.deepEqual(foldAt(0), foldAt(86_400_000));
});

Deno.test("decide gives the same actions when it is asked again, and changes nothing", async () => {
  const { stage, runId } = await eventful();
  const state = new RunState(agentProgram("system"));
  for (const entry of await stage.entries(runId)) {
    state.fold(entry);
    const before = state.fingerprint();
    assert.deepEqual(state.decide(), state.decide());
    assert.equal(state.fingerprint(), before);
  }
});

Deno.test("a long run is resumed from its checkpoint to the state that its whole journal gives", async () => {
  const server = new ServerDouble({
    tools: { report: { does: () => ok("x".repeat(60_000)) }, slow: { does: taking(1_000) } },
  });
  const stage = new KernelStage({
    servers: [server],
    replies: [
      ...Array.from({ length: 20 }, () => [{ tool: "world__report" }]),
      [{ tool: "world__slow" }],
      DONE,
    ],
  });
  const live = await stage.start();
  await stage.clock.advance(500);
  stage.kill();
  const whole = await stage.fold(live.runId);
  const opened = await openJournal(stage.disk, `${RUNS_FOLDER}/${live.runId}`, taker(stage.clock));
  const state = new RunState(agentProgram("system"));
  let from = 0;
  let folded = 0;
  await opened.replay({
    checkpoint: (checkpoint) => {
      from = checkpoint.seq;
      state.load(checkpoint.state);
    },
    entry: (entry) => {
      folded += 1;
      state.fold(entry);
    },
  }, { versions: state.versions });
  await opened.journal.close();
  assert.ok(from > 50 && folded < 30, `${folded} entries were folded after entry ${from}`);
  assert.equal(state.fingerprint(), whole.fingerprint());
  const { end } = await stage.resumeToEnd(live.runId, { rules: [{ decision: { how: "retry" } }] });
  assert.equal(end.state === "exited" && end.result, DONE);
});
