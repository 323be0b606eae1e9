/**
 * A workflow after parsing: nodes that are agents at work, what each waits for, and what it is told. Every value is checked; expressions are still text, so that all of it is plain JSON for a run's spec.
 */
import type { Json, JsonObject } from "../../base/json.ts";

/** Nodes at work at once, where the file doesn't say. */
export const MAX_PARALLEL = 8;
/** Highest `max_parallel`: a process has no more children at work at once. */
export const MAX_PARALLEL_MAX = 16;
/** Nodes of one workflow. */
export const NODES_MAX = 500;
/** Items of one `for_each`. */
export const ITEMS_MAX = 1000;
/** Highest `retry.attempts`. */
export const ATTEMPTS_MAX = 10;
/** First pause before a repeat, where the file doesn't say. */
export const BACKOFF_MS = 1000;
/** Longest pause before a repeat. */
export const BACKOFF_MS_MAX = 600_000;

/** What a failed node does to the rest. */
export type OnFailure = "stop" | "continue";

/** A list that is worked through item by item. */
export type ForEach = { expression: string } | { list: Json[] };

/** One agent or workflow at work, or one for every item of a list. */
export interface WorkflowNode {
  name: string;
  /** The agent or the workflow that does it, by the name that its manifest has in `agents`. */
  agent: string;
  /** What it is told: text with `${{ }}`. */
  intent: string;
  /** Nodes that are over before this one begins, in the order of the file. */
  after: string[];
  /** Those of them that may also have failed or been skipped. */
  regardless?: string[];
  /** Expression; the node is skipped where it isn't true. */
  when?: string;
  forEach?: ForEach;
  /** What the item is called in expressions. */
  as: string;
  retry: { attempts: number; backoffMs: number };
  onFailure: OnFailure;
  /** JSON schema of the answer. */
  output?: JsonObject;
  /** Model of the agent's provider that it asks instead of its own. */
  model?: string;
  /** Parameters of the workflow that does it: texts with `${{ }}`. */
  with?: { [parameter: string]: string };
}

/** A value that a run is given. */
export interface WorkflowParameter {
  name: string;
  description: string;
  /** Absent: it has to be given. */
  fallback?: string | number | boolean;
}

/** A whole workflow. */
export interface Workflow {
  /** In the order of the file. */
  nodes: WorkflowNode[];
  parameters: WorkflowParameter[];
  maxParallel: number;
  /** What a run is told that is started without an intent. */
  intent: string;
  /** The result of the whole: text with `${{ }}`. Absent: what the last nodes answered. */
  result?: string;
  /** Parameters as given and as they are by default; in a run every one has a value. */
  values: { [parameter: string]: string | number | boolean };
}

const NODE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** What a name of a node looks like, for error messages. */
export const NODE_NAME_RULE = "letters, digits, - and _, at most 64, not beginning with - or _";

/** Whether a text can be the name of a node, a parameter or an item. */
export function isNodeName(text: string): boolean {
  return NODE_NAME.test(text);
}
