/** The screen of `rnix top` as lines: processes above, what is mounted (or the calls of one process) below. Pure: the same view gives the same lines. */
import type { MountRow, ProcessRow, TraceRow } from "../base/operations.ts";
import { cost, count, counted, elapsed } from "./amounts.ts";
import { clipped, oneLine } from "./plain_text.ts";
import type { Style } from "./style.ts";
import { type Column, textTable } from "./table.ts";
import { durationText, traceLine } from "./trace_text.ts";
import { rowUse, treeUse } from "./use.ts";

/** All that is on the screen. */
export interface TopView {
  /** Sorted by pid. */
  rows: readonly ProcessRow[];
  mounts: readonly MountRow[];
  /** Calls of each process as far as they were seen, by run id, the newest last. */
  calls: ReadonlyMap<string, readonly TraceRow[]>;
  /** Run id of the selected process. */
  selected: string | undefined;
  /** Whether the lower part shows the selected process's calls. */
  tracing: boolean;
  /** A question or what a key has done; in the last line. */
  message: string | undefined;
}

export interface ScreenSize {
  columns: number;
  rows: number;
}

/** Columns that the last call has at least, before others give way. */
const LAST_CALL_COLUMNS = 24;
/** Server and tool are enough of a tool's path; of a tool of rnix itself its name. */
const TOOL_PATH = /^\/(?:mnt\/mcp\/\d+-([^/]+\/)|dev\/[a-z]+\/)tools\//;
const KEYS = "↑↓ select   p pause   k kill   s calls   q leave";

const PROCESS_COLUMNS: readonly Column[] = [
  { heading: "PID", right: true },
  { heading: "STATE" },
  { heading: "AGENT" },
  { heading: "TURNS", right: true, spare: true },
  { heading: "TOKENS", right: true },
  { heading: "COST", right: true, spare: true },
  { heading: "ELAPSED", right: true },
  { heading: "LAST CALL" },
];

const MOUNT_COLUMNS: readonly Column[] = [
  { heading: "MOUNT" },
  { heading: "TRANSPORT", spare: true },
  { heading: "STATUS" },
  { heading: "TOOLS", right: true },
  { heading: "PROTOCOL" },
];

/** Exactly `size.rows` lines, none wider than `size.columns`. */
export function topScreen(view: TopView, size: ScreenSize, style: Style): string[] {
  const lowerRows = Math.min(lowerLines(view, size).length, Math.max(3, Math.floor(size.rows / 3)));
  const upperRows = Math.max(2, size.rows - lowerRows - 3);
  const lines = [
    style.bold(clipped(headLine(view), size.columns)),
    "",
    ...upper(view, { columns: size.columns, rows: upperRows }, style),
  ];
  const lower = lowerLines(view, size).slice(0, Math.max(0, size.rows - lines.length - 1));
  const body = [...lines, ...lower].slice(0, size.rows - 1);
  const blanks = Array.from({ length: size.rows - 1 - body.length }, () => "");
  const last = clipped(view.message ?? KEYS, size.columns);
  return [...body, ...blanks, view.message === undefined ? style.dim(last) : style.yellow(last)];
}

/** For what is no terminal: everything once, without keys. */
export function topText(view: TopView): string {
  const processes = textTable(PROCESS_COLUMNS, view.rows.map((row) => cellsOf(row, view)));
  return [headLine(view), "", ...processes, "", ...textTable(MOUNT_COLUMNS, mountCells(view))]
    .join("\n");
}

function headLine({ rows, mounts }: TopView): string {
  const running = rows.filter(({ state }) => state === "running" || state === "created").length;
  const up = mounts.filter(({ status }) => status !== "unmounted").length;
  const pids = new Set(rows.map(({ pid }) => pid));
  const roots = rows.filter(({ ppid }) => ppid === 0 || !pids.has(ppid));
  const tokens = roots.reduce((sum, row) => sum + treeUse(row).tokens_used, 0);
  return `rnix top   ${running} at work, ${rows.length - running} suspended   ${
    counted(up, "mount")
  }   ${count(tokens)} tokens`;
}

/** The selected process is always among those shown. */
function upper(view: TopView, size: ScreenSize, style: Style): string[] {
  if (view.rows.length === 0) return padded(["No active processes."], size.rows);
  const [heading = "", ...lines] = textTable(
    PROCESS_COLUMNS,
    view.rows.map((row) => cellsOf(row, view)),
    { width: size.columns, lastMin: LAST_CALL_COLUMNS },
  );
  const at = Math.max(0, view.rows.findIndex(({ run_id }) => run_id === view.selected));
  const room = size.rows - 1;
  const from = Math.max(0, Math.min(at - Math.floor(room / 2), lines.length - room));
  const shown = lines.slice(from, from + room).map((line, index) =>
    from + index === at ? style.bold(`${line}`) : line
  );
  return padded([style.dim(heading), ...shown], size.rows);
}

function lowerLines(view: TopView, { columns }: ScreenSize): string[] {
  if (view.tracing) return ["", ...callLines(view, columns)];
  if (view.mounts.length === 0) return ["", "Nothing is mounted."];
  return ["", ...textTable(MOUNT_COLUMNS, mountCells(view), { width: columns })];
}

function callLines(view: TopView, columns: number): string[] {
  const selected = view.rows.find(({ run_id }) => run_id === view.selected);
  if (selected === undefined) return ["No process is selected."];
  const calls = view.calls.get(selected.run_id) ?? [];
  const [first] = calls;
  if (first === undefined) return [`PID ${selected.pid} has made no call since this began.`];
  return calls.toReversed().map((row) =>
    clipped(traceLine(row, first.timestamp_ms, false), columns)
  );
}

function cellsOf(row: ProcessRow, view: TopView): string[] {
  const last = view.calls.get(row.run_id)?.findLast(({ syscall }) => syscall !== "Close");
  const mark = row.run_id === view.selected ? ">" : "";
  return [
    `${mark}${row.pid}`,
    row.reason === undefined ? row.state : `${row.state} (${row.reason})`,
    oneLine(row.agent),
    count(rowUse(row).turns),
    count(rowUse(row).tokens_used),
    cost(rowUse(row).cost_usd),
    elapsed(row.elapsed_ms),
    last === undefined ? oneLine(row.intent) : callText(last, view.calls.get(row.run_id) ?? []),
  ];
}

/** The call and the path of what it was made on, which only its `Open` names. A tool that was opened last is at work: its `Write` is told once it is over. */
function callText(last: TraceRow, calls: readonly TraceRow[]): string {
  const open = last.syscall === "Open" || last.syscall === "Model"
    ? last
    : calls.findLast((row) => row.syscall === "Open" && row.result === last.args["fd"]);
  const given = open?.args["path"];
  const path = typeof given === "string" ? given.replace(TOOL_PATH, "$1") : "";
  if (last.syscall === "Open" && last.error === null) return oneLine(`${path} …`);
  const failed = last.error === null ? "" : " failed";
  return oneLine(
    `${last.syscall} ${path} ${durationText(last.duration_ms)}${failed}`,
  );
}

function mountCells({ mounts }: TopView): string[][] {
  return mounts.map((row) => [
    oneLine(row.mount),
    oneLine(row.transport),
    row.status,
    count(row.tools),
    oneLine(row.protocol_version),
  ]);
}

function padded(lines: string[], rows: number): string[] {
  return [...lines, ...Array.from({ length: Math.max(0, rows - lines.length) }, () => "")]
    .slice(0, rows);
}
