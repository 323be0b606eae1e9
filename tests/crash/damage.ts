/** A damaged journal after a crash: a flipped bit in what was written last and before it, and a file that was cut short. */
import { SysError } from "../../src/base/errors.ts";
import { dirname } from "../../src/base/posix_path.ts";
import { repairRun } from "../../src/journal/mod.ts";
import { KEPT } from "../doubles/faulty_disk.ts";
import { foldRun, pointText, RUNS_FOLDER, type Stage } from "./harness.ts";
import { crashed, pointsOf } from "./crashes.ts";
import {
  checkEntries,
  checkOnce,
  checkOutcome,
  findStarted,
  goOn,
  type Uncut,
} from "./recovery.ts";
import type { Scenario } from "./scenarios.ts";
import type { Suite, Tally } from "./tally.ts";
import type { World } from "./world.ts";

const NEWLINE = 10;
const EXIT_JOURNAL = 7;
/** Of the world's points so many apart are tried, and of a damaged part's bytes. */
const POINT_STEP = 2;
const LAST_BATCH_STEP = 41;
const BEFORE_STEP = 263;

/** A line of a journal file. */
interface Line {
  from: number;
  /** After its newline. */
  to: number;
  type: string;
  seq: number;
  synced: number;
}

/** Scenarios in which a person decides what the world shows, so that their end can be compared. Of a child whose intent is cut away nobody knows any more, and a server that has changed its tools doesn't change back. */
function isDecided({ onUnknown, dull, turns, agents }: Scenario): boolean {
  const script = JSON.stringify(turns);
  return onUnknown === "ask" && dull === undefined && agents === undefined &&
    script.length < 4_000 && !/relisted|reconnected/.test(script);
}

/** Where calls and replies are under way: the stops of the world, with all that was written kept. */
function placesOf(scenario: Scenario, uncut: Uncut) {
  return pointsOf(scenario, uncut).filter(({ kind, at }) =>
    kind === "world" && at % POINT_STEP === 0
  );
}

interface Place {
  stage: Stage;
  runId: string;
  path: string;
  lines: Line[];
}

async function placeAt(
  scenario: Scenario,
  point: Parameters<typeof crashed>[1],
): Promise<Place | undefined> {
  const stage = await crashed(scenario, point, KEPT);
  const runId = (await findStarted(stage.disk))?.runId;
  if (runId === undefined) return undefined;
  const path = `${RUNS_FOLDER}/${runId}/journal.jsonl`;
  return { stage, runId, path, lines: linesOf(stage.disk.peek(path)) };
}

function linesOf(bytes: Uint8Array): Line[] {
  const lines: Line[] = [];
  for (let from = 0; from < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, from);
    const to = newline < 0 ? bytes.length : newline + 1;
    const { type, seq, synced } = JSON.parse(new TextDecoder().decode(bytes.subarray(from, to)));
    lines.push({ from, to, type, seq, synced });
    from = to;
  }
  return lines;
}

/** First line of which no other says that it was durable. */
function lastBatch(lines: readonly Line[]): Line[] {
  const synced = Math.max(0, ...lines.map((line) => line.synced));
  return lines.filter(({ seq }) => seq > synced);
}

async function resumeError(
  stage: Stage,
  runId: string,
  acceptCut = false,
): Promise<SysError | undefined> {
  try {
    const live = await stage.clock.run(stage.process().resume(runId, [], { acceptCut }));
    await stage.clock.run(live.done);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof SysError) return thrown;
    throw thrown;
  }
}

export const FLIP_LAST_BATCH: Suite = {
  name: "a flipped bit in the last batch",
  applies: isDecided,
  run: async (scenario, uncut, tally) => {
    for (const point of placesOf(scenario, uncut)) {
      const place = await placeAt(scenario, point);
      const [first] = lastBatch(place?.lines ?? []);
      if (place === undefined || first === undefined) continue;
      const end = place.lines.at(-1)?.to ?? 0;
      for (let offset = first.from; offset < end; offset += LAST_BATCH_STEP) {
        await tally.try(`${pointText(point)} byte ${offset}`, "kept", async () => {
          const fresh = await placeAt(scenario, point);
          return fresh === undefined ? [] : await flipAndGoOn(fresh, offset, uncut);
        });
      }
    }
  },
};

