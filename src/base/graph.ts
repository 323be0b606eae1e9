/** A workflow as a graph, of a manifest alone or with what a run has made of it: the wire types of `rnix graph` and `run --dry-run`. */
import type { ClientFacts } from "./client_facts.ts";

/** What is to be looked at. */
export interface GraphRequest {
  /** A run, or a manifest: a file, a folder or a name. */
  of: string;
  client: Pick<ClientFacts, "cwd" | "env">;
  /** Parameters as for a run, all of which have to be there then; absent: they aren't looked at, and `of` may be a run. */
  parameters?: { [name: string]: string };
}

/** `pending`: it hasn't begun. `suspended`: it is in the middle, and the run isn't at work. */
export type GraphNodeState =
  | "pending"
  | "running"
  | "suspended"
  | "completed"
  | "failed"
  | "skipped";

/** A node, and of a run what has become of it. */
export interface GraphNode {
  name: string;
  agent: string;
  depends_on: string[];
  /** Those of them that need not have completed. */
  regardless?: string[];
  /** From 1: how many nodes are one after another up to this one. */
  wave: number;
  when?: string;
  for_each?: string;
  /** Tries, where there may be more than one. */
  attempts_max?: number;
  on_failure?: "continue";
  /** Its answer is JSON by a schema. */
  has_output?: true;
  /** The rest is of a run. */
  state?: GraphNodeState;
  /** Epoch milliseconds. */
  started_ms?: number;
  /** Up to its end, or to the last that is known of it; like `elapsed_ms` time in which the run was at work. */
  duration_ms?: number;
  /** Tries so far, where there was more than one. */
  attempts?: number;
  items?: { total: number; completed: number; failed: number; running: number };
  /** Why it failed or was skipped. */
  reason?: string;
  /** Its processes, the latest of each call. */
  processes?: { call: string; run_id: string; pid: number }[];
}

/** A workflow, and of a run what has become of it. */
export interface GraphView {
  name: string;
  description: string;
  max_parallel: number;
  /** As they are in the run, or by default; null: it has to be given. */
  parameters: { [name: string]: string | number | boolean | null };
  run?: {
    run_id: string;
    pid: number;
    /** As in `ps`. */
    state: string;
    reason?: string;
    exit_code?: number;
    elapsed_ms: number;
  };
  /** In the order of the file. */
  nodes: GraphNode[];
}
