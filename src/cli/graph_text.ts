/** A workflow as lines: by waves where it is only planned, with states and times where it has run. */
import type { GraphNode, GraphNodeState, GraphView } from "../base/graph.ts";
import { shortRunId } from "../base/ids.ts";
import { counted, elapsed } from "./amounts.ts";
import { oneLine } from "./plain_text.ts";
import { textTable } from "./table.ts";

/** What stands before a node. */
export const MARKS: { readonly [state in GraphNodeState]: string } = {
  pending: "·",
  running: "▶",
  suspended: "‖",
  completed: "✓",
  failed: "✗",
  skipped: "-",
};

/** The graph of a manifest or of a run. */
export function graphText(view: GraphView, width?: number): string {
  const { run } = view;
  if (run === undefined) return planText(view, `${oneLine(view.name)}: ${sizeOf(view)}`, width);
  const reason = run.reason === undefined ? "" : ` (${run.reason})`;
  const exit = run.exit_code === undefined ? "" : ` (${run.exit_code})`;
  const head = `${oneLine(view.name)}  run ${shortRunId(run.run_id)}  PID ${run.pid}  ` +
    `${run.state}${reason}${exit}  ${elapsed(run.elapsed_ms)}`;
  const rows = view.nodes.map((node) => [
    `${MARKS[node.state ?? "pending"]} ${oneLine(node.name)}`,
    oneLine(node.agent),
    node.state ?? "pending",
    node.duration_ms === undefined || !hasEnded(node) ? "" : elapsed(node.duration_ms),
    factsOf(node),
  ]);
  const columns = [
    { heading: "  NODE" },
    { heading: "AGENT", spare: true as const },
    { heading: "STATE" },
    { heading: "TIME", right: true as const },
    { heading: "" },
  ];
  return [head, ...textTable(columns, rows, { width })].join("\n");
}

/** What a workflow would do, wave by wave; each node begins as soon as those that it waits for are over. */
export function planText(view: GraphView, head: string, width?: number): string {
  const rows = view.nodes.toSorted((a, b) => a.wave - b.wave).map((node, index, all) => [
    all[index - 1]?.wave === node.wave ? "" : String(node.wave),
    oneLine(node.name),
    oneLine(node.agent),
    rulesOf(node),
  ]);
  const columns = [
    { heading: "WAVE", right: true as const },
    { heading: "NODE" },
    { heading: "AGENT" },
    { heading: "" },
  ];
  const parameters = Object.entries(view.parameters).map(([name, value]) =>
    value === null ? `${name} (to be given with --set)` : `${name}=${oneLine(String(value))}`
  );
  return [
    head,
    ...(parameters.length === 0 ? [] : [`parameters: ${parameters.join(", ")}`]),
    ...textTable(columns, rows, { width }),
  ].join("\n");
}

/** How large it is, in words. */
export function sizeOf({ nodes, max_parallel }: GraphView): string {
  const waves = Math.max(0, ...nodes.map(({ wave }) => wave));
  return `${counted(nodes.length, "node")} in ${
    counted(waves, "wave")
  }, at most ${max_parallel} at once`;
}

/** Whether nothing more comes of it. */
export function hasEnded({ state }: GraphNode): boolean {
  return state === "completed" || state === "failed";
}

/** What is said of a node in the manifest. */
export function rulesOf(node: GraphNode): string {
  const { when, for_each, attempts_max, on_failure, has_output } = node;
  return [
    ...afterText(node),
    ...(when === undefined ? [] : [`when ${oneLine(when)}`]),
    ...(for_each === undefined ? [] : [`for each of ${oneLine(for_each)}`]),
    ...(attempts_max === undefined ? [] : [`up to ${attempts_max} tries`]),
    ...(on_failure === undefined ? [] : ["goes on after a failure"]),
    ...(has_output === undefined ? [] : ["answers in JSON"]),
  ].join("; ");
}

/** What has become of a node besides its state. */
export function factsOf(node: GraphNode): string {
  const { items, attempts, reason, processes } = node;
  const pids = processes?.length === 1 ? [`PID ${processes[0]?.pid}`] : [];
  return [
    ...afterText(node),
    ...(items === undefined ? [] : [itemsText(items)]),
    ...(attempts === undefined ? [] : [`${attempts} tries`]),
    ...pids,
    ...(reason === undefined ? [] : [oneLine(reason)]),
  ].join("; ");
}

function afterText({ depends_on, regardless = [] }: GraphNode): string[] {
  if (depends_on.length === 0) return [];
  const names = depends_on.map((name) => regardless.includes(name) ? `${name} (ended)` : name);
  return [`after ${names.join(", ")}`];
}

function itemsText({ total, completed, failed, running }: NonNullable<GraphNode["items"]>): string {
  const more = [
    ...(failed === 0 ? [] : [`${failed} failed`]),
    ...(running === 0 ? [] : [`${running} at work`]),
  ];
  return [`${completed} of ${total}`, ...more].join(", ");
}
