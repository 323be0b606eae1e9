/** `rnix ps`: processes, and the calls whose outcome is unknown. */
import type { ProcessRow } from "../../base/operations.ts";
import { cost, count, elapsed } from "../amounts.ts";
import type { Command } from "../command.ts";
import { hasSwitch } from "../flag_values.ts";
import { clipped, oneLine, textWidth } from "../plain_text.ts";
import { unknownLine } from "../report.ts";

export const ps: Command = {
  name: "ps",
  summary: "List processes",
  positionals: [],
  flags: [{ name: "all", short: "a", summary: "Also those that have ended" }],
  async run(invocation, context) {
    const system = await context.system();
    const rows = (await system.processes({ all: hasSwitch(invocation, "all") }))
      .toSorted((a, b) => a.pid - b.pid);
    return {
      exitCode: 0,
      data: { processes: rows },
      text: context.quiet ? rows.map(({ pid }) => `${pid}\n`).join("") : processTable(
        rows,
        context.world.stdout.isTerminal ? context.world.columns() : undefined,
      ),
    };
  },
};

const HEADINGS = ["PID", "PPID", "STATE", "AGENT", "TURNS", "TOKENS", "COST", "ELAPSED", "INTENT"];
/** Columns of numbers, whose digits stand under each other. */
const RIGHT = new Set(["PID", "PPID", "TURNS", "TOKENS", "COST", "ELAPSED"]);
const INTENT_COLUMNS_MIN = 10;

/** The table, a count line, and a line per unknown outcome; the intent is cut to `columns` where given. */
export function processTable(rows: readonly ProcessRow[], columns: number | undefined): string {
  if (rows.length === 0) return "No active processes.";
  const cells = rows.map((row) => [
    String(row.pid),
    String(row.ppid),
    row.reason === undefined ? row.state : `${row.state} (${row.reason})`,
    oneLine(row.agent),
    count(row.turns),
    count(row.tokens_used),
    cost(row.cost_usd),
    elapsed(row.elapsed_ms),
    oneLine(row.intent),
  ]);
  const widths = HEADINGS.map((heading, index) =>
    Math.max(...[heading, ...cells.map((row) => row[index] ?? "")].map(textWidth))
  );
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0);
  const room = columns === undefined ? Infinity : Math.max(columns - before, INTENT_COLUMNS_MIN);
  const line = (row: readonly string[]) =>
    row.map((cell, index) => {
      if (index === HEADINGS.length - 1) return clipped(cell, room);
      const gap = " ".repeat(Math.max(0, (widths[index] ?? 0) - textWidth(cell)));
      return RIGHT.has(HEADINGS[index] ?? "") ? gap + cell : cell + gap;
    }).join("  ").trimEnd();
  const unknown = rows.flatMap((row) =>
    (row.unknown_calls ?? []).map((call) => `PID ${row.pid} outcome unknown: ${unknownLine(call)}`)
  );
  return [line(HEADINGS), ...cells.map(line), countLine(rows), ...unknown].join("\n");
}

/** `1 active, 2 suspended, 3 total` */
function countLine(rows: readonly ProcessRow[]): string {
  const of = (...states: string[]) => rows.filter((row) => states.includes(row.state)).length;
  const parts = [
    [of("created", "running"), "active"],
    [of("suspended"), "suspended"],
    [of("zombie"), "zombie"],
    [of("dead"), "dead"],
  ] as const;
  const told = parts.filter(([number, word]) => number > 0 || word === "active");
  return [...told.map(([number, word]) => `${number} ${word}`), `${rows.length} total`].join(", ");
}
