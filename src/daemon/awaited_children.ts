/**
 * Children that have ended and whose end somebody has still to read: its parent, which died before it took the result, or a fork of that parent. Removing such a child would have it made anew, and all that it did done twice.
 *
 * That an end was read counts once it is durable. Knows runs by their first entries; journals are read in full only of those that may wait.
 */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import type { EntryOf } from "../journal/entry.ts";
import { type LeaseTaker, readRun } from "../journal/mod.ts";
import { readDurably } from "../kernel/durable_read.ts";
import { Ledger } from "../kernel/ledger.ts";
import type { Runs } from "./runs.ts";

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

  /** The run that still has to read the end of this one, of those that are not in `gone`; one that can't be read counts as such. */
  async waiterFor(runId: string, gone: ReadonlySet<string>): Promise<string | undefined> {
    const parent = this.#parentOf(runId);
    if (parent === undefined) return undefined;
    for (const candidate of this.#withForks(parent)) {
      if (!gone.has(candidate) && await this.#waits(candidate, runId)) return candidate;
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

  async #waits(runId: string, child: string): Promise<boolean> {
    const folder = this.#runs.folderOf(runId);
    const ledger = new Ledger();
    let call: string | undefined;
    let readSeq = 0;
    let durableSeq = 0;
    try {
      await readRun(this.#storage, folder, (entry) => {
        ledger.fold(entry);
        durableSeq = Math.max(durableSeq, entry.synced);
        if (entry.type === "call.intent" && entry.child_run_id === child) call = entry.call;
        if ("call" in entry && entry.call === call) readSeq = entry.seq;
      });
      if (isOpen(ledger, child)) return true;
      if (readSeq <= durableSeq || this.#taker === undefined) return false;
      // It has read the end, but may not remember it when the machine stops now.
      return isOpen(await readDurably(this.#storage, folder, this.#taker), child);
    } catch (thrown) {
      return !(thrown instanceof SysError && thrown.code === "NOT_FOUND");
    }
  }
}

function isOpen(ledger: Ledger, child: string): boolean {
  return ledger.openChildren().some(({ childRunId }) => childRunId === child);
}
