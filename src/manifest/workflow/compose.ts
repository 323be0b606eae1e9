/** The original's `compose.yaml` as a workflow: every node is told the goal of the whole, its own part of it, and what the nodes before it came to. */
import { ITEM } from "./draft.ts";
import { BACKOFF_MS, MAX_PARALLEL, type Workflow, type WorkflowNode } from "./workflow.ts";
import type { ComposeFile } from "./workflow_schema.ts";

/** The workflow of a compose file without mistakes. */
export function composeWorkflow(file: ComposeFile): Workflow {
  const nodes = Object.entries(file.agents).map(([name, node]): WorkflowNode => {
    const { agent = name, model = file.model } = node;
    return {
      name,
      agent,
      ...model === undefined ? {} : { model },
      intent: intentOf(node.intent, node.depends_on.names),
      after: node.depends_on.names,
      as: ITEM,
      retry: { attempts: 1, backoffMs: BACKOFF_MS },
      onFailure: "stop",
    };
  });
  return {
    nodes,
    parameters: [],
    maxParallel: MAX_PARALLEL,
    intent: file.intent,
    values: {},
  };
}

/** A file that fills in results by itself is left as it is. */
function intentOf(intent: string, after: readonly string[]): string {
  if (intent.includes("${{")) return intent;
  const results = after.map((name) => `\n\nWhat ${name} came to:\n\${{ nodes.${name}.result }}`);
  return `${intent}\n\nThe goal of the whole: \${{ intent }}${results.join("")}`;
}
