/** Nodes of a workflow that are to run again in a fork: which they are, and which records of the past are theirs. */
import { upstreamOf } from "../manifest/workflow/check_graph.ts";
import type { Workflow } from "../manifest/workflow/workflow.ts";
import type { Entry } from "../kernel/program.ts";
import { isTimerOf } from "./progress.ts";
import { nodeOf } from "./workflow_state.ts";

/** A node, and with `andAfter` all that come to be after it. */
export function nodesAgain({ nodes }: Workflow, node: string, andAfter: boolean): Set<string> {
  if (!andAfter) return new Set([node]);
  const upstream = upstreamOf(nodes);
  const after = nodes.filter(({ name }) => upstream.get(name)?.has(node) === true);
  return new Set([node, ...after.map(({ name }) => name)]);
}

/** Whether an entry tells of one of these nodes. */
export function isAbout(nodes: ReadonlySet<string>, entry: Entry): boolean {
  switch (entry.type) {
    case "call.intent":
    case "call.result":
    case "call.settled":
    case "child.spawned":
    case "child.exited":
      return nodes.has(nodeOf(entry.call));
    case "timer":
      return [...nodes].some((node) => isTimerOf(node, entry.key));
    default:
      return false;
  }
}
