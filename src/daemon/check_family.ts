/** What a workflow asks of the workflows that it starts, checked once all of them are loaded: before anything runs. */
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
  return (agent.manifest.workflow?.nodes ?? []).flatMap((node) => {
    const child = memberNamed(agent, node.agent);
    if (child === undefined) return [];
    return nestedFaults(Object.keys(node.with ?? {}), child.manifest)
      .map((fault) => `${agent.path}: node "${node.name}": ${fault}`);
  });
}
