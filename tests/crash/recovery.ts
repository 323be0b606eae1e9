/** Takes a run to its end as a user would, and checks every promise on the way and at the end. */
import type { Budget } from "../../src/base/budget.ts";
import { canonicalJson, type Json } from "../../src/base/json.ts";
import type { OpenCall, RunEnd } from "../../src/kernel/ledger.ts";
import { isRepeatable } from "../../src/policy/settle.ts";
import type { FaultyDisk } from "../doubles/faulty_disk.ts";
import { keysOf, shownKey } from "./durable_view.ts";
import {
  checkFamily,
  foldIfAny,
  type Member,
  membersOf,
  pathOfKey,
  rulesBelow,
} from "./families.ts";
import { findRunId, type Fold, foldRun, outcomeOf, type Stage } from "./harness.ts";
import { rulesFor } from "./rules.ts";
import { checkWorkflows } from "./workflows.ts";
import type { World } from "./world.ts";

const ROUNDS_MAX = 12;
const RAISED: Budget = { turns: 50, tool_calls: 100 };

/** The uncut run: what every other is compared with. */
export interface Uncut {
  runId: string;
  diskOperations: number;
  worldPoints: number;
  outcome: string;
  /** Outcome of each run below, by its path. */
  below: { [path: string]: string };
  effects: string[];
  /** What broke a promise though nothing was stopped. */
  broken: string[];
}

/** Starts a run and takes it to its end, without a crash. */
export async function playThrough(stage: Stage): Promise<string> {
  const live = await stage.process().spawn();
  await live.done;
  await goOn(stage, live.runId);
  return live.runId;
}

/** Resumes until the run, and whatever was started to go on without it, has exited or the journal has failed. Every first try is without decisions, and must ask where that is the rule. */
export async function goOn(
  stage: Stage,
  runId: string,
  options: { acceptCut?: boolean } = {},
): Promise<RunEnd | undefined> {
  const end = await goOnWith(stage, runId, options);
  if (end?.state !== "exited") return end;
  const members = ownOf(await membersOf(stage.disk, runId));
  stage.violations.push(...unfinishedBelow(members, stage));
  for (const member of members.slice(1)) {
    await stage.live.get(member.runId)?.live.done;
    if (member.fold.state.ledger.state.end?.state === "exited") continue;
    await goOnWith(stage, member.runId, {});
  }
  return end;
}

/** Without the children that a fork's past names: if their source goes on with them, that is not the fork's business. */
function ownOf(members: readonly Member[]): Member[] {
  const ids = new Set(members.map(({ runId }) => runId));
  return members.filter(({ fold }, index) =>
    index === 0 || ids.has(fold.state.ledger.identity.parentRunId ?? "")
  );
}

/** Runs that a run has told the result of, or left, though they hadn't ended. */
function unfinishedBelow([root, ...below]: readonly Member[], { scenario }: Stage): string[] {
  const { end } = root?.fold.state.ledger.state ?? {};
  if (end?.state !== "exited" || end.status !== "completed") return [];
  const isDetached = ({ fold }: Member) =>
    scenario.agents?.[fold.state.ledger.identity.agent]?.detach === true;
  const alone = below.filter(isDetached).map(({ path }) => path);
  return below.filter(({ path, fold }) =>
    fold.state.ledger.state.end?.state !== "exited" &&
    !alone.some((above) => path === above || path.startsWith(`${above}/`))
  ).map(({ path }) => `run ${path} had not ended when its root had`);
}

async function goOnWith(
  stage: Stage,
  runId: string,
  options: { acceptCut?: boolean } = {},
): Promise<RunEnd | undefined> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const { state } = await foldRun(stage.disk, runId);
    const { end } = state.ledger.state;
    const hasFailed = stage.scenario.fails && end?.state === "exited" && end.status === "failed";
    if (end?.state === "exited" && !hasFailed) return end;
    const facts = { end, open: state.ledger.openCalls(), round, ...options };
    const now = await resumeOnce(stage, runId, facts);
    if (now.state === "suspended" && now.reason === "journal") return now;
  }
  return undefined;
}

interface Round {
  end: RunEnd | undefined;
  open: OpenCall[];
  round: number;
  acceptCut?: boolean;
}

