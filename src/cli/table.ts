/** Tables of text for a terminal. */
import { clipped, textWidth } from "./plain_text.ts";

export interface Column {
  heading: string;
  /** Numbers, whose digits stand under each other. */
  right?: true;
}

/** A line of headings and one per row. The last column is cut so that a line takes at most `columns`, where given, but never to fewer than `lastMin`. */
export function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { width, lastMin = 10 }: { width?: number | undefined; lastMin?: number } = {},
): string[] {
  const all = [columns.map(({ heading }) => heading), ...rows];
  const widths = columns.map((_, index) =>
    all.reduce((most, row) => Math.max(most, textWidth(row[index] ?? "")), 0)
  );
  const before = widths.slice(0, -1).reduce((sum, each) => sum + each + 2, 0);
  const room = width === undefined ? Infinity : Math.max(width - before, lastMin);
  return all.map((row) =>
    row.map((cell, index) => {
      const gap = " ".repeat(Math.max(0, (widths[index] ?? 0) - textWidth(cell)));
      if (columns[index]?.right) return gap + cell;
      return index === columns.length - 1 ? clipped(cell, room) : cell + gap;
    }).join("  ").trimEnd()
  );
}
