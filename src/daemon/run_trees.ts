/**
 * Which runs belong together: a run, and those that it started.
 *
 * A child belongs to its parent for as long as that is there, and to every fork of it, which shares it: it may have its end still to read, may take it up again when it is resumed, or only show it. Knows runs by their first entries alone.
 */
import type { EntryOf } from "../journal/entry.ts";

type Start = EntryOf<"run.started">;

export class RunTrees {
  readonly #parents = new Map<string, string>();
  readonly #forks = new Map<string, string[]>();
  readonly #present: Set<string>;
  readonly #held = new Set<string>();

  /** Of runs that are there, whether they can be read or not. */
  constructor(runIds: Iterable<string>) {
    this.#present = new Set(runIds);
  }

  /** Tells how a run began. */
  add(runId: string, { parent_run_id: parent, forked_from: source }: Start): void {
    if (parent !== undefined) this.#parents.set(runId, parent);
    if (source === undefined) return;
    const forks = this.#forks.get(source.run_id);
    if (forks === undefined) this.#forks.set(source.run_id, [runId]);
    else forks.push(runId);
  }

  /** The run is there no more. */
  remove(runId: string): void {
    this.#present.delete(runId);
  }

  /** The run goes on, so all above it stay: it may be taken up by them. To be told once all are added. */
  hold(runId: string): void {
    for (let above = this.#parents.get(runId); above !== undefined && !this.#held.has(above);) {
      this.#held.add(above);
      above = this.#parents.get(above);
    }
  }

  /** Whether a run below this one goes on. */
  isHeld(runId: string): boolean {
    return this.#held.has(runId);
  }

  /** Whether a run is there that this one belongs to. */
  isOwned(runId: string): boolean {
    const parent = this.#parents.get(runId);
    if (parent === undefined) return false;
    const owners = new Set([parent]);
    for (const owner of owners) {
      if (this.#present.has(owner)) return true;
      for (const fork of this.#forks.get(owner) ?? []) owners.add(fork);
    }
    return false;
  }

  /** Generations above a run: parents are to be removed before their children. */
  depthOf(runId: string): number {
    let depth = 0;
    // A chain of parents has no circle; the bound is against a journal that was tampered with.
    for (let above = this.#parents.get(runId); above !== undefined && depth < this.#parents.size;) {
      depth += 1;
      above = this.#parents.get(above);
    }
    return depth;
  }
}
