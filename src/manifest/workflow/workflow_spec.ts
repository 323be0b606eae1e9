/** A workflow as a run stores it. */
import { z } from "zod";
import type { Workflow, WorkflowNode } from "./workflow.ts";

const scalar = z.union([z.string(), z.number(), z.boolean()]);

const node = z.strictObject({
  name: z.string(),
  agent: z.string(),
  model: z.string().exactOptional(),
  intent: z.string(),
  after: z.array(z.string()),
  regardless: z.array(z.string()).exactOptional(),
  when: z.string().exactOptional(),
  forEach: z.union([
    z.strictObject({ expression: z.string() }),
    z.strictObject({ list: z.array(z.json()) }),
  ]).exactOptional(),
  as: z.string(),
  retry: z.strictObject({ attempts: z.int(), backoffMs: z.number() }),
  onFailure: z.enum(["stop", "continue"]),
  output: z.record(z.string(), z.json()).exactOptional(),
  with: z.record(z.string(), z.string()).exactOptional(),
}) satisfies z.ZodType<WorkflowNode>;

/** The form of `workflow` in a spec blob. */
export const workflowSpec = z.strictObject({
  nodes: z.array(node),
  parameters: z.array(z.strictObject({
    name: z.string(),
    description: z.string(),
    fallback: scalar.exactOptional(),
  })),
  maxParallel: z.int(),
  intent: z.string(),
  result: z.string().exactOptional(),
  values: z.record(z.string(), scalar),
}) satisfies z.ZodType<Workflow>;
