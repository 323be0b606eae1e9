/** A run whose daemon was lost: what it came to is in its journal, which needs no daemon to be read. */
import { type Clock, sleep } from "../base/clock.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import type { Reader, RunHandle, RunReport } from "../base/operations.ts";

/** A process that was killed lets go of its lease some moments after its socket. */
const HELD_MS_MAX = 2_000;
const STEP_MS = 50;

/** The handle, whose report of a lost daemon is completed by the journal. */
export function withJournal(
  handle: RunHandle,
  reader: () => Promise<Reader>,
  clock: Clock,
): RunHandle {
  const done = handle.done.then((report) =>
    report.exit_code === EXIT_UNREACHABLE ? completed(report, reader, clock) : report
  );
  return {
    pid: handle.pid,
    runId: handle.runId,
    suspend: (reason) => handle.suspend(reason),
    kill: (signal) => handle.kill(signal),
    done,
  };
}

/** Never rejects: what can't be read leaves the report as it is. */
async function completed(
  lost: RunReport,
  reader: () => Promise<Reader>,
  clock: Clock,
): Promise<RunReport> {
  try {
    const found = await readReport(await reader(), lost.run_id, clock);
    if (found === undefined) return lost;
    // Its end had become durable, and only the word of it was lost.
    if (found.state === "dead") return found;
    const { turns, tokens_used, cost_usd, tree, elapsed_ms, unknown_calls } = found;
    const unknown = unknown_calls === undefined ? {} : { unknown_calls };
    const used = { turns, tokens_used, cost_usd, ...(tree === undefined ? {} : { tree }) };
    return { ...lost, ...used, elapsed_ms, ...unknown };
  } catch {
    return lost;
  }
}

/** Undefined for a run that some process goes on holding: a daemon that is silent and not gone. */
async function readReport(
  reader: Reader,
  runId: string,
  clock: Clock,
): Promise<RunReport | undefined> {
  const endMs = clock.monotonic() + HELD_MS_MAX;
  for (;;) {
    const report = await reader.report(runId);
    if (report !== undefined || clock.monotonic() >= endMs) return report;
    await sleep(clock, STEP_MS);
  }
}