async function resumeOnce(stage: Stage, runId: string, facts: Round): Promise<RunEnd> {
  const { end, open, round, acceptCut = false } = facts;
  const { scenario, world, violations } = stage;
  const asked = await rulesBelow(stage, runId);
  const isAsked = scenario.onUnknown === "ask";
  const asks = isAsked && open.some(({ effect }) => !isRepeatable(effect));
  const silent = (asks || (isAsked && asked.length > 0)) && round % 2 === 0;
  const limited = end?.state === "suspended" && end.reason === "limit";
  const sent = world.sent.length;
  const live = await stage.process().resume(runId, silent ? [] : rulesFor(open, world, runId), {
    acceptCut,
    below: silent ? [] : asked,
    ...(limited ? { budgetChange: RAISED } : {}),
  });
  const outcome = await live.done;
  if (!silent || (outcome.end.state === "suspended" && outcome.end.reason === "journal")) {
    return outcome.end;
  }
  if (!isAsking(outcome.end)) {
    const calls = JSON.stringify([...open, ...asked]);
    violations.push(`unknown outcomes were not asked for: ${calls} ${JSON.stringify(outcome.end)}`);
  }
  if (!asks) return outcome.end;
  if (world.sent.length > sent) violations.push("a call left before unknown outcomes were settled");
  if (live.pid !== undefined) violations.push("a pid was given out though nothing went on");
  return outcome.end;
}

function isAsking(end: RunEnd): boolean {
  return end.state === "suspended" && end.reason === "unknown-outcome";
}

export async function runUncut(stage: Stage): Promise<Uncut> {
  const { clock, world, scenario } = stage;
  const runId = await clock.run(playThrough(stage));
  const fold = await foldRun(stage.disk, runId);
  const { end } = fold.state.ledger.state;
  if (end?.state !== "exited" || end.status !== "completed") {
    throw new Error(`The uncut run "${scenario.name}" ended ${JSON.stringify(end)}`);
  }
  const members = await membersOf(stage.disk, runId);
  const broken = [
    ...stage.violations,
    ...world.violations,
    ...checkEntries(fold),
    ...checkFamily(members),
    ...await checkWorkflows(members, stage),
  ];
  const { suspends, fails } = scenario;
  const told = stage.shown.map(({ event }) => event.type === "run.suspended" ? event.reason : "");
  if (suspends !== undefined && !told.includes(suspends)) {
    broken.push(`the run was not suspended for "${suspends}"`);
  }
  const ends = fold.entries.filter(({ type }) => type === "run.exited").length;
  if (ends !== (fails ? 2 : 1)) broken.push(`the run has ended ${ends} times`);
  if (scenario.operatorAtMs !== undefined && world.count(`${runId}/o1`) !== 1) {
    broken.push("the person's write was not done");
  }
  if (clock.pending > 0) broken.push(`${clock.pending} timers were left`);
  return {
    runId,
    diskOperations: stage.disk.operations.length,
    worldPoints: world.points,
    outcome: outcomeOf(fold),
    below: outcomesBelow(members),
    effects: effectsOf(world).map((key) => pathOfKey(key, members)).sort(),
    broken,
  };
}

function outcomesBelow(members: readonly Member[]): { [path: string]: string } {
  const sorted = members.slice(1).toSorted((a, b) => a.path < b.path ? -1 : 1);
  return Object.fromEntries(sorted.map(({ path, fold }) => [path, outcomeOf(fold)]));
}

/** Keys of what was done and must not be done twice; idempotent effects once each. */
function effectsOf(world: World): string[] {
  const once = world.effects.filter(({ effect }) => effect !== "idempotent");
  const idempotent = world.effects.filter(({ effect }) => effect === "idempotent");
  const keys = [...once.map(({ key }) => key), ...new Set(idempotent.map(({ key }) => key))];
  return keys.sort();
}

/** After a stop: takes the run on the stage's disk to its end. `gone`: runs below it that had ended and are removed. Returns what broke a promise; empty when all held. */
export async function recover(
  stage: Stage,
  uncut: Uncut,
  gone: readonly Member[] = [],
): Promise<string[]> {
  const { clock, world } = stage;
  const started = await findStarted(stage.disk);
  if (started === undefined) {
    if (stage.shown.length > 0) stage.violations.push("a run was shown that isn't on the disk");
    if (world.effects.length > 0) stage.violations.push("effects of a run that isn't on the disk");
    return stage.violations;
  }
  const { runId } = started;
  const found = [...await membersOf(stage.disk, runId), ...gone];
  stage.violations.push(
    ...found.flatMap((member) => checkShown(member, stage)),
    ...checkIntents(found, world),
  );
  await clock.run(goOn(stage, runId));
  const last = await foldRun(stage.disk, runId);
  const members = [...await membersOf(stage.disk, runId), ...gone];
  return [
    ...stage.violations,
    ...world.violations,
    ...checkOutcome(last, uncut),
    ...checkEntries(last),
    ...checkOnce(world),
    ...checkEffects(world, uncut, members),
    ...checkAccesses(last, stage),
    ...checkFamily(members),
    ...members.slice(1).flatMap(({ fold }) => checkEntries(fold)),
    ...checkBelow(members, uncut),
    ...await checkWorkflows(members, stage),
  ];
}