/** Refused unless the cut is accepted; then nothing is sent twice under one key, and no key is given to another call. */
async function flipAndGoOn(place: Place, offset: number, uncut: Uncut): Promise<string[]> {
  const { stage, runId, path, lines } = place;
  const { disk, world, clock } = stage;
  const damaged = lines.find(({ to }) => offset < to);
  const isEnd = offset === (lines.at(-1)?.to ?? 0) - 1;
  disk.flipBit(path, offset, offset % 8);
  const before = disk.peek(path);
  const sent = world.sent.length;
  const error = await resumeError(stage, runId);
  const violations: string[] = [];
  // Without its last newline a line is whole; nothing else may go on by itself.
  if (!isEnd) violations.push(...checkRefusal(error, damaged?.seq, disk.peek(path), before));
  if (world.sent.length > sent && !isEnd) violations.push("calls left though the run was refused");
  await clock.run(goOn(stage, runId, { acceptCut: true }));
  const fold = await foldRun(disk, runId);
  return [
    ...violations,
    ...stage.violations,
    ...world.violations,
    ...checkOutcome(fold, uncut),
    ...checkEntries(fold),
    ...checkOnce(world),
    ...checkKeys(world),
    ...isEnd ? [] : checkNotice(stage),
  ];
}

function checkRefusal(
  error: SysError | undefined,
  record: number | undefined,
  after: Uint8Array,
  before: Uint8Array,
): string[] {
  if (error === undefined) return ["a damaged journal was taken up"];
  const violations: string[] = [];
  if (error.code !== "JOURNAL_DAMAGED" || error.exitCode !== EXIT_JOURNAL) {
    violations.push(`refused with ${error.code}, exit code ${error.exitCode}: ${error.message}`);
  }
  if (record !== undefined && !error.message.includes(`record ${record} `)) {
    violations.push(`record ${record} isn't named: ${error.message}`);
  }
  if (after.length !== before.length || after.some((byte, index) => byte !== before[index])) {
    violations.push("a refused journal was changed");
  }
  return violations;
}

/** A key stands for one call for ever: its effects are all of one tool with one answer. */
function checkKeys(world: World): string[] {
  const answers = new Map<string, string>();
  return world.effects.flatMap(({ key, answer }) => {
    const known = answers.get(key) ?? answer;
    answers.set(key, known);
    return known === answer ? [] : [`key ${key} was used for another call`];
  });
}

function checkNotice(stage: Stage): string[] {
  const told = stage.shown.some(({ event }) =>
    event.type === "notice" && event.message.includes("whole reply")
  );
  return told ? [] : ["the user was not told that a reply may be lost"];
}

export const FLIP_BEFORE: Suite = {
  name: "a flipped bit before the last batch",
  applies: isDecided,
  run: async (scenario, uncut, tally) => {
    for (const point of placesOf(scenario, uncut).filter((_, index) => index % 4 === 3)) {
      const place = await placeAt(scenario, point);
      const end = lastBatch(place?.lines ?? [])[0]?.from ?? 0;
      for (let offset = 0; offset < end; offset += BEFORE_STEP) {
        await tally.try(`${pointText(point)} byte ${offset}`, "kept", async () => {
          const fresh = await placeAt(scenario, point);
          if (fresh === undefined) return [];
          const refused = await flipAndBeRefused(fresh, offset);
          return [...refused, ...await repairAndGoOn(fresh, offset, uncut)];
        });
      }
    }
  },
};

