/** What the agent's model is given. */
import type { PromptHead } from "../kernel/program.ts";
import type { Message } from "../llm/model.ts";

export interface AgentPrompt extends PromptHead {
  system: string;
  messages: readonly Message[];
  /** Set on a request for a summary. */
  purpose?: "summary";
}
