/**
 * Where every node stands, worked out from the tries of its calls and from the nodes before it.
 *
 * Rules
 * 1. A node may begin when all that it waits for is over.
 * 2. A node whose `when` isn't true is skipped. One that waits only for nodes which were skipped so is skipped as well; where at least one of them has completed it begins, and what was skipped is null for it. So of two branches that exclude each other either leads on.
 * 3. A node that waits for one that has failed, or that was skipped because of such a one, is skipped. Where it says that it waits for the end of it, whatever it is, that is no reason.
 * 4. A node with `for_each` has completed when all its items have; it has failed when one has and the rest is over.
 * 5. `when` and the list of `for_each` are looked at once the node may begin; after its first call only the list is.
 */
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import {
  evaluate,
  EvaluationError,
  fillIn,
  isTrue,
  type Scope,
} from "../manifest/workflow/evaluate.ts";
import { ITEMS_MAX } from "../manifest/workflow/workflow.ts";
import { askedFor, correction, type Fit, fitOf } from "./answer.ts";
import type { Blueprint, ReadyNode } from "./blueprint.ts";
import { type Misfit, type Progress, progressOf } from "./progress.ts";
import { callOf, type Outcome, type WorkflowState } from "./workflow_state.ts";

/** `pending`: it waits for others; `ready`: it may begin. */
export type NodeStatus = "pending" | "ready" | "running" | "completed" | "failed" | "skipped";

/** One call of a node: all of it, or one item. */
export interface CallView {
  call: string;
  progress: Progress;
  /** The item of `for_each`. */
  item?: Json;
}

/** A node and what has become of it. */
export interface NodeView {
  node: ReadyNode;
  status: NodeStatus;
  calls: CallView[];
  /** Why it failed or was skipped. */
  reason?: string;
  /** It was skipped because of a failure before it. */
  isCutOff?: true;
  /** Why it can't be begun: its call is refused with this. */
  defect?: string;
}

/** All nodes at one moment. */
export interface Survey {
  /** In the order of the file. */
  views: NodeView[];
  /** What expressions may know of the nodes that are over. */
  scope: Scope;
}

const NOTHING: JsonObject = { result: null, output: null };

/** Where all nodes stand. */
export function surveyOf(blueprint: Blueprint, state: WorkflowState, fits: FitCache): Survey {
  const { workflow } = blueprint;
  const nodes: JsonObject = {};
  const scope: Scope = { nodes, params: { ...workflow.values }, intent: state.intent };
  const views = new Map<string, NodeView>();
  for (const node of blueprint.ordered) {
    const before = node.after.flatMap((name) => views.get(name) ?? []);
    const view = viewOf(node, before, { state, scope, fits });
    views.set(node.name, view);
    const known = knownOf(view);
    if (known !== undefined) nodes[node.name] = known;
  }
  return { views: blueprint.nodes.flatMap(({ name }) => views.get(name) ?? []), scope };
}

/** Answers that were held against their schema already. */
export class FitCache {
  readonly #known = new WeakMap<Outcome, Fit>();

  of(outcome: Outcome, node: ReadyNode): Fit | undefined {
    if (node.validate === undefined) return undefined;
    const fit = this.#known.get(outcome) ?? fitOf(outcome.text, node.validate);
    this.#known.set(outcome, fit);
    return fit;
  }
}

interface Surroundings {
  state: WorkflowState;
  scope: Scope;
  fits: FitCache;
}

function viewOf(node: ReadyNode, before: readonly NodeView[], around: Surroundings): NodeView {
  const { state, scope } = around;
  const idle = { node, calls: [] };
  if (before.some(({ status }) => !isOver(status))) return { ...idle, status: "pending" };
  const needed = before.filter((view) => node.regardless?.includes(view.node.name) !== true);
  const broken = needed.find(({ status, isCutOff }) => status === "failed" || isCutOff);
  if (broken !== undefined) {
    const verb = broken.status === "failed" ? "failed" : "was skipped";
    const reason = `"${broken.node.name}" ${verb}`;
    return { ...idle, status: "skipped", isCutOff: true, reason };
  }
  if (needed.length > 0 && needed.every(({ status }) => status === "skipped")) {
    return { ...idle, status: "skipped", reason: "all that it waits for was skipped" };
  }
  try {
    const isBegun = state.begun[node.name] === true;
    if (
      !isBegun && node.condition !== undefined && !isTrue(evaluate(node.condition, scope, true))
    ) {
      return { ...idle, status: "skipped", reason: `when: ${node.when}` };
    }
    return withCalls(node, itemsOf(node, scope), around);
  } catch (thrown) {
    if (!(thrown instanceof EvaluationError)) throw thrown;
    const [own] = withCalls(node, undefined, around).calls;
    const calls = own === undefined ? [] : [own];
    const status = own?.progress.step === "failed" ? "failed" : "ready";
    const reason = own?.progress.step === "failed" ? { reason: own.progress.message } : {};
    return { node, status, calls, defect: thrown.message, ...reason };
  }
}

