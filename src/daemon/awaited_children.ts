/**
 * Children that have ended and that somebody still waits for. Their end has still to be read: by the parent, which died before it took the result, or by a fork of that parent. Or they ended without success, and the workflow that they belong to takes them up again when it is resumed. Removing such a child would have it made anew, and all that it did done twice.
 *
 * What a waiting run has read, or come to, counts once it is durable. Knows runs by their first entries; journals are read in full only of those that may wait.
 */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import type { EntryOf } from "../journal/entry.ts";
import { type LeaseTaker, readRun } from "../journal/mod.ts";
import { readDurably } from "../kernel/durable_read.ts";
import { Ledger } from "../kernel/ledger.ts";
import { WORKFLOW_PROGRAM } from "../workflow/program_name.ts";
import type { Runs } from "./runs.ts";

/** A run that waits for a child, and why. */
export interface Waiter {
  runId: string;
  /** It goes on with the child, whose end it knows; otherwise it has still to read that. */
  takesUp: boolean;
}

/** What keeps a child. */
type Need = "end" | "child";

export class AwaitedChildren {
  readonly #storage: Storage;
  readonly #runs: Runs;
  readonly #taker: LeaseTaker | undefined;
  readonly #starts = new Map<string, EntryOf<"run.started">>();

  /** Without a taker nothing is made durable: what is only in the page cache counts as read. */
  constructor(storage: Storage, runs: Runs, taker: LeaseTaker | undefined) {
    this.#storage = storage;
    this.#runs = runs;
    this.#taker = taker;
  }

  /** Takes a run that is there. */
  add(runId: string, start: EntryOf<"run.started">): void {
    this.#starts.set(runId, start);
  }

  /** Generations above a run: parents are to be removed before their children. */
  depthOf(runId: string): number {
    let depth = 0;
    // A chain of parents has no circle; the bound is against a journal that was tampered with.
    for (let above = this.#parentOf(runId); above !== undefined && depth < this.#starts.size;) {
      depth += 1;
      above = this.#parentOf(above);
    }
    return depth;
  }

  /** The run that still waits for this one, of those that are not in `gone`; one that can't be read counts as such. */
  async waiterFor(runId: string, gone: ReadonlySet<string>): Promise<Waiter | undefined> {
    const parent = this.#parentOf(runId);
    if (parent === undefined) return undefined;
    for (const candidate of this.#withForks(parent)) {
      if (gone.has(candidate)) continue;
      const need = await this.#needOf(candidate, runId);
      if (need !== undefined) return { runId: candidate, takesUp: need === "child" };
    }
    return undefined;
  }

  #parentOf(runId: string): string | undefined {
    return this.#starts.get(runId)?.parent_run_id;
  }

  #withForks(runId: string): string[] {
    const found = [runId];
    for (const source of found) {
      for (const [fork, { forked_from }] of this.#starts) {
        if (forked_from?.run_id === source && !found.includes(fork)) found.push(fork);
      }
    }
    return found;
  }

  async #needOf(runId: string, child: string): Promise<Need | undefined> {
    const folder = this.#runs.folderOf(runId);
    const ledger = new Ledger();
    let call: string | undefined;
    let lastSeq = 0;
    let readSeq = 0;
    let durableSeq = 0;
    try {
      await readRun(this.#storage, folder, (entry) => {
        ledger.fold(entry);
        lastSeq = entry.seq;
        durableSeq = Math.max(durableSeq, entry.synced);
        if (entry.type === "call.intent" && entry.child_run_id === child) call = entry.call;
        if ("call" in entry && entry.call === call) readSeq = entry.seq;
      });
      const need = needIn(ledger, child);
      if (need !== undefined || this.#taker === undefined) return need;
      // It needs the child no more, but may not remember that when the machine stops now.
      const neededSeq = mayGoOnWith(ledger, child) ? lastSeq : readSeq;
      if (neededSeq <= durableSeq) return undefined;
      return needIn(await readDurably(this.#storage, folder, this.#taker), child);
    } catch (thrown) {
      return thrown instanceof SysError && thrown.code === "NOT_FOUND" ? undefined : "end";
    }
  }
}

function needIn(ledger: Ledger, child: string): Need | undefined {
  if (ledger.openChildren().some(({ childRunId }) => childRunId === child)) return "end";
  const { end } = ledger.state;
  const isOver = end?.state === "exited" && end.status === "completed";
  return !isOver && mayGoOnWith(ledger, child) ? "child" : undefined;
}

/** Whether it would take the child up again if it were resumed. */
function mayGoOnWith(ledger: Ledger, child: string): boolean {
  return ledger.identity.program === WORKFLOW_PROGRAM &&
    Object.values(ledger.state.ended).some(({ runId }) => runId === child);
}
