/**
 * `graph -f`: the graph of a run at work, shown again and again until it is over or suspended.
 *
 * On a terminal the lines are painted anew in their place, as many as there is room for; elsewhere each change of a node is one line, so that it reads the same in a log.
 */
import { sleep } from "../base/clock.ts";
import type { GraphNode, GraphView } from "../base/graph.ts";
import type { Context } from "./command.ts";
import { elapsed } from "./amounts.ts";
import { GraphBlock } from "./graph_block.ts";
import { hasEnded, MARKS } from "./graph_text.ts";
import { oneLine } from "./plain_text.ts";

/** Between two looks, milliseconds. */
const LOOK_MS = 300;

/** Until the run isn't at work any more. Gives its last view, which on a terminal stands there already. */
export async function followGraph(
  context: Context,
  look: () => Promise<GraphView>,
): Promise<{ view: GraphView; isPainted: boolean }> {
  const { stdout, clock } = context.world;
  const screen = stdout.isTerminal ? new GraphBlock(stdout, context.world.size) : undefined;
  let told: ReadonlyMap<string, string> = new Map();
  for (;;) {
    const view = await look();
    const isOver = view.run?.state !== "running";
    if (screen !== undefined) screen.paint(view);
    else {
      told = tellChanges(view, told, (line) => stdout.write(`${line}\n`));
      await stdout.flush();
    }
    if (isOver) return { view, isPainted: screen !== undefined };
    await sleep(clock, LOOK_MS);
  }
}

/** One line for each node that isn't what it was. */
function tellChanges(
  { nodes }: GraphView,
  before: ReadonlyMap<string, string>,
  tell: (line: string) => void,
): Map<string, string> {
  const now = new Map<string, string>();
  for (const node of nodes) {
    const line = changeOf(node);
    now.set(node.name, line);
    if (before.get(node.name) !== line && node.state !== "pending") tell(line);
  }
  return now;
}

function changeOf(node: GraphNode): string {
  const { name, state = "pending", items, duration_ms, reason } = node;
  const count = items === undefined ? "" : `  ${items.completed} of ${items.total}`;
  const time = duration_ms !== undefined && hasEnded(node) ? `  ${elapsed(duration_ms)}` : "";
  const why = reason === undefined ? "" : `  ${oneLine(reason)}`;
  return `${MARKS[state]} ${oneLine(name)}  ${state}${count}${time}${why}`;
}
