/** A disk that fails but doesn't crash: no effect leaves after it, the run ends for that reason, and goes on once the disk works again. */
import { SysError } from "../../src/base/errors.ts";
import { type Fault, LOST } from "../doubles/faulty_disk.ts";
import { Stage } from "./harness.ts";
import { findStarted, goOn, recover, type Uncut } from "./recovery.ts";
import type { Scenario } from "./scenarios.ts";
import type { Suite } from "./tally.ts";

interface Failure {
  name: string;
  /** Undefined: the disk is full from there on, which only what grows notices. */
  fault?: Fault;
  forGood?: boolean;
}

const FAILURES: readonly Failure[] = [
  { name: "full from there on" },
  { name: "one failure", fault: "broken" },
  { name: "read-only from there on", fault: "read-only", forGood: true },
];
const CAPACITY_BYTES = 1e9;
/** Codes that tell of a disk that can't be written. */
const DISK_CODES = ["RESOURCE_EXHAUSTED", "JOURNAL_DAMAGED", "PERMISSION", "DRIVER"];

export const FAILING_IO: Suite = {
  name: "a disk that fails",
  applies: ({ dull }) => dull === undefined,
  run: async (scenario, uncut, tally) => {
    for (let at = 1; at <= uncut.diskOperations; at += 1) {
      for (const failure of FAILURES) {
        const trial = () => failAt(scenario, uncut, { at, failure });
        await tally.try(`operation ${at}`, failure.name, trial);
      }
    }
  },
};

async function failAt(
  scenario: Scenario,
  uncut: Uncut,
  { at, failure }: { at: number; failure: Failure },
): Promise<string[]> {
  const { fault, forGood = false } = failure;
  const stage = new Stage(scenario, fault === undefined ? {} : { fail: { at, fault, forGood } });
  const { disk, world, clock } = stage;
  let failedMs: number | undefined;
  const violations: string[] = [];
  disk.capacityBytes = CAPACITY_BYTES;
  const endWatch = watchOperation(stage, at, (ms) => {
    failedMs = ms;
    if (fault === undefined) disk.capacityBytes -= disk.freeBytes;
  });
  const reason = await clock.run(reasonOf(stage));
  endWatch();
  disk.capacityBytes = Infinity;
  const name = disk.operations[at - 1]?.name;
  if (!isTold(reason)) {
    violations.push(`operation ${at} (${name}) failed, and the run ended ${reason}`);
  }
  for (const { key, effect, atMs } of world.sent) {
    // One failure of one run's file is none of another's, and what couldn't be made is made later.
    const isOver = forGood || scenario.agents === undefined;
    if (fault === undefined || failedMs === undefined || !isOver) continue;
    if (effect !== "read" && atMs > failedMs) {
      violations.push(`left ${atMs - failedMs} ms after the disk had failed: ${key}`);
    }
  }
  if (clock.pending > 0) violations.push(`${clock.pending} timers were left`);
  disk.plan = {};
  if (await isUnstarted(stage)) return violations;
  // Both a process that comes after, and a machine that does; a disk that can't even be cut comes back with the machine.
  if (forGood || at % 2 === 0) stage.crash(LOST);
  return [...violations, ...await recover(stage, uncut)];
}

/** Tells when the operation was tried. */
function watchOperation(stage: Stage, at: number, tell: (ms: number) => void): () => void {
  const { operations } = stage.disk;
  const push = operations.push.bind(operations);
  operations.push = (...added) => {
    if (added.some(({ number }) => number === at)) tell(stage.clock.monotonic());
    return push(...added);
  };
  return () => operations.push = push;
}

/** How the run ended: a suspension's reason, the code of an error that refused it, or what it completed with. */
async function reasonOf(stage: Stage): Promise<string> {
  try {
    const live = await stage.process().spawn();
    const { end } = await live.done;
    const isJournal = end.state === "suspended" && end.reason === "journal";
    const last = isJournal ? end : await goOn(stage, live.runId);
    return last?.state === "suspended" ? last.reason : last?.status ?? "never";
  } catch (thrown) {
    return thrown instanceof SysError ? thrown.code : String(thrown);
  } finally {
    await Promise.all([...stage.live.values()].map(({ live }) => live.done));
  }
}

function isTold(reason: string): boolean {
  return reason === "journal" || reason === "completed" || DISK_CODES.includes(reason);
}

/** A start that failed leaves nothing, or a folder in which nothing was done. */
async function isUnstarted(stage: Stage): Promise<boolean> {
  return await findStarted(stage.disk) === undefined && stage.world.sent.length === 0;
}
