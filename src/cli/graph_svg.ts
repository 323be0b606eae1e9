/** A workflow as an SVG picture: a row of boxes per wave, an arrow per dependency. Needs nothing from elsewhere. */
import type { GraphNode, GraphView } from "../base/graph.ts";
import { COLOURS, linesOf } from "./graph_mermaid.ts";
import { clipped } from "./plain_text.ts";

/** Pixels. */
const BOX = { width: 180, height: 62, gapX: 24, gapY: 56, margin: 20 };
const LINE_COLUMNS = 26;
const LINE_HEIGHT = 17;

interface Placed {
  node: GraphNode;
  x: number;
  y: number;
}

/** The picture, as one document. */
export function graphSvg(view: GraphView): string {
  const rows = rowsOf(view.nodes);
  const columns = Math.max(1, ...rows.map((row) => row.length));
  const width = 2 * BOX.margin + columns * BOX.width + (columns - 1) * BOX.gapX;
  const height = 2 * BOX.margin + rows.length * BOX.height + (rows.length - 1) * BOX.gapY;
  const placed = rows.flatMap((row, index) => placedRow(row, index, width));
  const byName = new Map(placed.map((each) => [each.node.name, each]));
  const arrows = placed.flatMap((to) =>
    to.node.depends_on.flatMap((name) => {
      const from = byName.get(name);
      return from === undefined ? [] : [arrow(from, to)];
    })
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(view.name)}</title>`,
    `<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#757575"/></marker></defs>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...arrows,
    ...placed.map(box),
    "</svg>",
  ].join("\n");
}

function rowsOf(nodes: readonly GraphNode[]): GraphNode[][] {
  const rows: GraphNode[][] = [];
  for (const node of nodes) (rows[node.wave - 1] ??= []).push(node);
  return rows;
}

function placedRow(row: readonly GraphNode[], index: number, width: number): Placed[] {
  const taken = row.length * BOX.width + (row.length - 1) * BOX.gapX;
  const from = (width - taken) / 2;
  const y = BOX.margin + index * (BOX.height + BOX.gapY);
  return row.map((node, column) => ({ node, x: from + column * (BOX.width + BOX.gapX), y }));
}

function arrow(from: Placed, to: Placed): string {
  const [x1, y1] = [from.x + BOX.width / 2, from.y + BOX.height];
  const [x2, y2] = [to.x + BOX.width / 2, to.y];
  const bend = Math.max(20, (y2 - y1) / 2);
  const dashed = to.node.when === undefined ? "" : ` stroke-dasharray="5 4"`;
  return `<path d="M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${
    y2 - bend
  } ${x2} ${y2}" fill="none" stroke="#757575"${dashed} marker-end="url(#arrow)"/>`;
}

function box({ node, x, y }: Placed): string {
  const [fill, stroke] = COLOURS[node.state ?? "pending"];
  const lines = linesOf(node).map((line, index) => {
    const weight = index === 0 ? ` font-weight="bold"` : ` fill="#616161"`;
    const top = y + 20 + index * LINE_HEIGHT;
    return `<text x="${x + BOX.width / 2}" y="${top}" text-anchor="middle"${weight}>${
      escaped(clipped(line, LINE_COLUMNS))
    }</text>`;
  });
  const title = node.reason ?? node.when;
  return [
    `<g><rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6" fill="${fill}" stroke="${stroke}" stroke-width="1.5"/>`,
    ...(title === undefined ? [] : [`<title>${escaped(title)}</title>`]),
    ...lines,
    "</g>",
  ].join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    // deno-lint-ignore no-control-regex
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "");
}