/** Refused with the record's number, whether a cut is accepted or not. */
async function flipAndBeRefused({ stage, runId, path, lines }: Place, offset: number) {
  const { disk, world } = stage;
  const record = lines.find(({ to }) => offset < to)?.seq;
  disk.flipBit(path, offset, offset % 8);
  const before = disk.peek(path);
  const sent = world.sent.length;
  const violations: string[] = [];
  for (const acceptCut of [false, true]) {
    const error = await resumeError(stage, runId, acceptCut);
    violations.push(...checkRefusal(error, record, disk.peek(path), before));
  }
  return world.sent.length > sent ? [...violations, "calls left"] : violations;
}

/** Only when told to, the run goes on from before the damage: nothing is sent twice under one key, and no key is given to another call. */
async function repairAndGoOn(place: Place, offset: number, uncut: Uncut): Promise<string[]> {
  const { stage, runId, path, lines } = place;
  const { disk, world, clock } = stage;
  const first = lines[0]?.to ?? 0;
  const old = disk.peek(path);
  const taker = { clock, osPid: 1, instance: "repair" };
  const repaired = repairRun(disk, dirname(path), taker);
  const outcome = await clock.run(repaired.catch((thrown) => thrown));
  if (offset < first) return outcome instanceof SysError ? [] : ["a run without a start was kept"];
  if (outcome instanceof Error) return [`not repaired: ${outcome.message}`];
  const original = disk.peek(outcome.original ?? path);
  await clock.run(goOn(stage, runId));
  const fold = await foldRun(disk, runId);
  return [
    ...stage.violations,
    ...world.violations,
    ...checkOutcome(fold, uncut),
    ...checkEntries(fold),
    ...checkOnce(world),
    ...checkKeys(world),
    ...original.length === old.length ? [] : ["the original was not kept"],
  ];
}

export const CUT_SHORT: Suite = {
  name: "a file cut short in its last two records",
  applies: isDecided,
  run: async (scenario, uncut, tally) => {
    for (const point of placesOf(scenario, uncut).filter((_, index) => index % 5 === 2)) {
      await cutEverywhere(scenario, uncut, { point, tally });
    }
  },
};

async function cutEverywhere(
  scenario: Scenario,
  uncut: Uncut,
  { point, tally }: { point: Parameters<typeof crashed>[1]; tally: Tally },
): Promise<void> {
  const place = await placeAt(scenario, point);
  const lines = place?.lines ?? [];
  const from = lines.at(-2)?.from ?? 0;
  const end = lines.at(-1)?.to ?? 0;
  for (let length = from; length < end; length += 1) {
    await tally.try(`${pointText(point)} cut at ${length}`, "kept", async () => {
      const fresh = await placeAt(scenario, point);
      return fresh === undefined ? [] : await cutAndGoOn(fresh, length, uncut);
    });
  }
}

/** Goes on from the earlier state, with a notice where a part of a record is left: a cut can't be told from a write that never returned. */
async function cutAndGoOn(place: Place, length: number, uncut: Uncut): Promise<string[]> {
  const { stage, runId, path, lines } = place;
  const { disk, world, clock } = stage;
  const whole = lines.filter(({ to }) => to <= length);
  const isBorder = length === (whole.at(-1)?.to ?? 0);
  // Without its newline the last record is whole all the same.
  const lacksNewline = lines.some(({ to }) => to === length + 1);
  if (lines.length < 3) return [];
  disk.damage(path, (bytes) => bytes.subarray(0, length));
  await clock.run(goOn(stage, runId));
  const fold = await foldRun(disk, runId);
  const told = stage.shown.some(({ event }) =>
    event.type === "notice" && /set aside|newline/.test(event.message)
  );
  const kept = whole.length + (lacksNewline ? 1 : 0);
  return [
    ...world.violations,
    ...checkOutcome(fold, uncut),
    ...checkEntries(fold),
    ...told === isBorder ? [`the notice is ${told ? "there" : "missing"}`] : [],
    ...fold.entries.length <= kept ? ["nothing was written after the cut"] : [],
  ];
}
