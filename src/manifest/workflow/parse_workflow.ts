/**
 * The text of a workflow, `kind: workflow` or the original's `compose.yaml`, to one checked value, or all its mistakes at once.
 *
 * The schema, the graph and the expressions are looked at whatever the others found.
 */
import type { OnUnknown } from "../../base/effect.ts";
import { nearest } from "../../base/nearest.ts";
import type { JsonObject } from "../../base/json.ts";
import { isMisspelt } from "../broken_rule.ts";
import { isName } from "../names.ts";
import { isMapping } from "../not_built.ts";
import type { KeyPath } from "../problems.ts";
import { type Add, addIssues, checkShape } from "../schema_issues.ts";
import type { YamlSource } from "../yaml_source.ts";
import { checkExpressions, ROOTS, type TextFault } from "./check_expressions.ts";
import { checkGraph, type Fault, isTooLarge } from "./check_graph.ts";
import { composeWorkflow } from "./compose.ts";
import { type Draft, draftOfCompose, draftOfWorkflow, ITEM } from "./draft.ts";
import { placeInText } from "./text_place.ts";
import type { Workflow, WorkflowNode } from "./workflow.ts";
import {
  COMPOSE_KEYS,
  composeSchema,
  type NodeFile,
  WORKFLOW_KEYS,
  type WorkflowFile,
  workflowSchema,
} from "./workflow_schema.ts";

/** A workflow and what its file says of the run. */
export interface ParsedWorkflow {
  name: string;
  description: string;
  workflow: Workflow;
  budget: WorkflowFile["budget"];
  /** Absent where the file doesn't say. */
  onUnknown?: OnUnknown;
}

/** A file and where its mistakes go. */
export interface WorkflowSource {
  source: YamlSource;
  /** The text that it was read from. */
  text: string;
  add: Add;
  /** Names of agents and workflows that there are; undefined: any may be there. */
  known?: readonly string[] | undefined;
}

/** Whether a parsed file is a workflow of either kind. */
export function isWorkflow(file: Record<string, unknown>): boolean {
  return file["kind"] === "workflow" || isCompose(file);
}

function isCompose(file: Record<string, unknown>): boolean {
  return !Object.hasOwn(file, "kind") && Object.hasOwn(file, "version") &&
    isMapping(file["agents"]);
}

/** Agents that are named by a path rather than by a name. */
export function agentPaths(file: Record<string, unknown>): { reference: string; path: KeyPath }[] {
  const draft = isCompose(file) ? draftOfCompose(file) : draftOfWorkflow(file);
  return draft.nodes.flatMap(({ agent }) =>
    agent === undefined || isName(agent.name) ? [] : [{ reference: agent.name, path: agent.path }]
  );
}

/** Undefined where there were mistakes. Never throws. */
export function parseWorkflow(
  file: Record<string, unknown>,
  from: WorkflowSource,
): ParsedWorkflow | undefined {
  return isCompose(file) ? parseCompose(file, from) : parseOwn(file, from);
}

function parseOwn(
  file: Record<string, unknown>,
  from: WorkflowSource,
): ParsedWorkflow | undefined {
  const faults = faultsOf(from);
  const { fault } = faults;
  const parsed = checkShape(workflowSchema, file);
  if (parsed === undefined) {
    fault([], "key", "So many mistakes that they can't be listed");
    return undefined;
  }
  if (!parsed.success) addIssues(parsed.error.issues, from.source, { add: from.add, keysAt });
  if (isMapping(file["nodes"]) && Object.keys(file["nodes"]).length === 0) {
    fault(["nodes"], "key", "No nodes: a workflow needs at least one");
  }
  checkNodes(file, fault);
  checkDraft(draftOfWorkflow(file), "nodes", from.known, faults);
  if (!parsed.success || faults.isFaulty()) return undefined;
  const { name, description, budget, on_unknown } = parsed.data;
  return {
    name,
    description,
    workflow: toWorkflow(parsed.data),
    budget,
    ...Object.hasOwn(file, "on_unknown") ? { onUnknown: on_unknown } : {},
  };
}

function parseCompose(
  file: Record<string, unknown>,
  from: WorkflowSource,
): ParsedWorkflow | undefined {
  const faults = faultsOf(from);
  const { fault } = faults;
  const parsed = checkShape(composeSchema, file);
  if (parsed === undefined) {
    fault([], "key", "So many mistakes that they can't be listed");
    return undefined;
  }
  if (!parsed.success) {
    addIssues(parsed.error.issues, from.source, { add: from.add, keysAt: composeKeysAt });
  }
  if (isMapping(file["agents"]) && Object.keys(file["agents"]).length === 0) {
    fault(["agents"], "key", "No agents: there is nothing to do");
  }
  checkDraft(draftOfCompose(file), "agents", from.known, faults);
  if (!parsed.success || faults.isFaulty()) return undefined;
  return {
    name: "compose",
    description: parsed.data.intent,
    workflow: composeWorkflow(parsed.data),
    budget: {},
  };
}

