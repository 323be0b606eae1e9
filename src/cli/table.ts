/** Tables of text for a terminal. */
import { clipped, textWidth } from "./plain_text.ts";

export interface Column {
  heading: string;
  /** Numbers, whose digits stand under each other. */
  right?: true;
  /** Left out where the table is too wide otherwise, those that come first before the others. */
  spare?: true;
}

/** A line of headings and one per row. Where a `width` is given no line is wider: spare columns are left out as long as the last one has less than `lastMin`, then it is cut. */
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
  const spare = columns.findIndex((column) => column.spare);
  const last = Math.min(lastMin, widths.at(-1) ?? 0);
  if (width !== undefined && width - before < last && spare >= 0) {
    const without = <T>(cells: readonly T[]) => cells.toSpliced(spare, 1);
    return textTable(without(columns), rows.map(without), { width, lastMin });
  }
  const room = width === undefined ? Infinity : Math.max(width - before, 0);
  const lines = all.map((row) =>
    row.map((cell, index) => {
      const gap = " ".repeat(Math.max(0, (widths[index] ?? 0) - textWidth(cell)));
      if (columns[index]?.right) return gap + cell;
      return index === columns.length - 1 ? clipped(cell, room) : cell + gap;
    }).join("  ").trimEnd()
  );
  return width === undefined ? lines : lines.map((line) => clipped(line, width).trimEnd());
}
