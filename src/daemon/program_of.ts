/** The program that a loaded agent or workflow runs: for a run, its resume and its replay alike. */
import { agentProgram, type AgentPrompt } from "../agent/agent_program.ts";
import type { AgentState } from "../agent/agent_state.ts";
import type { Storage } from "../base/storage.ts";
import { checkFor } from "../devices/mcp/schema_check.ts";
import { readEnds } from "../journal/mod.ts";
import type { Program } from "../kernel/program.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import type { Workflow } from "../manifest/workflow/workflow.ts";
import { systemText } from "../manifest/system_text.ts";
import type { Validate } from "../workflow/answer.ts";
import { WORKFLOW_PROGRAM } from "../workflow/program_name.ts";
import { workflowProgram } from "../workflow/workflow_program.ts";
import type { WorkflowState } from "../workflow/workflow_state.ts";

/** State of whichever program a run has: only the program itself looks inside. */
export type ProgramState = AgentState | WorkflowState;
/** A program of either kind. */
export type RunProgram = Program<ProgramState, AgentPrompt>;

const NO_NODES: Workflow = {
  nodes: [],
  parameters: [],
  maxParallel: 1,
  intent: "",
  values: {},
};

/** What a manifest says is done. Never rejects for a manifest that was found good. */
export async function programOf(agent: LoadedAgent): Promise<RunProgram> {
  const { models, workflow } = agent.manifest;
  if (workflow === undefined) {
    return agentProgram(systemText(agent), { contextWindow: models.contextWindow });
  }
  return workflowProgram(workflow, await validatorsOf(workflow));
}

/** What holds the answers of nodes against their schemas, by node. */
export async function validatorsOf({ nodes }: Workflow): Promise<Map<string, Validate>> {
  const validators = new Map<string, Validate>();
  for (const { name, output } of nodes) {
    if (output !== undefined) validators.set(name, await checkFor(output));
  }
  return validators;
}

/** What folds a run's entries before its manifest is read: it can't decide yet. A run that can't be read is left to whoever reads it in earnest. */
export async function folding(storage: Storage, folder: string): Promise<RunProgram> {
  const ends = await readEnds(storage, folder).catch(() => undefined);
  const isWorkflow = ends?.first?.type === "run.started" &&
    ends.first.program === WORKFLOW_PROGRAM;
  return isWorkflow ? workflowProgram(NO_NODES) : agentProgram("");
}
