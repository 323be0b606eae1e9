/** A graph painted on a terminal, and painted anew in the same place. */
import type { GraphView } from "../base/graph.ts";
import { graphText } from "./graph_text.ts";
import type { Output } from "./output.ts";
import { clipped } from "./plain_text.ts";

/** Lines of the terminal that are left to what else is told. */
const ROWS_LEFT = 2;

/** Lines that are painted again and again. */
export class GraphBlock {
  readonly #output: Output;
  readonly #size: () => { columns: number; rows: number } | undefined;
  /** Lines that stand there. */
  #painted = 0;

  constructor(output: Output, size: () => { columns: number; rows: number } | undefined) {
    this.#output = output;
    this.#size = size;
  }

  /** As many lines as there is room for. A terminal that doesn't keep up is shown the next one. */
  paint(view: GraphView): void {
    const { columns, rows } = this.#size() ?? { columns: 80, rows: 24 };
    const all = graphText(view, columns).split("\n");
    const room = Math.max(rows - ROWS_LEFT, 1);
    const left = all.length - room;
    const lines = left > 0 ? [...all.slice(0, room), `… and ${left} more`] : all;
    const text = lines.map((line) => clipped(line, columns)).join("\n");
    if (this.#output.offer(`${this.#back()}${text}\n`)) this.#painted = lines.length;
  }

  /** Takes it away, so that something else can be told where it stood. */
  erase(): void {
    if (this.#painted > 0 && this.#output.offer(this.#back())) this.#painted = 0;
  }

  /** From the start of the line: a terminal writes what is typed, such as the `^C` of an interrupt, where the cursor stands. */
  #back(): string {
    return `\r${this.#painted === 0 ? "" : `\x1b[${this.#painted}A`}\x1b[J`;
  }
}
