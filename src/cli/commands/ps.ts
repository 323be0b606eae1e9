/** `rnix ps`: processes, and the calls whose outcome is unknown. */
import type { ProcessRow } from "../../base/operations.ts";
import { cost, count, elapsed } from "../amounts.ts";
import type { Command } from "../command.ts";
import { hasSwitch } from "../flag_values.ts";
import { clipped, oneLine } from "../plain_text.ts";
import { unknownLine } from "../report.ts";
import { type Column, textTable } from "../table.ts";
import { rowUse } from "../use.ts";

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

const COLUMNS: readonly Column[] = [
  { heading: "PID", right: true },
  { heading: "PPID", right: true, spare: true },
  { heading: "STATE" },
  { heading: "AGENT" },
  { heading: "TURNS", right: true, spare: true },
  { heading: "TOKENS", right: true },
  { heading: "COST", right: true, spare: true },
  { heading: "ELAPSED", right: true },
  { heading: "INTENT" },
];

/** The table, a count line, and a line per unknown outcome; the intent is cut to `width` columns in all where given. */
export function processTable(rows: readonly ProcessRow[], width: number | undefined): string {
  if (rows.length === 0) return "No active processes.";
  const tree = asTree(rows);
  const cells = tree.map(({ row, depth }) => [
    String(row.pid),
    String(row.ppid),
    stateText(row),
    `${"  ".repeat(Math.max(0, depth - 1))}${depth > 0 ? "└ " : ""}${oneLine(row.agent)}`,
    count(rowUse(row).turns),
    count(rowUse(row).tokens_used),
    cost(rowUse(row).cost_usd),
    elapsed(row.elapsed_ms),
    oneLine(row.intent),
  ]);
  const unknown = tree.flatMap(({ row }) =>
    (row.unknown_calls ?? []).map((call) => {
      const line = `PID ${row.pid} outcome unknown: ${unknownLine(call)}`;
      return width === undefined ? line : clipped(line, width);
    })
  );
  return [...textTable(COLUMNS, cells, { width }), countLine(rows), ...unknown].join("\n");
}

/** `running`, `suspended (limit)`, and how a dead one came to its end: `dead (0)`, `dead (TERM)`. */
function stateText({ state, reason, signal, exit_code }: ProcessRow): string {
  const why = reason ?? signal ?? exit_code;
  return why === undefined ? state : `${state} (${why})`;
}

/** Children under their parents, whichever has the greater pid: a parent that was resumed has a new one. A row whose parent isn't listed stands at the left. */
function asTree(rows: readonly ProcessRow[]): { row: ProcessRow; depth: number }[] {
  const listed = new Set(rows.map(({ pid }) => pid));
  const isRoot = ({ pid, ppid }: ProcessRow) => ppid === 0 || pid === ppid || !listed.has(ppid);
  const below = (row: ProcessRow, depth: number): { row: ProcessRow; depth: number }[] => [
    { row, depth },
    ...rows.filter((each) => !isRoot(each) && each.ppid === row.pid)
      .flatMap((each) => below(each, depth + 1)),
  ];
  return rows.filter(isRoot).flatMap((row) => below(row, 0));
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
