/** The screen of `rnix top` as lines: processes above, what is mounted (or the calls of one process) below. Pure: the same view gives the same lines. */
import type { MountRow, ProcessRow, TraceRow } from "../base/operations.ts";
import { cost, count, counted, elapsed } from "./amounts.ts";
import { flightText, toolText } from "./flight_text.ts";
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
  /** When this is, epoch milliseconds. */
  nowMs: number;
  /** A question or what a key has done; in the last line. */
  message: string | undefined;
}

export interface ScreenSize {
  columns: number;
  rows: number;
}

/** Columns that the last call has at least, before others give way. */
const LAST_CALL_COLUMNS = 24;
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
  const flying = selected.in_flight ?? [];
  const [first] = calls;
  if (first === undefined && flying.length === 0) {
    return [`PID ${selected.pid} has made no call since this began.`];
  }
  const startMs = Math.min(...calls.map(({ timestamp_ms }) => timestamp_ms));
  return [
    ...flying.map((each) => `[in flight] ${flightText(each, view.nowMs)}`),
    ...calls.toReversed().map((row) => traceLine(row, startMs, false)),
  ].map((line) => clipped(line, columns));
}

function cellsOf(row: ProcessRow, view: TopView): string[] {
  const mark = row.run_id === view.selected ? ">" : "";
  return [
    `${mark}${row.pid}`,
    row.reason === undefined ? row.state : `${row.state} (${row.reason})`,
    oneLine(row.agent),
    count(rowUse(row).turns),
    count(rowUse(row).tokens_used),
    cost(rowUse(row).cost_usd),
    elapsed(row.elapsed_ms),
    lastCall(row, view),
  ];
}

/** What is in flight, else the last call that was made, else what it is there for. */
function lastCall({ run_id, intent, in_flight = [] }: ProcessRow, view: TopView): string {
  const [oldest, ...others] = in_flight;
  if (oldest !== undefined) {
    const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
    return `${flightText(oldest, view.nowMs)}${more}`;
  }
  const calls = view.calls.get(run_id) ?? [];
  const at = calls.findLastIndex((_, index) => hasTakenTime(calls, index));
  return at < 0 ? oneLine(intent) : callText(calls, at);
}

/** Of the four lines of a tool's use its `Write` is the one that took the time; opening, closing and taking what is there by then don't. */
function hasTakenTime(calls: readonly TraceRow[], at: number): boolean {
  const row = calls[at];
  if (row === undefined || row.syscall === "Close") return false;
  if (row.error !== null) return true;
  if (row.syscall !== "Read") return row.syscall !== "Open";
  const before = calls.slice(0, at).findLast(({ args }) => args["fd"] === row.args["fd"]);
  return before?.syscall !== "Write";
}

/** The call and the path of what it was made on, which only the `Open` before it names. */
function callText(calls: readonly TraceRow[], at: number): string {
  const call = calls[at];
  if (call === undefined) return "";
  const open = calls.slice(0, at).findLast(({ syscall, result }) =>
    syscall === "Open" && result === call.args["fd"]
  );
  const given = call.args["path"] ?? open?.args["path"];
  const path = typeof given === "string" ? toolText(given) : "";
  const failed = call.error === null ? "" : " failed";
  return oneLine(`${call.syscall} ${path} ${durationText(call.duration_ms)}${failed}`);
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
