/** `rnix graph`: a workflow as text, Mermaid or a picture; of a run with states and times. */
import type { GraphView } from "../../base/graph.ts";
import { usageError } from "../arguments.ts";
import type { Command, Context, Outcome } from "../command.ts";
import { hasSwitch, valueOf } from "../flag_values.ts";
import { followGraph } from "../graph_follow.ts";
import { graphMermaid } from "../graph_mermaid.ts";
import { graphSvg } from "../graph_svg.ts";
import { graphText } from "../graph_text.ts";

const FORMATS = ["text", "mermaid", "svg"] as const;
type Format = (typeof FORMATS)[number];

/** `rnix graph`. */
export const graph: Command = {
  name: "graph",
  summary: "Show a workflow as a graph, of a run with states and times",
  positionals: [{ name: "manifest-or-run", kind: "run" }],
  flags: [
    { name: "follow", short: "f", summary: "Of a run at work: until it is over or suspended" },
    {
      name: "format",
      value: "FORMAT",
      summary: "text (default), mermaid or svg",
      choices: FORMATS,
    },
  ],
  details:
    `A run is named as for rnix resume, a workflow as for rnix run; nothing is started, and no daemon is
needed. --json gives the nodes as data.`,
  async run(invocation, context) {
    const format = formatOf(valueOf(invocation, "format") ?? "text");
    if (context.json && format !== "text") {
      throw usageError('"--json" prints JSON alone', `leave out "--format ${format}"`);
    }
    const system = await context.system();
    const { cwd } = context.world;
    const client = { cwd, env: context.env };
    const look = () => system.graph({ of: invocation.words[0] ?? "", client });
    if (hasSwitch(invocation, "follow")) return await follow(context, format, look);
    const view = await look();
    const text = drawn(view, format, context.world.columns());
    return { exitCode: 0, data: view, text, ...(format === "text" ? { untrusted: true } : {}) };
  },
};

async function follow(
  context: Context,
  format: Format,
  look: () => Promise<GraphView>,
): Promise<Outcome> {
  if (context.json || format !== "text") {
    throw usageError('"--follow" shows text alone', 'leave out "--json" and "--format"');
  }
  const { view, isPainted } = await followGraph(context, look);
  if (isPainted || view.run !== undefined) return { exitCode: 0, data: view, streamed: true };
  return { exitCode: 0, data: view, text: graphText(view), untrusted: true };
}

function formatOf(text: string): Format {
  const format = FORMATS.find((each) => each === text);
  if (format !== undefined) return format;
  throw usageError(`"--format" doesn't know "${text}"`, `one of: ${FORMATS.join(", ")}`);
}

function drawn(view: GraphView, format: Format, width: number | undefined): string {
  if (format === "mermaid") return graphMermaid(view);
  return format === "svg" ? graphSvg(view) : graphText(view, width);
}