function checkBelow(members: readonly Member[], uncut: Uncut): string[] {
  const found = JSON.stringify(outcomesBelow(members));
  const wanted = JSON.stringify(uncut.below);
  return found === wanted ? [] : [`other runs below: ${found} instead of ${wanted}`];
}

/** The run on this disk; undefined where there is none that has begun. */
export async function findStarted(
  disk: FaultyDisk,
): Promise<{ runId: string; fold: Fold } | undefined> {
  const runId = await findRunId(disk);
  const fold = runId === undefined ? undefined : await foldIfAny(disk, runId);
  return runId === undefined || fold === undefined ? undefined : { runId, fold };
}

function checkShown({ runId, path, fold }: Member, { shown }: Stage): string[] {
  const durable = new Set(fold.entries.flatMap(keysOf));
  const isOwn = (shown: string | undefined) =>
    shown === runId || (shown === undefined && path === "");
  const keys = shown.filter((each) => isOwn(each.runId))
    .map(({ event }) => shownKey(event)).filter((key) => key !== undefined);
  return keys.filter((key) => !durable.has(key)).map((key) => `shown but not durable: ${key}`);
}

/** Every effect in the world has a durable intent. */
function checkIntents(members: readonly Member[], world: World): string[] {
  const intents = new Set(
    members.flatMap(({ runId, fold }) => intentsOf(fold).map(({ call }) => `${runId}/${call}`)),
  );
  return world.effects.filter(({ key }) => !intents.has(key))
    .map(({ key, tool }) => `effect without a durable intent: ${tool} ${key}`);
}

function intentsOf({ entries }: Fold): { call: string; attempt: number }[] {
  return entries.flatMap((entry) => {
    if (entry.type === "access.intent") return [{ call: entry.call, attempt: 1 }];
    return entry.type === "call.intent" ? [entry] : [];
  });
}

/** What a person did, of which a crash leaves all or nothing, or what nobody knows: then that was told. */
function checkAccesses({ entries, state }: Fold, { shown }: Stage): string[] {
  const open = state.ledger.openAccesses().map(({ call }) => `access without an end: ${call}`);
  const lost = entries.filter((entry) =>
    entry.type === "access.result" && entry.outcome === "unknown"
  );
  const told = shown.some(({ event }) => event.type === "notice" && /\(o1\)/.test(event.message));
  return lost.length > 0 && !told ? [...open, "a lost access wasn't told"] : open;
}

export function checkOutcome(fold: Fold, uncut: Uncut): string[] {
  const outcome = outcomeOf(fold);
  return outcome === uncut.outcome ? [] : [`another end: ${outcome} instead of ${uncut.outcome}`];
}

/** The end alone: where something is begun anew, the way there differs. */
export function checkResult(fold: Fold, uncut: Uncut): string[] {
  const [, end] = JSON.parse(uncut.outcome) as [string, unknown];
  const [, other] = JSON.parse(outcomeOf(fold)) as [string, unknown];
  const isSame = canonicalJson(other as Json) === canonicalJson(end as Json);
  return isSame ? [] : [`another end: ${JSON.stringify(other)} instead of ${JSON.stringify(end)}`];
}

/** No key has two intents, pids rise, and the seqs have no gap. */
export function checkEntries(fold: Fold): string[] {
  const violations: string[] = [];
  const seen = new Set<string>();
  for (const { call, attempt } of intentsOf(fold)) {
    const key = `${call}#${attempt}`;
    if (seen.has(key)) violations.push(`two intents for ${key}`);
    seen.add(key);
  }
  const { pids } = fold.state.ledger.state;
  if (pids.some((pid, index) => pid <= (pids[index - 1] ?? 0))) {
    violations.push(`pids don't rise: ${pids}`);
  }
  if (fold.entries.some(({ seq }, index) => seq !== index + 1)) violations.push("seqs have a gap");
  return violations;
}

/** Nothing that can't be repeated was done twice under one key. */
export function checkOnce(world: World): string[] {
  return world.effects.filter(({ key, effect }) => effect !== "idempotent" && world.count(key) > 1)
    .map(({ key, tool }) => `done twice: ${tool} ${key}`);
}

function checkEffects(world: World, uncut: Uncut, members: readonly Member[]): string[] {
  // A person's write that a crash came before is nobody's to make up for.
  const ofRun = (key: string) => !/\/o\d+$/.test(key);
  const done = new Set(effectsOf(world).map((key) => pathOfKey(key, members)).filter(ofRun));
  return JSON.stringify([...done].sort()) === JSON.stringify(uncut.effects.filter(ofRun))
    ? []
    : [`other effects: ${[...done]} instead of ${uncut.effects}`];
}
