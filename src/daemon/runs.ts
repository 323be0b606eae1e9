/** The runs on disk: which there are, which one a user means, what each one's journal tells. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { namesRun, shortRunId } from "../base/ids.ts";
import { dirname } from "../base/posix_path.ts";
import type { InFlight, ProcessState } from "../base/operations.ts";
import type { SuspendReason } from "../base/exit.ts";
import type { Storage } from "../base/storage.ts";
import { probeLease, readRun } from "../journal/mod.ts";
import { Ledger } from "../kernel/ledger.ts";
import { neverStarted } from "../kernel/never_started.ts";
import type { Pids } from "../kernel/pids.ts";
import { InFlightFold } from "./in_flight.ts";

const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A run as its journal has it, without taking it up. */
export interface RunView {
  runId: string;
  ledger: Ledger;
  state: ProcessState;
  reason?: SuspendReason;
  /** OS pid of the process that runs it now. */
  liveIn?: number;
  /** Of a run at work. */
  inFlight?: InFlight[];
  notices: string[];
}

export class Runs {
  readonly #storage: Storage;
  readonly #pids: Pids;
  readonly folder: string;

  constructor(storage: Storage, pids: Pids, stateFolder: string) {
    this.#storage = storage;
    this.#pids = pids;
    this.folder = `${stateFolder}/runs`;
  }

  folderOf(runId: string): string {
    return `${this.folder}/${runId}`;
  }

  /** Run ids, oldest first (UUIDv7 sorts by time). */
  async ids(): Promise<string[]> {
    try {
      return (await this.#storage.list(this.folder)).filter((name) => RUN_ID.test(name)).sort();
    } catch (thrown) {
      if (!(thrown instanceof SysError) || thrown.code !== "NOT_FOUND") throw thrown;
      await requireFolderAbove(this.#storage, this.folder);
      return [];
    }
  }

  /** The newest pid of each run. */
  newestPids(): Promise<Map<string, number>> {
    return this.#pids.newest();
  }

  /** The run a user means: a pid, a whole id, or a part of one. Throws NOT_FOUND or INVALID (exit 2). */
  async find(reference: string): Promise<string> {
    const runIds = await this.ids();
    if (/^\d+$/.test(reference)) {
      const runId = await this.#pids.runOf(Number(reference));
      if (runId !== undefined && runIds.includes(runId)) return runId;
      throw runId === undefined ? noSuchRun(reference) : removedRun(reference, runId);
    }
    const matches = runIds.filter((runId) => namesRun(reference, runId));
    if (matches.length === 1 && matches[0] !== undefined) return matches[0];
    if (matches.length === 0) throw await this.#missing(reference);
    throw new SysError("INVALID", `"${reference}" names ${matches.length} runs`, {
      hint: `One of: ${matches.map(shortRunId).join(", ")}`,
      exitCode: EXIT_USAGE,
    });
  }

  /** Whether there never was such a run, or it is gone. */
  async #missing(reference: string): Promise<SysError> {
    const known = [...(await this.newestPids()).keys()];
    const gone = known.filter((runId) => namesRun(reference, runId));
    const [runId] = gone;
    return gone.length === 1 && runId !== undefined
      ? removedRun(reference, runId)
      : noSuchRun(reference);
  }

  /** Folds a run's journal without its lease. Rejects with JOURNAL_DAMAGED for other damage than a torn tail. */
  async view(runId: string): Promise<RunView> {
    const ledger = new Ledger();
    const folder = this.folderOf(runId);
    const flight = new InFlightFold();
    const { notices, lastSeq } = await readRun(this.#storage, folder, (entry) => {
      ledger.fold(entry);
      flight.take(entry);
    });
    if (lastSeq === 0) throw neverStarted(runId, "Read");
    const holder = await probeLease(this.#storage, folder);
    const state = stateOf(ledger, holder?.osPid);
    const inFlight = state.state === "running" ? { inFlight: flight.list() } : {};
    return { runId, ledger, notices, ...state, ...inFlight };
  }
}

/** Throws INVALID (exit 2) when the folder is missing because something on the way to it is no folder: that is not to have no runs. */
async function requireFolderAbove(storage: Storage, path: string): Promise<void> {
  for (let above = path; above !== dirname(above); above = dirname(above)) {
    const facts = await storage.stat(above);
    if (facts === undefined) continue;
    if (facts.kind === "folder") return;
    if (facts.kind === "link" && await storage.list(above).then(() => true, () => false)) return;
    throw new SysError("INVALID", "The state of rnix should be a folder there, but isn't", {
      syscall: "List",
      device: above,
      exitCode: EXIT_USAGE,
      hint: "Move it away, or name another place with RNIX_HOME",
    });
  }
}

function stateOf(
  ledger: Ledger,
  liveIn: number | undefined,
): Pick<RunView, "state" | "reason" | "liveIn"> {
  const { end } = ledger.state;
  if (end?.state === "exited") return { state: "dead" };
  if (end?.state === "suspended" && liveIn === undefined) {
    return { state: "suspended", reason: end.reason };
  }
  if (liveIn !== undefined) return { state: "running", liveIn };
  return { state: "suspended", reason: "interrupted" };
}

/** A run whose pid was given out and whose folder is gone. */
function removedRun(reference: string, runId: string): SysError {
  const who = /^\d+$/.test(reference) ? ` (pid ${reference})` : "";
  return new SysError("NOT_FOUND", `Run ${shortRunId(runId)}${who} is not there any more`, {
    hint: "rnix gc removes runs that have ended; rnix ps -a lists those that are left",
    exitCode: EXIT_USAGE,
  });
}

function noSuchRun(reference: string): SysError {
  return new SysError("NOT_FOUND", `There is no run "${reference}"`, {
    hint: "rnix ps -a lists them",
    exitCode: EXIT_USAGE,
  });
}
