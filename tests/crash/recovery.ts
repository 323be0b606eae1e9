/** After a stop: takes the run up again as a user would, to its end, and checks every promise on the way. */
import { isRepeatable } from "../../src/policy/settle.ts";
import type { SettleRule } from "../../src/kernel/settler.ts";
import type { OpenCall } from "../../src/kernel/ledger.ts";
import type { Entry } from "../../src/journal/entry.ts";
import {
  effectsOf,
  type FaultyDisk,
  findRunId,
  type Fold,
  foldRun,
  Incarnate,
  outcomeOf,
  type Shown,
  SysError,
  type Uncut,
  type VirtualClock,
  type World,
} from "./harness.ts";
import type { Scenario } from "./scenarios.ts";

const ROUNDS_MAX = 12;

export interface RecoveryFacts {
  scenario: Scenario;
  clock: VirtualClock;
  world: World;
  uncut: Uncut;
  /** What all processes before had shown. */
  shown: readonly Shown[];
  acceptCut?: boolean;
}

/** Takes the run on `disk` to its end. Returns what broke a promise; empty when all held. */
export async function recover(disk: FaultyDisk, facts: RecoveryFacts): Promise<string[]> {
  const { clock, world, uncut, scenario } = facts;
  const violations: string[] = [];
  const runId = await findRunId(disk);
  const first = runId === undefined ? undefined : await foldIfThere(disk, runId);
  if (runId === undefined || first === undefined || first.entries.length === 0) {
    if (facts.shown.length > 0) violations.push("a run was shown that isn't on the disk");
    if (world.effects.length > 0) violations.push("effects of a run that isn't on the disk");
    return violations;
  }
  violations.push(...checkShown(first, facts.shown), ...checkIntents(first, world, runId));
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const { state } = await foldRun(disk, runId);
    const { end } = state.ledger.state;
    if (end?.state === "exited") break;
    const open = state.ledger.openCalls();
    // With `ask` the first try is without rules: what can't be repeated must be asked for.
    const asks = scenario.onUnknown === "ask" && open.some(({ effect }) => !isRepeatable(effect));
    const rules = asks && round % 2 === 0 ? [] : rulesFor(open, world, runId);
    const process = new Incarnate(clock, disk, world, scenario);
    const live = await clock.run(
      process.resume(runId, rules, { acceptCut: facts.acceptCut ?? false }),
    );
    const outcome = await clock.run(live.done);
    if (asks && rules.length === 0 && !isAsking(outcome.end)) {
      violations.push(`unknown outcomes were not asked for: ${JSON.stringify(open)}`);
    }
  }
  violations.push(...await checkEnd(disk, runId, facts), ...world.violations);
  violations.push(...checkEffects(world, uncut, runId));
  return violations;
}

/** The fold; undefined where the run has no journal yet. */
async function foldIfThere(disk: FaultyDisk, runId: string): Promise<Fold | undefined> {
  try {
    return await foldRun(disk, runId);
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
  }
}

function isAsking(end: { state: string; reason?: string }): boolean {
  return end.state === "suspended" && end.reason === "unknown-outcome";
}

/** What a person who looks into the world would decide. */
function rulesFor(open: readonly OpenCall[], world: World, runId: string): SettleRule[] {
  return open.filter(({ effect }) => !isRepeatable(effect)).map(({ call, tool }) => {
    const done = world.effects.find(({ key }) => key === `${runId}/${call}`);
    if (done === undefined) return { call, decision: { how: "retry" } };
    if (/_dropped$|_slowly$/.test(tool)) return { call, decision: { how: "skip" } };
    return { call, decision: { how: "done", result: done.answer } };
  });
}

function checkShown(fold: Fold, shown: readonly Shown[]): string[] {
  const durable = new Set(fold.entries.flatMap(keysOf));
  const violations: string[] = [];
  for (const { event } of shown) {
    const key = shownKey(event);
    if (key !== undefined && !durable.has(key)) violations.push(`shown but not durable: ${key}`);
  }
  return violations;
}

function shownKey(event: Shown["event"]): string | undefined {
  if (event.type === "call.finished") return `result ${event.call}#${event.attempt}`;
  if (event.type === "call.unknown") return `result ${event.call}#${event.attempt}`;
  if (event.type === "call.settled") return `settled ${event.call}`;
  if (event.type === "model.finished") return `reply ${event.turn}`;
  if (event.type === "run.exited") return "exited";
  if (event.type === "run.started") return "started";
  return undefined;
}

function keysOf(entry: Entry): string[] {
  if (entry.type === "call.result") return [`result ${entry.call}#${entry.attempt}`];
  if (entry.type === "call.settled") {
    return [
      `settled ${entry.call}`,
      ...(entry.how === "answer" ? [`result ${entry.call}#${entry.attempt}`] : []),
    ];
  }
  if (entry.type === "model.reply") return [`reply ${entry.turn}`];
  if (entry.type === "run.exited") return ["exited"];
  if (entry.type === "run.started") return ["started"];
  return [];
}

/** Every effect in the world has a durable intent. */
function checkIntents(fold: Fold, world: World, runId: string): string[] {
  const intents = new Set(
    fold.entries.map((entry) => entry.type === "call.intent" ? `${runId}/${entry.call}` : ""),
  );
  return world.effects.filter(({ key }) => !intents.has(key))
    .map(({ key, tool }) => `effect without a durable intent: ${tool} ${key}`);
}

async function checkEnd(
  disk: FaultyDisk,
  runId: string,
  { uncut }: RecoveryFacts,
): Promise<string[]> {
  const violations: string[] = [];
  const outcome = await outcomeOf(disk, runId);
  if (outcome !== uncut.outcome) {
    violations.push(`another end: ${outcome} instead of ${uncut.outcome}`);
  }
  const seen = new Set<string>();
  for (const entry of (await foldRun(disk, runId)).entries) {
    if (entry.type !== "call.intent") continue;
    const key = `${entry.call}#${entry.attempt}`;
    if (seen.has(key)) violations.push(`two intents for ${key}`);
    seen.add(key);
  }
  return violations;
}

function checkEffects(world: World, uncut: Uncut, runId: string): string[] {
  const violations: string[] = [];
  for (const { key, tool, effect } of world.effects) {
    if (effect !== "idempotent" && world.count(key) > 1) {
      violations.push(`done twice: ${tool} ${key}`);
    }
  }
  const done = effectsOf(world).map((key) => key.replace(runId, ""));
  const wanted = uncut.effects.map((key) => key.replace(uncut.runId, ""));
  if (JSON.stringify([...new Set(done)]) !== JSON.stringify(wanted)) {
    violations.push(`other effects: ${done} instead of ${wanted}`);
  }
  return violations;
}
