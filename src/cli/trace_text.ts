/** A traced call as a line of strace, in the form of seed 000: `[  1.234s] Open(path="…") → 5    2ms`. */
import type { Json } from "../base/json.ts";
import type { TraceRow } from "../base/operations.ts";
import { oneLine } from "./plain_text.ts";

/** A call that took longer is marked, milliseconds. */
export const SLOW_MS = 1_000;
const SECONDS_COLUMNS = 7;
/** Arguments told only in full: they may be long, and `size` says how long. */
const LONG_ARGUMENTS: ReadonlySet<string> = new Set(["input"]);
const MODEL = "Model";

/** The line; `startMs` is where its time counts from. `full` tells the arguments of tools too. */
export function traceLine(row: TraceRow, startMs: number, full: boolean): string {
  // A time is that of the call's end less its rounded duration, so it may be a millisecond early.
  const sinceMs = Math.max(0, row.timestamp_ms - startMs);
  const seconds = (sinceMs / 1000).toFixed(3).padStart(SECONDS_COLUMNS);
  const args = Object.entries(row.args)
    .filter(([name]) => full || !LONG_ARGUMENTS.has(name))
    .map(([name, value]) => `${name}=${valueText(value)}`);
  const result = row.error === null ? valueText(row.result) : row.error;
  const call = `${row.syscall}(${args.join(", ")}) → ${result}`;
  return `[${seconds}s] ${oneLine(call)}    ${durationText(row.duration_ms)}${markOf(row)}`;
}

/** `0μs`, `120μs`, `2ms`, `350ms`, `1.25s`. */
export function durationText(ms: number): string {
  if (ms < 1) return `${Math.max(0, Math.round(ms * 1000))}μs`;
  return ms < 1000 ? `${Math.round(ms)}ms` : `${(ms / 1000).toFixed(2)}s`;
}

function markOf({ syscall, duration_ms }: TraceRow): string {
  if (syscall === MODEL) return " ← LLM call";
  return duration_ms > SLOW_MS ? " ← slow op" : "";
}

function valueText(value: Json): string {
  return value === null ? "<nil>" : JSON.stringify(value);
}
