/** A workflow made ready to be worked with: expressions parsed, nodes in an order in which each comes after those that it waits for. */
import type { Expression } from "../manifest/workflow/expression.ts";
import { parseLone, parseText, type TextPart } from "../manifest/workflow/expression_text.ts";
import type { Json } from "../base/json.ts";
import type { Workflow, WorkflowNode } from "../manifest/workflow/workflow.ts";
import type { Validate } from "./answer.ts";

/** A node with its expressions parsed. */
export interface ReadyNode extends WorkflowNode {
  intentParts: TextPart[];
  withParts: { [parameter: string]: TextPart[] };
  condition: Expression | undefined;
  /** The list of `for_each`, or the expression that gives it. */
  items: { expression: Expression } | { list: Json[] } | undefined;
  validate: Validate | undefined;
  /** Whether no other node waits for it. */
  isLast: boolean;
}

/** All that `decide` needs of a workflow. */
export interface Blueprint {
  workflow: Workflow;
  /** In the order of the file. */
  nodes: ReadyNode[];
  /** Each after those that it waits for. */
  ordered: ReadyNode[];
  resultParts: TextPart[] | undefined;
}

/** Parses what the manifest's check has found good; throws for what it would have refused. */
export function blueprintOf(
  workflow: Workflow,
  validators: ReadonlyMap<string, Validate>,
): Blueprint {
  const waitedFor = new Set(workflow.nodes.flatMap(({ after }) => after));
  const nodes = workflow.nodes.map((node): ReadyNode => {
    const { forEach, when } = node;
    return {
      ...node,
      intentParts: partsOf(node.intent),
      withParts: Object.fromEntries(
        Object.entries(node.with ?? {}).map(([name, text]) => [name, partsOf(text)]),
      ),
      condition: when === undefined ? undefined : expressionOf(when),
      items: forEach === undefined || "list" in forEach
        ? forEach
        : { expression: expressionOf(forEach.expression) },
      validate: validators.get(node.name),
      isLast: !waitedFor.has(node.name),
    };
  });
  const resultParts = workflow.result === undefined ? undefined : partsOf(workflow.result);
  return { workflow, nodes, ordered: inOrder(nodes), resultParts };
}

function partsOf(text: string): TextPart[] {
  const { parts, faults } = parseText(text);
  if (faults[0] !== undefined) throw new Error(faults[0].message);
  return parts;
}

function expressionOf(text: string): Expression {
  const parsed = parseLone(text);
  if ("fault" in parsed) throw new Error(parsed.fault.message);
  return parsed.expression;
}

function inOrder(nodes: readonly ReadyNode[]): ReadyNode[] {
  const ordered = new Map<string, ReadyNode>();
  let left = [...nodes];
  while (left.length > 0) {
    const free = left.filter(({ after }) => after.every((name) => ordered.has(name)));
    if (free.length === 0) throw new Error("Nodes of the workflow wait for each other");
    for (const node of free) ordered.set(node.name, node);
    left = left.filter(({ name }) => !ordered.has(name));
  }
  return [...ordered.values()];
}
