/** The program that a loaded agent runs: for a run, its resume and its replay alike. */
import { agentProgram, type AgentPrompt } from "../agent/agent_program.ts";
import type { AgentState } from "../agent/agent_state.ts";
import type { Program } from "../kernel/program.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { systemText } from "../manifest/system_text.ts";

export function programOf(agent: LoadedAgent): Program<AgentState, AgentPrompt> {
  const { contextWindow } = agent.manifest.models;
  return agentProgram(systemText(agent), { contextWindow });
}
