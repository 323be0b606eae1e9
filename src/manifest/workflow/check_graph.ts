/** Mistakes between the nodes of a workflow: names that aren't there, nodes that wait for themselves, nodes that never run. */
import { nearest } from "../../base/nearest.ts";
import type { KeyPath } from "../problems.ts";
import type { Draft, DraftNode } from "./draft.ts";
import { evaluate, isTrue } from "./evaluate.ts";
import { parseLone } from "./expression_text.ts";
import { referencesOf } from "./expression.ts";
import { isNodeName, NODE_NAME_RULE, NODES_MAX } from "./workflow.ts";

/** Takes a mistake; `at` says whether the key or its value is to blame. */
export type Fault = (path: KeyPath, at: "key" | "value", message: string) => void;

/** Whether there are so many nodes that nothing more is looked at, which is told. */
export function isTooLarge({ nodes }: Draft, section: string, fault: Fault): boolean {
  if (nodes.length <= NODES_MAX) return false;
  fault([section], "key", `At most ${NODES_MAX} nodes, here are ${nodes.length}`);
  return true;
}

/** All mistakes of a graph. */
export function checkGraph({ nodes, parameters }: Draft, section: string, fault: Fault): void {
  const paths = [
    ...nodes.map(({ path }) => path),
    ...parameters.map((name) => ["parameters", name]),
  ];
  for (const path of paths) {
    const name = String(path.at(-1));
    if (!isNodeName(name)) fault(path, "key", `Invalid name "${name}": use ${NODE_NAME_RULE}`);
  }
  const names = nodes.map(({ name }) => name);
  for (const node of nodes) {
    checkDependencies(node, names, fault);
    if (neverRuns(node)) {
      const message = `Node "${node.name}" can never run: its "when" is always false`;
      fault(node.when?.path ?? node.path, "value", message);
    }
  }
  for (const cycle of cyclesOf(nodes)) {
    const [first, second] = cycle;
    const entry = nodes.find(({ name }) => name === first)?.after
      .find(({ name }) => name === second);
    const message = cycle.length === 2
      ? `Node "${first}" depends on itself`
      : `Nodes wait for each other: ${cycle.join(" → ")}`;
    fault(
      entry?.path ?? [section],
      typeof entry?.path.at(-1) === "string" ? "key" : "value",
      message,
    );
  }
}

function checkDependencies({ after }: DraftNode, names: readonly string[], fault: Fault): void {
  const seen = new Set<string>();
  for (const { name, path } of after) {
    const at = path.at(-1) === name ? "key" : "value";
    if (seen.has(name)) fault(path, at, `Node "${name}" is listed twice`);
    seen.add(name);
    if (names.includes(name)) continue;
    const near = nearest(name, names);
    const suggestion = near === undefined ? "" : `; did you mean \`${near}\`?`;
    fault(path, at, `No node "${name}"${suggestion}`);
  }
}

function neverRuns({ when }: DraftNode): boolean {
  if (when === undefined) return false;
  const parsed = parseLone(when.text);
  if ("fault" in parsed || referencesOf(parsed.expression).length > 0) return false;
  try {
    return !isTrue(evaluate(parsed.expression, {}));
  } catch {
    return false;
  }
}

/** Of each group of nodes that wait for each other a shortest way around, its first node last again. */
function cyclesOf(nodes: readonly DraftNode[]): string[][] {
  const after = new Map(nodes.map((node) => [node.name, node.after.map(({ name }) => name)]));
  const told = new Set<string>();
  const cycles: string[][] = [];
  for (const { name } of nodes) {
    if (told.has(name)) continue;
    const cycle = wayBack(name, after);
    if (cycle === undefined || cycle.some((each) => told.has(each))) continue;
    for (const each of cycle) told.add(each);
    cycles.push(cycle);
  }
  return cycles;
}

/** A shortest way from a node along its dependencies back to it. */
function wayBack(
  start: string,
  after: ReadonlyMap<string, readonly string[]>,
): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const name of queue) {
    for (const next of after.get(name) ?? []) {
      if (next === start) return [...pathTo(name, start, cameFrom), start];
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, name);
      queue.push(next);
    }
  }
  return undefined;
}

function pathTo(name: string, start: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const path = [name];
  for (let at = name; at !== start;) {
    at = cameFrom.get(at) ?? start;
    path.unshift(at);
  }
  return path;
}

/** All nodes that are over before each node begins. */
export function upstreamOf(
  nodes: readonly { name: string; after: readonly string[] }[],
): Map<string, Set<string>> {
  const after = new Map(nodes.map((node) => [node.name, node.after]));
  const found = new Map<string, Set<string>>();
  for (const { name } of nodes) {
    const before = new Set<string>();
    const queue = [...after.get(name) ?? []];
    for (const each of queue) {
      if (before.has(each)) continue;
      before.add(each);
      queue.push(...after.get(each) ?? []);
    }
    found.set(name, before);
  }
  return found;
}
