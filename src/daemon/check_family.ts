/** What agents and workflows ask of the workflows that they start, checked once all of them are loaded: before anything runs. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import type { WorkflowNode } from "../manifest/workflow/workflow.ts";
import { nestedFaults } from "../manifest/workflow/parameters.ts";
import { CHILD_DEPTH_MAX } from "./child_host.ts";
import { memberNamed } from "./family.ts";

/** Throws INVALID (exit 2) with all parameters that don't fit, of the workflow and of those below it, and for workflows in each other that are certain to be too many. */
export function checkFamily(agent: LoadedAgent): void {
  const members = agent.family === undefined ? [agent] : Object.values(agent.family.members);
  const faults = members.flatMap((member) => faultsOf({ ...agent, ...member }));
  const chain = tooDeep(agent);
  if (chain !== undefined) {
    const message = `Agents may start each other ${CHILD_DEPTH_MAX} deep at most, and ` +
      `${chain.join(" → ")} would go deeper`;
    faults.push(`${agent.path}: node "${chain[0]}": ${message}`);
  }
  if (faults.length === 0) return;
  throw new SysError("INVALID", faults.join("\n"), { exitCode: EXIT_USAGE });
}

function faultsOf(agent: LoadedAgent): string[] {
  const { workflow, agents, name } = agent.manifest;
  if (workflow === undefined) {
    // A model gives an intent and nothing else.
    return agents.flatMap((child) => {
      const needed = memberNamed(agent, child.name)?.manifest.workflow?.parameters
        .filter(({ fallback }) => fallback === undefined) ?? [];
      return needed.map((parameter) =>
        `Agent "${name}" can't start "${child.name}": its parameter "${parameter.name}" has no default`
      );
    });
  }
  return workflow.nodes.flatMap((node) => {
    const child = memberNamed(agent, node.agent);
    if (child === undefined) return [];
    return nestedFaults(node.with ?? {}, child.manifest)
      .map((fault) => `${agent.path}: node "${node.name}": ${fault}`);
  });
}

/** Nodes, each of the workflow that the one before it starts, that are certain to begin one after another and are more than may be; undefined where there are none. */
function tooDeep(agent: LoadedAgent): string[] | undefined {
  // What is below a workflow at a depth is the same whichever way led there.
  const passed = new Set<string>();
  const left: { from: LoadedAgent; chain: string[] }[] = [{ from: agent, chain: [] }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { from, chain } = next;
    const key = `${chain.length} ${from.path}`;
    if (passed.has(key)) continue;
    passed.add(key);
    for (const { name, agent: child } of certainNodes(from)) {
      const deeper = [...chain, name];
      if (deeper.length > CHILD_DEPTH_MAX) return deeper;
      const found = memberNamed(from, child);
      if (found !== undefined) left.push({ from: found, chain: deeper });
    }
  }
  return undefined;
}

/** Nodes that begin unless one before them fails: no condition, and no list that may be empty, decides on them or on what they wait for. */
function certainNodes({ manifest: { workflow } }: LoadedAgent): WorkflowNode[] {
  const nodes = workflow?.nodes ?? [];
  const certain = new Map<string, WorkflowNode>();
  const open = new Set(
    nodes.filter(({ when, forEach }) =>
      when === undefined && (forEach === undefined || "list" in forEach && forEach.list.length > 0)
    ),
  );
  for (let before = -1; before < certain.size;) {
    before = certain.size;
    for (const node of open) {
      if (!node.after.every((name) => certain.has(name))) continue;
      certain.set(node.name, node);
      open.delete(node);
    }
  }
  return [...certain.values()];
}
