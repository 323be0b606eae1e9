/** What agents and workflows ask of the workflows that they start, checked once all of them are loaded: before anything runs. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { nestedFaults } from "../manifest/workflow/parameters.ts";
import { memberNamed } from "./family.ts";

/** Throws INVALID (exit 2) with all parameters that don't fit, of the workflow and of those below it. */
export function checkFamily(agent: LoadedAgent): void {
  const members = agent.family === undefined ? [agent] : Object.values(agent.family.members);
  const faults = members.flatMap((member) => faultsOf({ ...agent, ...member }));
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
    return nestedFaults(Object.keys(node.with ?? {}), child.manifest)
      .map((fault) => `${agent.path}: node "${node.name}": ${fault}`);
  });
}
