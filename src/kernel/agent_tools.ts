/** Agents as tools: what a parent's model is told of the agents that it may start. */
import { agentToolName } from "../base/builtin_tools.ts";
import type { JsonObject } from "../base/json.ts";
import type { ToolBinding } from "./tool_table.ts";

/** Path of a child agent's tool in its parent's view. */
export function agentDevice(agent: string): string {
  return `/proc/self/children/${agent}`;
}

/** The tool that starts an agent, for its parent's model. */
export function agentBinding(
  agent: {
    name: string;
    description: string;
    detach: boolean;
    outputTokensMax: number | undefined;
  },
): ToolBinding {
  const { name, description, detach, outputTokensMax } = agent;
  const device = agentDevice(name);
  return {
    definition: {
      name,
      modelName: agentToolName(name),
      description: `${description === "" ? `The agent "${name}"` : description}\n\n${
        detach ? DETACHED : ATTACHED
      }`,
      inputSchema: INPUT_SCHEMA,
    },
    server: undefined,
    device,
    path: device,
    effect: "write",
    risk: "medium",
    sensitive: false,
    outputTokensMax,
    child: { agent: name, detach },
  };
}

const ATTACHED =
  "This is another agent, which works in a process of its own; its last answer is the result. It knows nothing of this conversation: say all that it needs. Several can be started at once.";
const DETACHED =
  "This is another agent, which is started in a process of its own and goes on by itself; the result only says that it was started. It knows nothing of this conversation: say all that it needs.";
const INPUT_SCHEMA: JsonObject = {
  type: "object",
  properties: { intent: { type: "string", minLength: 1, description: "What it is to do" } },
  required: ["intent"],
  additionalProperties: false,
};
