/**
 * Operations that keep the state folder in order, and their wire types (JSON, snake_case): repair and export of a journal, removal of old runs.
 *
 * They need no daemon: what changes something takes the run's lease for itself, so a run at work is never touched.
 */

/** What a repair of a journal did, or would do. */
export interface JournalRepair {
  run_id: string;
  /** `unneeded`: whole, or resume mends it by itself; `needed`: nothing was changed yet. */
  state: "unneeded" | "needed" | "repaired";
  kept_records: number;
  /** The first record that can't stay. */
  cut?: { record: number; offset: number; problem: string };
  lost_records: number;
  lost_bytes: number;
  /** Lost records that can't be read: calls in them are not known. */
  unreadable_records: number;
  /** Calls that count as unknown once the run is resumed. */
  unknown_calls: { call: string; tool: string; effect: string }[];
  /** Results whose outcome is known and whose content is lost. */
  lost_contents: { record: number; call: string; problem: string }[];
  /** What no repair can bring back. */
  notices: string[];
  /** Where the journal as it was is kept. */
  original?: string;
}

export type ExportFormat = "json" | "markdown";

/** Which ended runs are to go; what is left out is as `config.yaml` says. */
export interface GarbageRequest {
  /** Ended at least so long ago, milliseconds. */
  olderThanMs?: number;
  /** Beyond so many, the oldest go. */
  maxRuns?: number;
  /** Only says what would go. */
  dryRun: boolean;
}

/** A run that is old enough to go and stays. */
export interface KeptRun {
  run_id: string;
  reason: string;
  /** It was to go and couldn't; absent where somebody still needs it. */
  failed?: true;
}

/** What was removed, or would be. */
export interface GarbageReport {
  dry_run: boolean;
  removed: RemovedRun[];
  /** Runs that should have gone and stay, with the reason. */
  kept: KeptRun[];
  /** Runs that are left, of every state. */
  left: number;
  /** Bytes of files that no other run shares. */
  bytes_freed: number;
}

export interface RemovedRun {
  run_id: string;
  /** 0 for one that never started. */
  pid: number;
  agent: string;
  /** Epoch milliseconds. */
  ended_ms: number;
  bytes: number;
}

export interface Upkeep {
  /** Rejects with INVALID (exit 2) for a run at work, JOURNAL_DAMAGED (exit 7) where nothing could stay. Changes something only when `confirmed`. */
  repairJournal(run: string, options: { confirmed: boolean }): Promise<JournalRepair>;
  /** The run as one document, a piece at a time. What can't be read is told in it. */
  exportJournal(run: string, format: ExportFormat): AsyncIterable<string>;
  /** Removes ended runs; never one at work, suspended or damaged. Rejects with INVALID (exit 2) where `config.yaml` is wrong. */
  collectGarbage(request: GarbageRequest): Promise<GarbageReport>;
}