/** Whether nothing more comes of a node. */
export function isOver(status: NodeStatus): boolean {
  return status === "completed" || status === "failed" || status === "skipped";
}

function itemsOf({ items, name }: ReadyNode, scope: Scope): Json[] | undefined {
  if (items === undefined) return undefined;
  if ("list" in items) return items.list;
  const list = asList(evaluate(items.expression, scope));
  if (list === undefined) {
    throw new EvaluationError(`"for_each" of node "${name}" needs a list, and its value is none`);
  }
  if (list.length > ITEMS_MAX) {
    throw new EvaluationError(
      `"for_each" of node "${name}" takes ${ITEMS_MAX} items at most, not ${list.length}`,
    );
  }
  return list;
}

/** A list, also as JSON text; nothing is no item. */
function asList(value: Json): Json[] | undefined {
  if (value === null) return [];
  if (typeof value !== "string") return Array.isArray(value) ? value : undefined;
  try {
    const parsed: Json = JSON.parse(value);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function withCalls(node: ReadyNode, items: Json[] | undefined, around: Surroundings): NodeView {
  const { state, fits } = around;
  const { retry, validate } = node;
  const fit = (outcome: Outcome) => fits.of(outcome, node) ?? { isFit: true as const, value: null };
  const rules = { retry, ...(validate === undefined ? {} : { fit }) };
  const view = (call: string) => ({ call, progress: progressOf(state, call, rules) });
  const calls: CallView[] = items === undefined
    ? [view(callOf(node.name))]
    : items.map((item, index) => ({ ...view(callOf(node.name, index)), item }));
  return { node, calls, ...statusOf(calls) };
}

function statusOf(calls: readonly CallView[]): Pick<NodeView, "status" | "reason"> {
  const steps = calls.map(({ progress }) => progress.step);
  if (steps.every((step) => step === "done")) return { status: "completed" };
  const failed = calls.find(({ progress }) => progress.step === "failed");
  if (
    failed?.progress.step === "failed" &&
    steps.every((step) => step === "done" || step === "failed")
  ) {
    const { call, progress, item } = failed;
    const where = item === undefined ? "" : `item ${call.slice(call.lastIndexOf(".") + 1)}: `;
    return { status: "failed", reason: `${where}${progress.message}` };
  }
  return { status: steps.every((step) => step === "ready") ? "ready" : "running" };
}

/** What expressions know of a node; undefined while it isn't over. */
function knownOf({ node, status, calls }: NodeView): JsonObject | undefined {
  if (!isOver(status)) return undefined;
  if (status !== "completed") return { ...NOTHING, status };
  const values = calls.map(({ progress }) =>
    progress.step === "done" ? { text: progress.text, value: progress.value ?? null } : undefined
  );
  if (node.items === undefined) {
    return { result: values[0]?.text ?? null, output: values[0]?.value ?? null, status };
  }
  const outputs = values.map((value) => value?.value ?? null);
  const texts = values.map((value) => value?.text ?? null);
  return {
    result: node.validate === undefined ? texts : outputs,
    output: node.validate === undefined ? null : outputs,
    status,
  };
}

/** What a call tells its agent. Throws EvaluationError. */
export function inputOf(view: NodeView, { progress, item }: CallView, scope: Scope): JsonObject {
  const { node } = view;
  const own: Scope = item === undefined ? scope : { ...scope, [node.as]: item };
  const intent = fillIn(node.intentParts, own);
  if (intent.trim() === "") {
    throw new EvaluationError(
      `The intent of node "${node.name}" is empty with its values filled in`,
    );
  }
  const misfit: Misfit | undefined = "misfit" in progress ? progress.misfit : undefined;
  const asked = node.output === undefined ? "" : askedFor(node.output);
  const again = misfit === undefined ? "" : correction(misfit.text, misfit.fault);
  const given = Object.entries(node.withParts).map(([name, parts]) => [name, fillIn(parts, own)]);
  const parameters: Json = Object.fromEntries(given);
  return {
    intent: `${intent}${again}${asked}`,
    ...(node.model === undefined ? {} : { model: node.model }),
    ...(isJsonObject(parameters) && given.length > 0 ? { parameters } : {}),
  };
}
