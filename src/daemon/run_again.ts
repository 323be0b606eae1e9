/** `--node` and `--from`: what a fork leaves out of a workflow's past, so that it is done again. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { nearest } from "../base/nearest.ts";
import type { ResumeRequest } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import type { Again } from "../kernel/fork.ts";
import { isAbout, nodesAgain } from "../workflow/again.ts";
import type { Runs } from "./runs.ts";
import { storedAgent } from "./stored_agent.ts";

/** Undefined where nothing is to run again. Throws INVALID (exit 2) for a run that has no such node. */
export async function againOf(
  { storage, runs }: { storage: Storage; runs: Runs },
  runId: string,
  { again }: Pick<ResumeRequest, "again">,
): Promise<Again & { nodes: string[] } | undefined> {
  if (again === undefined) return undefined;
  const { spec } = (await runs.view(runId)).ledger.state;
  const agent = spec === undefined
    ? undefined
    : await storedAgent(storage, runs.folderOf(runId), spec);
  const workflow = agent?.manifest.workflow;
  if (workflow === undefined) {
    throw refused(runId, "The run is no workflow, so it has no nodes", undefined);
  }
  const names = workflow.nodes.map(({ name }) => name);
  const { node, andAfter } = again;
  if (!names.includes(node)) {
    const near = nearest(node, names);
    const hint = near === undefined ? `There are ${names.join(", ")}` : `Did you mean "${near}"?`;
    throw refused(runId, `The workflow has no node "${node}"`, hint);
  }
  const nodes = nodesAgain(workflow, node, andAfter);
  return { nodes: [...nodes], leavesOut: (entry) => isAbout(nodes, entry) };
}

function refused(device: string, message: string, hint: string | undefined): SysError {
  return new SysError("INVALID", message, { syscall: "Fork", device, hint, exitCode: EXIT_USAGE });
}