/** Adds mistakes, and knows whether there were any. */
function faultsOf({ source, text: whole, add }: WorkflowSource) {
  let count = 0;
  const fault: Fault = (path, at, message) => {
    count += 1;
    add(() => at === "key" ? source.keyAt(path) : source.valueAt(path), message);
  };
  const textFault: TextFault = (path, text, at, message) => {
    count += 1;
    add(() => placeInText(whole, source.valueAt(path), text, at), message);
  };
  return { isFaulty: () => count > 0, fault, textFault };
}

/** What holds between nodes. */
function checkDraft(
  draft: Draft,
  section: string,
  known: readonly string[] | undefined,
  { fault, textFault }: { fault: Fault; textFault: TextFault },
): void {
  if (isTooLarge(draft, section, fault)) return;
  checkGraph(draft, section, fault);
  checkExpressions(draft, textFault);
  if (known === undefined) return;
  for (const { agent } of draft.nodes) {
    if (agent === undefined || !isName(agent.name) || known.includes(agent.name)) continue;
    const near = nearest(agent.name, known);
    const suggestion = near === undefined
      ? `; there are ${known.join(", ")}`
      : `; did you mean \`${near}\`?`;
    fault(agent.path, "value", `No agent "${agent.name}"${suggestion}`);
  }
}

/** Keys of a node that go together. */
function checkNodes(file: Record<string, unknown>, fault: Fault): void {
  for (const [name, node] of Object.entries(isMapping(file["nodes"]) ? file["nodes"] : {})) {
    if (!isMapping(node)) continue;
    const path: KeyPath = ["nodes", name];
    const has = (key: string) => Object.hasOwn(node, key);
    if (has("agent") && has("workflow")) {
      fault([...path, "workflow"], "key", 'Both "agent" and "workflow"; keep one of them');
    }
    if (!has("agent") && !has("workflow") && !isMisspelt(node, "agent")) {
      fault(path, "key", `Node "${name}" needs "agent" or "workflow": who does it`);
    }
    if (has("with") && !has("workflow")) {
      fault([...path, "with"], "key", '"with" gives parameters to a workflow; an agent has none');
    }
    if (has("model") && has("workflow")) {
      fault([...path, "model"], "key", '"model" is for an agent; a workflow asks none itself');
    }
    if (has("as") && !has("for_each")) {
      fault([...path, "as"], "key", '"as" names the item of "for_each", which isn\'t here');
    }
    if (ROOTS.some((root) => root === node["as"])) {
      fault([...path, "as"], "value", `"${node["as"]}" has a meaning already; take another name`);
    }
  }
}

function toWorkflow(file: WorkflowFile): Workflow {
  const parameters = Object.entries(file.parameters).map((
    [name, { description, default: value }],
  ) => ({
    name,
    description,
    ...value === undefined ? {} : { fallback: value },
  }));
  return {
    nodes: Object.entries(file.nodes).map(([name, node]) => toNode(name, node)),
    parameters,
    maxParallel: file.max_parallel,
    intent: file.intent,
    ...file.result === undefined ? {} : { result: file.result },
    values: {},
  };
}

function toNode(name: string, node: NodeFile): WorkflowNode {
  const { agent, workflow, when, for_each: forEach, output, with: given } = node;
  return {
    name,
    agent: agent ?? workflow ?? "",
    intent: node.intent,
    after: node.depends_on.names,
    ...node.depends_on.ended.length === 0 ? {} : { regardless: node.depends_on.ended },
    ...when === undefined ? {} : { when },
    ...forEach === undefined ? {} : { forEach },
    as: node.as ?? ITEM,
    retry: { attempts: node.retry.attempts, backoffMs: node.retry.backoff },
    onFailure: node.on_failure,
    ...output === undefined ? {} : { output: output as JsonObject },
    ...node.model === undefined ? {} : { model: node.model },
    ...given === undefined ? {} : { with: mapValues(given, String) },
  };
}

function mapValues<T, U>(mapping: { [key: string]: T }, change: (value: T) => U) {
  return Object.fromEntries(Object.entries(mapping).map(([key, value]) => [key, change(value)]));
}

/** Known keys at a path, for the nearest one; inside a schema those of a schema. */
function keysAt(path: KeyPath) {
  const isSchema = path[0] === "nodes" && path[2] === "output";
  const general = path.map((key, index) => index === 1 ? "*" : String(key)).join(".");
  return { known: WORKFLOW_KEYS[isSchema ? "output" : general] ?? [], others: [] };
}

function composeKeysAt(path: KeyPath) {
  const general = path.map((key, index) => index === 1 ? "*" : String(key)).join(".");
  return { known: COMPOSE_KEYS[general] ?? [], others: [] };
}
