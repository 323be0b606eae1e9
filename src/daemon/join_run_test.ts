import assert from "node:assert/strict";
import type { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { RUNS_FOLDER, Stage } from "../../tests/crash/harness.ts";
import type { RunEvent, RunHandle, RunReport } from "../base/operations.ts";
import { joinRun } from "./join_run.ts";
import { eventsOfRun } from "./past_events.ts";
import { RunHub } from "./run_hub.ts";

const SCENARIO = {
  name: "two steps",
  onUnknown: "skip" as const,
  turns: [
    [{ tool: "pay", input: { to: "a" } }, { tool: "get", input: { of: "b" } }],
    [{ tool: "pay_dropped", input: { to: "c" } }],
    "All is done.",
  ],
};

/** A finished run on a disk in memory, and what its follower saw. */
async function finishedRun() {
  const stage = new Stage(SCENARIO);
  const live = await stage.clock.run(stage.process().spawn());
  await stage.clock.run(live.done);
  const seen = stage.shown.map(({ event }) => event);
  return { disk: stage.disk, folder: `${RUNS_FOLDER}/${live.runId}`, seen };
}

async function past(disk: FaultyDisk, folder: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of eventsOfRun(disk, folder)) events.push(event);
  return events;
}

const label = (event: { type: string; call?: string; turn?: number; kind?: string }) =>
  [event.type, event.call ?? "", event.turn ?? ""].join(" ").trim();

Deno.test("the journal tells the events that a follower saw, streamed text as one piece", async () => {
  const { disk, folder, seen } = await finishedRun();
  const live = seen.map(label).filter((text) => text !== "mount.starting");
  const told = (await past(disk, folder)).map(label);
  assert.deepEqual(
    told.filter((text) => !text.startsWith("model.delta")).sort(),
    live.filter((text) => !text.startsWith("model.delta")).sort(),
  );
  assert.ok(told.includes("model.delta  3"), told.join("\n"));
});

Deno.test("who joins from the start hears past and present, nothing twice and nothing left out", async () => {
  const { disk, folder } = await finishedRun();
  const all = await past(disk, folder);
  const heard: RunEvent[] = [];
  const done = Promise.withResolvers<RunReport>();
  const handle: RunHandle = {
    pid: 1,
    runId: "r",
    suspend: () => {},
    kill: () => {},
    done: done.promise,
  };
  const hub = new RunHub({ onEvent: () => {} });
  const observer = { onEvent: (event: RunEvent) => heard.push(event) };
  const joining = joinRun(hub, handle, { from: "start", observer, storage: disk, folder });
  // While the past is read, its last event comes again, live, and one more.
  const later: RunEvent = { type: "notice", pid: 1, ts: 0, message: "still here" };
  for (const event of [...all.slice(-1), later]) hub.onEvent(event);
  const joined = await joining;
  assert.deepEqual(heard, [...all, later]);
  hub.onEvent({ ...later, message: "and now" });
  assert.equal(heard.length, all.length + 2);
  done.resolve({} as RunReport);
  await joined.done;
  assert.equal(hub.followers, 1);
});

Deno.test("who joins from now on hears only what comes", async () => {
  const { disk, folder } = await finishedRun();
  const heard: RunEvent[] = [];
  const handle = {
    pid: 1,
    runId: "r",
    suspend: () => {},
    kill: () => {},
    done: new Promise<RunReport>(() => {}),
  };
  const hub = new RunHub({ onEvent: () => {} });
  const observer = { onEvent: (event: RunEvent) => heard.push(event) };
  await joinRun(hub, handle, { from: "now", observer, storage: disk, folder });
  const event: RunEvent = { type: "notice", pid: 1, ts: 0, message: "first" };
  hub.onEvent(event);
  assert.deepEqual(heard, [event]);
});
