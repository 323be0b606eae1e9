/**
 * Reads a run's trace, and goes on with it while the run is at work: the file is followed, so reading never disturbs the run, and a reader may be as slow as it likes until the file was replaced twice.
 *
 * Half a line at the end of the file is a record on its way. A gap in the numbers of one process is told as missed.
 */
import type { Clock } from "../base/clock.ts";
import { isJsonObject, type Json } from "../base/json.ts";
import type { TraceItem, TraceRow } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import { followLines } from "./followed_lines.ts";
import { TRACE_FILE, TRACE_FILE_BEFORE } from "./trace_file.ts";

export interface TraceReading {
  storage: Storage;
  clock: Clock;
  /** The run's. */
  folder: string;
  /** What was traced before this reading began is passed over. */
  fromNow: boolean;
  /** Whether the run is still at work; asked after each look that brought nothing. */
  isLive: () => Promise<boolean>;
  signal?: AbortSignal | undefined;
}

/** Records in their order. Ends with the file of a run that isn't at work, or when the signal aborts. A run without a trace has none. */
export async function* readTrace(reading: TraceReading): AsyncGenerator<TraceItem> {
  const numbers = new Map<number, number>();
  const { fromNow } = reading;
  const { folder, ...rest } = reading;
  const path = `${folder}/${TRACE_FILE}`;
  const replaced = `${folder}/${TRACE_FILE_BEFORE}`;
  for await (const line of followLines({ ...rest, path, before: replaced })) {
    const row = line === undefined ? undefined : rowOf(line);
    if (row === undefined) continue;
    const before = numbers.get(row.pid) ?? (fromNow ? row.n - 1 : 0);
    numbers.set(row.pid, row.n);
    const { n, ...record } = row;
    if (n > before + 1) yield { kind: "missed", pid: row.pid, events: n - before - 1 };
    yield { kind: "record", record };
  }
}

/** Undefined for what is no record. */
function rowOf(line: string): (TraceRow & { n: number }) | undefined {
  let value: Json;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const { n, timestamp_ms, pid, syscall, args, result = null, error, duration_ms } = value;
  if (typeof pid !== "number" || typeof timestamp_ms !== "number") return undefined;
  if (typeof syscall !== "string" || !isJsonObject(args ?? null)) return undefined;
  return {
    n: typeof n === "number" ? n : 1,
    timestamp_ms,
    pid,
    syscall,
    args: isJsonObject(args ?? null) ? args as { [name: string]: Json } : {},
    result,
    error: typeof error === "string" ? error : null,
    duration_ms: typeof duration_ms === "number" ? duration_ms : 0,
  };
}
