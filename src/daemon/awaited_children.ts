/**
 * Children that have ended and that somebody still waits for. Their end has still to be read: by the parent, which died before it took the result, or by a fork of that parent. Or they ended without success, and the workflow that they belong to takes them up again when it is resumed. Removing such a child would have it made anew, and all that it did done twice.
 *
 * What a waiting run has read, or come to, counts once it is durable. Knows runs by their first entries; journals are read in full only of those that may wait.
 */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import type { Entry, EntryOf } from "../journal/entry.ts";
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

/** Runs whose past is kept: children of one run come one after another. */
const PASTS_MAX = 16;

/** What keeps a child. */
type Need = "end" | "child";

export class AwaitedChildren {
  readonly #storage: Storage;
  readonly #runs: Runs;
  readonly #taker: LeaseTaker | undefined;
  readonly #starts = new Map<string, EntryOf<"run.started">>();
  readonly #pasts = new Map<string, Promise<Past>>();

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
    try {
      const past = await this.#pastOf(runId);
      const need = needIn(past.ledger, child);
      if (need !== undefined || this.#taker === undefined) return need;
      // It needs the child no more, but may not remember that when the machine stops now.
      if (past.neededSeq(child) <= past.durableSeq) return undefined;
      past.durable ??= readDurably(this.#storage, this.#runs.folderOf(runId), this.#taker);
      return needIn(await past.durable, child);
    } catch (thrown) {
      return thrown instanceof SysError && thrown.code === "NOT_FOUND" ? undefined : "end";
    }
  }

  /** Read once for all its children: a child that a run needs no more it never needs again. */
  #pastOf(runId: string): Promise<Past> {
    const known = this.#pasts.get(runId);
    if (known !== undefined) return known;
    const [oldest] = this.#pasts.keys();
    if (oldest !== undefined && this.#pasts.size >= PASTS_MAX) this.#pasts.delete(oldest);
    const past = readPast(this.#storage, this.#runs.folderOf(runId));
    this.#pasts.set(runId, past);
    return past;
  }
}

/** What a run that may wait has come to. */
class Past {
  readonly ledger = new Ledger();
  /** All up to it is durable. */
  durableSeq = 0;
  /** The same once all of it is durable. */
  durable: Promise<Ledger> | undefined;
  #lastSeq = 0;
  /** Last entry of each call that has a child. */
  readonly #callSeqs = new Map<string, number>();
  readonly #calls = new Map<string, string>();

  fold(entry: Entry): void {
    this.ledger.fold(entry);
    this.#lastSeq = entry.seq;
    this.durableSeq = Math.max(this.durableSeq, entry.synced);
    if (entry.type === "call.intent" && entry.child_run_id !== undefined) {
      this.#calls.set(entry.child_run_id, entry.call);
      this.#callSeqs.set(entry.call, entry.seq);
    }
    if ("call" in entry && this.#callSeqs.has(entry.call)) {
      this.#callSeqs.set(entry.call, entry.seq);
    }
  }

  /** The last entry that makes the child one that isn't needed. */
  neededSeq(child: string): number {
    if (mayGoOnWith(this.ledger, child)) return this.#lastSeq;
    const call = this.#calls.get(child);
    return call === undefined ? 0 : this.#callSeqs.get(call) ?? 0;
  }
}

async function readPast(storage: Storage, folder: string): Promise<Past> {
  const past = new Past();
  await readRun(storage, folder, (entry) => past.fold(entry));
  return past;
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
