/**
 * When the calls of a workflow's nodes began and ended, and which processes they were, from the run's journal.
 *
 * How long a node took counts on the clock that the run's own time counts on, its time at work: while it was suspended, or nobody was there, no time passes for its nodes either.
 */
import type { GraphNode } from "../base/graph.ts";
import type { Entry } from "../journal/entry.ts";
import { Ledger } from "../kernel/ledger.ts";
import { nodeOf } from "../workflow/workflow_state.ts";

/** The fold; it is given all entries, in their order. */
export class NodeTimes {
  readonly #ledger = new Ledger();
  readonly #nodes = new Map<string, { startedMs: number; fromMs: number; toMs: number }>();
  readonly #processes = new Map<string, { run_id: string; pid: number }>();

  take(entry: Entry): void {
    this.#ledger.fold(entry);
    if (
      entry.type !== "call.intent" && entry.type !== "call.result" &&
      entry.type !== "child.spawned"
    ) return;
    const { call, ts } = entry;
    const toMs = this.#ledger.totalsAt(ts).active_ms;
    const { startedMs, fromMs } = this.#nodes.get(nodeOf(call)) ?? { startedMs: ts, fromMs: toMs };
    this.#nodes.set(nodeOf(call), { startedMs, fromMs, toMs });
    if (entry.type !== "child.spawned") return;
    const { run_id, pid } = entry;
    this.#processes.set(call, { run_id, pid });
  }

  of(node: string): Partial<GraphNode> {
    const known = this.#nodes.get(node);
    if (known === undefined) return {};
    const processes = [...this.#processes].filter(([call]) => nodeOf(call) === node)
      .map(([call, process]) => ({ call, ...process }));
    return {
      started_ms: known.startedMs,
      duration_ms: known.toMs - known.fromMs,
      ...(processes.length === 0 ? {} : { processes }),
    };
  }
}
