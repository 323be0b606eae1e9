/**
 * Real `kill -9` at random moments of several runs at once, single ones and trees: of the daemon, its guard, both, and a client.
 *
 * After each kill: nothing of the dead instance is left soon after (after the next start where daemon and guard were killed), and every run that stood still is resumed. At the end each ledger has every call once, or the journal says that its outcome is unknown.
 * As a script: `deno run -A tests/system/kill_rounds.ts [kills] [seed]`; a seed repeats the choices of a failure.
 */
import assert from "node:assert/strict";
import { type Row, Stage } from "./kill_stage.ts";

/** Between a kill and the next start. */
const DEAD_MS = 2_000;
const TARGETS = ["daemon", "guard", "both", "client"] as const;
type Target = (typeof TARGETS)[number];

export interface KillReport {
  kills: { [target in Target]: number };
  /** Runs that completed. */
  completed: number;
  /** Calls declared unknown and skipped. */
  unknown: number;
}

/** A seeded source of numbers in [0, 1). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface KillPlan {
  kills: number;
  seed: number;
  /** At once. */
  runs: number;
  tell?: (line: string) => void;
}

/** Kills, over as many stages as that takes, and lets every run complete. */
export async function killRounds({ kills, seed, runs, tell }: KillPlan): Promise<KillReport> {
  const random = randomNumbers(seed);
  const report: KillReport = {
    kills: { daemon: 0, guard: 0, both: 0, client: 0 },
    completed: 0,
    unknown: 0,
  };
  let left = kills;
  while (left > 0) {
    const stage = new Stage(runs);
    const budget = Math.min(left, 12);
    for (const slot of stage.slots) {
      slot.client = stage.rnix(
        ["run", stage.agent(slot.index), "Pay", String(slot.index)],
        slot.index,
      );
    }
    let done = 0;
    while (done < budget && !await allEnded(stage)) {
      await pause(200 + random() * 2_000);
      const target = TARGETS[Math.floor(random() * TARGETS.length)] ?? "daemon";
      if (await kill(stage, target, random)) {
        report.kills[target] += 1;
        done += 1;
      }
      await resumeStill(stage);
    }
    left -= done;
    await finish(stage, report);
    tell?.(JSON.stringify(report));
    await stage.remove();
  }
  return report;
}

/** Whether there was something to kill. */
async function kill(stage: Stage, target: Target, random: () => number): Promise<boolean> {
  if (target === "client") {
    const live = stage.slots.filter(({ client }) => client !== undefined);
    const { client } = live[Math.floor(random() * live.length)] ?? {};
    try {
      client?.kill("SIGKILL");
    } catch {
      return false; // it has ended by itself
    }
    return client !== undefined;
  }
  const daemon = stage.daemon();
  if (daemon === undefined) return false;
  if (target !== "daemon") await killGuard(daemon.instance);
  if (target === "guard") return true;
  try {
    Deno.kill(daemon.os_pid, "SIGKILL");
  } catch {
    return false; // killed before, and no new one is up yet
  }
  await pause(DEAD_MS);
  if (target === "both") {
    // The next start sweeps.
    await stage.rnix(["daemon", "start"]).status;
  }
  await stage.noneLiving(daemon.instance, `left behind after ${target} was killed`);
  return true;
}

async function killGuard(instance: string): Promise<void> {
  await new Deno.Command("pkill", { args: ["-KILL", "-f", `rnix-guard ${instance}`] }).output();
}

/** Resumes every run that stands still, each with a client of its own. */
async function resumeStill(stage: Stage): Promise<void> {
  for (const row of await stage.rows()) {
    if (row.state !== "suspended") continue;
    const slot = slotOf(stage, row);
    await slot.client?.status;
    slot.client = stage.rnix(["resume", row.run_id], slot.index);
  }
}

function slotOf(stage: Stage, row: Row) {
  const slot = stage.slots[Number(row.intent.split(" ").at(-1))];
  assert.ok(slot !== undefined, row.intent);
  return slot;
}

async function allEnded(stage: Stage): Promise<boolean> {
  const rows = await stage.rows();
  return rows.length === stage.slots.length && rows.every((row) => row.state === "dead");
}

/** Until every run has completed; a run that was killed before its start is started again. */
async function finish(stage: Stage, report: KillReport): Promise<void> {
  const endMs = performance.now() + 180_000;
  while (!await allEnded(stage)) {
    assert.ok(performance.now() < endMs, `never ends: ${JSON.stringify(await stage.rows())}`);
    await pause(300);
    await stage.rnix(["resume", "--all"]).status;
    const known = new Set((await stage.rows()).map(({ intent }) => intent));
    for (const slot of stage.slots) {
      const intent = `Pay ${slot.index}`;
      if (known.has(intent)) continue;
      await slot.client?.status;
      if ((await stage.rows()).some((row) => row.intent === intent)) continue;
      slot.client = stage.rnix(
        ["run", stage.agent(slot.index), "Pay", String(slot.index)],
        slot.index,
      );
    }
  }
  await Promise.all(stage.slots.map(({ client }) => client?.status));
  const children = await stage.rows("children");
  for (const row of await stage.rows()) {
    assert.equal(row.exit_code, 0, JSON.stringify(row));
    report.unknown += stage.check(row, children).unknown;
    report.completed += 1;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (import.meta.main) {
  const [kills = "200", seed = String(Date.now() % 100_000)] = Deno.args;
  console.log(`${kills} kills, seed ${seed}`);
  const report = await killRounds({
    kills: Number(kills),
    seed: Number(seed),
    runs: 8,
    tell: console.log,
  });
  console.log(JSON.stringify(report));
}
