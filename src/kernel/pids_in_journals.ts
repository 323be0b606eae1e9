/** Pids as the journals of all runs have them: read where the list of pids is damaged or gone. */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import { readEnds, visitReadable } from "../journal/mod.ts";
import type { PidLine } from "./pid_lines.ts";

/** Run ids sort by time; the newest run of all may just be in the making. */
const NEWEST = 4;
const NO_ENDS = { first: undefined };

/** Every pid of every run whose journal names it, damaged records stepped over. Reads only. */
export async function pidsInJournals(storage: Storage, runsFolder: string): Promise<PidLine[]> {
  const found: PidLine[] = [];
  for (const run of await namesIn(storage, runsFolder)) {
    await visitReadable(storage, `${runsFolder}/${run}`, (entry) => {
      if (entry.type !== "run.started" && entry.type !== "run.resumed") return;
      found.push({ pid: entry.pid, run });
    }).catch(ignoreMissing);
  }
  return found;
}

/** Highest pid that one of the few newest runs began with; 0 where none can be read. Cheap: reads the ends of their journals alone. */
export async function firstPidOfNewest(storage: Storage, runsFolder: string): Promise<number> {
  let highest = 0;
  for (const run of (await namesIn(storage, runsFolder)).slice(-NEWEST)) {
    const { first } = await readEnds(storage, `${runsFolder}/${run}`).catch(() => NO_ENDS);
    if (first?.type === "run.started") highest = Math.max(highest, first.pid);
  }
  return highest;
}

async function namesIn(storage: Storage, folder: string): Promise<string[]> {
  try {
    return await storage.list(folder);
  } catch (thrown) {
    ignoreMissing(thrown);
    return [];
  }
}

function ignoreMissing(thrown: unknown): void {
  if (!(thrown instanceof SysError) || thrown.code !== "NOT_FOUND") throw thrown;
}
