/** The shape of a workflow's file as a schema; what holds between nodes is in `check_graph.ts` and `check_expressions.ts`. */
import { z } from "zod";
import { ON_UNKNOWN } from "../../base/effect.ts";
import { agentName, budgetSchema, plain, timerDuration } from "../manifest_schema.ts";
import { outputSchema, SCHEMA_WORDS } from "./output_schema.ts";
import {
  ATTEMPTS_MAX,
  BACKOFF_MS,
  ITEMS_MAX,
  MAX_PARALLEL,
  MAX_PARALLEL_MAX,
  NODE_NAME_RULE,
} from "./workflow.ts";

const ON_FAILURE = ["stop", "continue"] as const;
/** `completed`: it has; `ended`: whatever has become of it. */
const CONDITIONS = ["completed", "ended"] as const;

interface DependsOn {
  names: string[];
  /** Those that need not have completed. */
  ended: string[];
}

/** A list of names, or a mapping of names to conditions. */
const dependsOn = (conditions: readonly string[]) =>
  z.unknown().transform((value, context): DependsOn => {
    const fault = (message: string, path: (string | number)[] = []) => {
      context.addIssue({ code: "custom", message, path });
    };
    if (typeof value === "string") return { names: [value], ended: [] };
    if (Array.isArray(value)) {
      value.forEach((name: unknown, index) => {
        if (typeof name !== "string") fault("Expected the name of a node", [index]);
      });
      return { names: value.filter((name) => typeof name === "string"), ended: [] };
    }
    if (typeof value !== "object" || value === null) {
      fault("Expected a list of nodes, or a mapping such as `node: completed`");
      return { names: [], ended: [] };
    }
    for (const [name, condition] of Object.entries(value)) {
      if (conditions.some((each) => each === condition)) continue;
      fault(`Expected ${conditions.join(" or ")}, got ${JSON.stringify(condition)}`, [name]);
    }
    const ended = Object.entries(value).filter(([, condition]) => condition === "ended");
    return { names: Object.keys(value), ended: ended.map(([name]) => name) };
  });

const NO_DEPENDENCIES: DependsOn = { names: [], ended: [] };

const when = z.unknown().transform((value, context): string => {
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string" && value.trim() !== "") return value;
  const message = "Expected an expression, such as `nodes.x.output.ok == true`";
  context.addIssue({ code: "custom", message });
  return z.NEVER;
});

const forEach = z.unknown().transform((value, context) => {
  if (typeof value === "string" && value.trim() !== "") return { expression: value };
  const list = z.array(z.json()).safeParse(value);
  if (!list.success) {
    const message = "Expected a list, or an expression that gives one";
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  }
  if (list.data.length > ITEMS_MAX) {
    context.addIssue({ code: "custom", message: `At most ${ITEMS_MAX} items` });
  }
  return { list: list.data };
});

const itemName = z.string().superRefine((value, context) => {
  if (/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(value)) return;
  context.addIssue({ code: "custom", message: `Invalid name "${value}": use ${NODE_NAME_RULE}` });
});

const scalar = z.unknown().transform((value, context): string | number | boolean => {
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  context.addIssue({ code: "custom", message: "Expected a text, a number, true or false" });
  return z.NEVER;
});

const retry = z.strictObject({
  attempts: z.int().min(1).max(ATTEMPTS_MAX),
  backoff: timerDuration.default(BACKOFF_MS),
});

/** `nodes.<name>`. */
export const nodeSchema = z.strictObject({
  agent: plain.optional(),
  workflow: plain.optional(),
  model: plain.optional(),
  intent: plain,
  depends_on: dependsOn(CONDITIONS).default(NO_DEPENDENCIES),
  when: when.optional(),
  for_each: forEach.optional(),
  as: itemName.optional(),
  retry: retry.default({ attempts: 1, backoff: BACKOFF_MS }),
  on_failure: z.enum(ON_FAILURE).default("stop"),
  output: outputSchema.optional(),
  with: z.record(z.string(), scalar).optional(),
});

const parameter = z.strictObject({ description: plain.default(""), default: scalar.optional() });

/** The whole file. */
export const workflowSchema = z.strictObject({
  kind: z.literal("workflow"),
  name: agentName,
  description: plain.default(""),
  intent: plain.default(""),
  parameters: z.record(z.string(), z.preprocess((value) => value ?? {}, parameter)).default({}),
  max_parallel: z.int().min(1).max(MAX_PARALLEL_MAX).default(MAX_PARALLEL),
  nodes: z.record(z.string(), nodeSchema),
  result: plain.optional(),
  budget: budgetSchema.default({}),
  on_unknown: z.enum(ON_UNKNOWN).default("ask"),
});

/** A file that fits the schema. */
export type WorkflowFile = z.output<typeof workflowSchema>;
/** `nodes.<name>` of a file that fits the schema. */
export type NodeFile = z.output<typeof nodeSchema>;

const composeAgent = z.strictObject({
  intent: plain,
  agent: plain.optional(),
  model: plain.optional(),
  depends_on: dependsOn(["completed"]).default(NO_DEPENDENCIES),
});

/** The original's `compose.yaml`. */
export const composeSchema = z.strictObject({
  version: z.literal("1.0"),
  intent: plain.default(""),
  model: plain.optional(),
  agents: z.record(z.string(), composeAgent),
});

/** A compose file that fits the schema. */
export type ComposeFile = z.output<typeof composeSchema>;

/** Known keys of each mapping of a workflow's file, by path; `*` stands for any name. */
export const WORKFLOW_KEYS: { readonly [path: string]: readonly string[] } = {
  "": Object.keys(workflowSchema.shape),
  "parameters.*": Object.keys(parameter.shape),
  "nodes.*": Object.keys(nodeSchema.shape),
  "nodes.*.retry": Object.keys(retry.shape),
  "budget": Object.keys(budgetSchema.shape),
  "output": SCHEMA_WORDS,
};

/** The same of a compose file. */
export const COMPOSE_KEYS: { readonly [path: string]: readonly string[] } = {
  "": Object.keys(composeSchema.shape),
  "agents.*": Object.keys(composeAgent.shape),
};
