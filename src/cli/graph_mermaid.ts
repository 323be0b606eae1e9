/** A workflow as Mermaid text: a flowchart that GitHub and many editors draw. */
import type { GraphNode, GraphNodeState, GraphView } from "../base/graph.ts";
import { elapsed } from "./amounts.ts";
import { hasEnded } from "./graph_text.ts";
import { oneLine } from "./plain_text.ts";

/** Fill and border of each state. */
export const COLOURS: { readonly [state in GraphNodeState]: readonly [string, string] } = {
  pending: ["#f5f5f5", "#9e9e9e"],
  running: ["#e3f2fd", "#1e88e5"],
  suspended: ["#fff8e1", "#f9a825"],
  completed: ["#e8f5e9", "#43a047"],
  failed: ["#ffebee", "#e53935"],
  skipped: ["#fafafa", "#bdbdbd"],
};

/** The flowchart; nodes are numbered, since a name may be a word of Mermaid's own. */
export function graphMermaid({ nodes }: GraphView): string {
  const ids = new Map(nodes.map(({ name }, index) => [name, `n${index + 1}`]));
  const lines = ["flowchart TD"];
  for (const node of nodes) lines.push(`  ${ids.get(node.name)}["${labelOf(node)}"]`);
  for (const { name, depends_on, when } of nodes) {
    const arrow = when === undefined ? "-->" : "-.->";
    for (const before of depends_on) lines.push(`  ${ids.get(before)} ${arrow} ${ids.get(name)}`);
  }
  const states = [...new Set(nodes.flatMap(({ state }) => state ?? []))];
  for (const state of states) {
    const [fill, stroke] = COLOURS[state];
    const own = nodes.flatMap((node) => node.state === state ? ids.get(node.name) ?? [] : []);
    lines.push(`  classDef ${state} fill:${fill},stroke:${stroke},color:#212121`);
    lines.push(`  class ${own.join(",")} ${state}`);
  }
  return lines.join("\n");
}

function labelOf(node: GraphNode): string {
  return linesOf(node).map((line) => escaped(line)).join("<br/>");
}

/** What stands in the box of a node. */
export function linesOf(node: GraphNode): string[] {
  const { name, agent, state, duration_ms, when, for_each, items } = node;
  const time = duration_ms !== undefined && hasEnded(node) ? `, ${elapsed(duration_ms)}` : "";
  const count = items === undefined ? "" : ` (${items.completed} of ${items.total})`;
  const each = for_each === undefined ? "" : ", each item";
  return [
    name,
    `${oneLine(agent)}${each}`,
    ...(state === undefined
      ? when === undefined ? [] : [`when ${oneLine(when)}`]
      : [`${state}${time}${count}`]),
  ];
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "#quot;").replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
