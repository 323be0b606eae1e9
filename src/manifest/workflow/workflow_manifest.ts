/** A workflow's file as the manifest that everything else knows: what it starts are its `agents`, and it asks no model itself. */
import type { OnUnknown } from "../../base/effect.ts";
import type { AgentManifest, ChildAgent, ModelConfig } from "../agent_manifest.ts";
import { budgetOf } from "../budget_of.ts";
import { isName } from "../names.ts";
import { parseWorkflow, type WorkflowSource } from "./parse_workflow.ts";

/** Stands where an agent has its model. */
export const NO_MODEL: ModelConfig = {
  provider: "workflow",
  preferred: "workflow",
  timeoutMs: 0,
  maxTimeoutMs: 0,
};

/** Undefined where there were mistakes. `onUnknown`: for a file that doesn't say. */
export function workflowManifest(
  file: Record<string, unknown>,
  from: WorkflowSource,
  onUnknown: OnUnknown | undefined,
): AgentManifest | undefined {
  const parsed = parseWorkflow(file, from);
  if (parsed === undefined) return undefined;
  const { name, description, workflow, budget } = parsed;
  const agents = new Map<string, ChildAgent>();
  const nodes = workflow.nodes.map((node) => {
    const child = agents.get(node.agent) ?? childOf(node.agent, [...agents.values()]);
    agents.set(node.agent, child);
    return { ...node, agent: child.name };
  });
  return {
    name,
    description,
    instructions: "",
    models: NO_MODEL,
    tools: [],
    agents: [...agents.values()],
    agentsMd: false,
    budget: budgetOf(budget),
    onUnknown: parsed.onUnknown ?? onUnknown ?? "ask",
    workflow: { ...workflow, nodes },
  };
}

/** An agent by its name, or by its path under a name made of that. */
function childOf(reference: string, others: readonly ChildAgent[]): ChildAgent {
  if (isName(reference)) return { name: reference, detach: false };
  const parts = reference.split("/").filter((part) => /[a-z0-9]/i.test(part));
  const last = parts.at(-1) ?? "";
  const named = /^agent\.ya?ml$/.test(last) ? parts.at(-2) ?? "" : last.replace(/\.ya?ml$/, "");
  const plain = named.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "");
  const base = plain.slice(0, 50) || "agent";
  let name = base;
  for (let count = 2; others.some((other) => other.name === name); count++) {
    name = `${base}-${count}`;
  }
  return { name, manifest: reference, detach: false };
}
