/**
 * What a journal holds: the entry types of format version 1 (design, section 5).
 *
 * The line format is in `line.ts`. Names are snake_case because these objects are the bytes on disk. Adding an entry type, or a meaning to a field, raises `FORMAT_VERSION`.
 */
import type { Budget, Totals, Usage } from "../base/budget.ts";
import type { EffectClass, Risk } from "../base/effect.ts";
import type { EndSignal, SuspendReason } from "../base/exit.ts";
import type { Json, JsonObject } from "../base/json.ts";

export const FORMAT_VERSION = 1;

/** Name of content in the run's `blobs/`. */
export interface BlobRef {
  sha256: string;
  bytes: number;
}

/** A tool as it was when its mount became ready. */
export interface ToolRecord {
  /** Model-facing name. */
  name: string;
  /** SHA-256 of the canonical definition. */
  sha256: string;
  effect: EffectClass;
  risk: Risk;
  /** Arguments and results are masked in trace, logs and events. */
  sensitive?: true;
}

export interface ErrorRecord {
  code: string;
  message: string;
  hint?: string;
}

/** The run that is played again, and which side of it is there in earnest. */
export interface ReplayOf {
  run_id: string;
  live: "model" | "mcp";
}

/** What a call brought. `content` and `structured` are as the model sees them: redacted, sanitised, cut. */
export interface CallAnswer {
  outcome: "ok" | "error";
  content: Json[];
  structured?: Json;
  /** The whole text where `content` was cut. */
  whole?: BlobRef;
  warnings?: string[];
}

/** Why an outcome is unknown. `cut`: the journal lost records that may have been durable. */
export type UnknownCause = "timeout" | "disconnected" | "cancelled" | "crash" | "cut";

/** How an unknown outcome was settled. `answer`: the answer came after all. `gave-up`: repeats used up. `done`: a person says it happened. */
export type SettleHow = "retry" | "skip" | "fail" | "done" | "answer" | "gave-up";

export type EntryBody =
  | {
    type: "run.started";
    run_id: string;
    pid: number;
    parent_run_id?: string;
    /** The run this one was forked from, and the last seq taken over. */
    forked_from?: { run_id: string; seq: number };
    /** The program that this run executes, and the version of its reducer. */
    program: string;
    agent: string;
    /** The resolved manifest with its texts, secrets as references: JSON in a blob. */
    spec: BlobRef;
    intent: string;
    cwd: string;
    model: string;
    budget: Budget;
    rnix_version: string;
    /** Set on a run whose model or tools only answer as those of another run did; it isn't taken up again. */
    replay_of?: ReplayOf;
  }
  | {
    type: "run.resumed";
    pid: number;
    /** Changed where the manifest was read anew. */
    spec: BlobRef;
    /** A new intent for a completed run. */
    intent?: string;
    model: string;
    budget: Budget;
    /** Active time of all incarnations before, milliseconds: the time since an interrupted one's last entry isn't part of it. */
    active_ms: number;
    rnix_version: string;
  }
  | {
    type: "mount.ready" | "mount.changed";
    server: string;
    era: string;
    protocol_version: string;
    server_info?: JsonObject;
    /** By the server's own tool name, sorted. */
    tools: { [tool: string]: ToolRecord };
    /** All that the server said of its tools: a list of definitions as JSON in a blob. */
    definitions?: BlobRef;
    /** Tools set aside, with the reason. */
    set_aside?: { [tool: string]: string };
  }
  | { type: "mount.failed"; server: string; required: boolean; error: ErrorRecord }
  | {
    type: "model.request";
    turn: number;
    attempt: number;
    provider: string;
    model: string;
    request_sha256: string;
    tokens_estimate: number;
    /** What it counts for if it brings no reply, US dollars; absent without a known price. */
    cost_estimate_usd?: number;
    /** What for, where it isn't for the turn's own reply: its answer is a `context.compacted`. */
    purpose?: "summary";
    /** Set on a request that another model is asked because this one failed, in the same turn and attempt. */
    fallback_for?: { provider: string; model: string; error: ErrorRecord };
  }
  | {
    type: "model.reply";
    turn: number;
    attempt: number;
    /** The program's own form of a message; the kernel doesn't look inside. */
    message: Json;
    usage: Usage;
    /** US dollars; absent without a known price. */
    cost_usd?: number;
    finish_reason: string;
    duration_ms: number;
  }
  /** The model's provider refused the turn's request because the conversation is too long; it is compacted before the turn is asked again. */
  | { type: "context.exceeded"; turn: number; attempt: number; error: ErrorRecord }
  | {
    type: "context.compacted";
    /** The turn that is due, and the attempt of its compaction. */
    turn: number;
    attempt: number;
    /** First message that was compacted and the one after the last, from 0, in the history as it was. */
    from: number;
    to: number;
    /** What the model wrote to stand in their place. Absent: the messages stay, and what their tool results held is left out. */
    summary?: string;
    /** Why there is no summary; absent where none was asked for. */
    error?: ErrorRecord;
    /** Of the request for a summary, where it was answered. */
    usage?: Usage;
    /** US dollars; absent without a known price. */
    cost_usd?: number;
    duration_ms: number;
  }
  | {
    type: "call.intent";
    call: string;
    attempt: number;
    /** Model-facing name. */
    tool: string;
    /** VFS path in the process's own view: `/mnt/mcp/{server}/tools/{tool}`. */
    device: string;
    effect: EffectClass;
    input_sha256: string;
    idempotency_key: string;
    /** Set where the call is a child process: its run, which is made if it isn't there and taken up if it hasn't ended. Such a call's outcome is never unknown. */
    child_run_id?: string;
    /** Set where that run has ended without success, for an earlier call: it is taken up after the end that its process `pid` came to. `totals` were counted by then. */
    continues?: { pid: number; totals: Totals };
  }
  /** The child of a call is there. */
  | { type: "child.spawned"; call: string; run_id: string; pid: number; detached?: true }
  /** A child has ended; what it used counts for its parent. */
  | {
    type: "child.exited";
    call: string;
    run_id: string;
    status: "completed" | "failed" | "killed";
    /** Of all its processes so far. */
    totals: Totals;
    /** The process that came to this end. */
    pid?: number;
  }
  /** A pause that a program asked for is over. */
  | { type: "timer"; key: string }
  | ({
    type: "call.result";
    call: string;
    attempt: number;
    duration_ms: number;
    /** Set when the call was never sent. */
    error?: ErrorRecord;
  } & (CallAnswer | { outcome: "unknown"; cause: UnknownCause }))
  | {
    type: "call.settled";
    call: string;
    attempt: number;
    how: SettleHow;
    by: "policy" | "user" | "answer";
    /** What the model is given, for every `how` but `retry` and `fail`. */
    answer?: CallAnswer;
  }
  /**
   * A person does something on a device of this run from outside (`rnix write`, `rnix cat`). No program sees it, and no budget of the run counts it.
   * Without an `access.result` its outcome is unknown: that is told, and nothing is repeated.
   */
  | {
    type: "access.intent";
    /** `o<n>`, n from 1, never used again in this run. */
    call: string;
    origin: "operator";
    operation: "read" | "write";
    /** VFS path in the process's own view. */
    device: string;
    effect: EffectClass;
    /** Model-facing name, of what is a tool. */
    tool?: string;
    /** What is written; left out where it is long. */
    input?: Json;
    input_sha256: string;
    idempotency_key: string;
  }
  | ({
    type: "access.result";
    call: string;
    origin: "operator";
    duration_ms: number;
    /** Set when nothing was sent, or a read failed. */
    error?: ErrorRecord;
    /** Size of what was read; it isn't kept. */
    bytes?: number;
  } & (CallAnswer | { outcome: "unknown"; cause: UnknownCause }))
  /** A user accepted that records which may have been durable were cut; up to `records` of them, from `from_seq` on. */
  | { type: "journal.cut"; from_seq: number; records: number }
  | { type: "budget.changed"; budget: Budget }
  | { type: "signal"; signal: EndSignal | "PAUSE"; origin: "user" | "system" }
  | {
    type: "run.suspended";
    reason: SuspendReason;
    reasons: SuspendReason[];
    error?: ErrorRecord;
    totals: Totals;
  }
  | {
    type: "run.exited";
    status: "completed" | "failed" | "killed";
    signal?: EndSignal;
    exit_code: number;
    result: string;
    error?: ErrorRecord;
    totals: Totals;
  };

export type EntryType = EntryBody["type"];

export interface EntryHead {
  v: number;
  /** From 1, without gaps. */
  seq: number;
  /** Milliseconds since 1970. */
  ts: number;
  /** Highest seq known durable when this line was made; 0 when none was. */
  synced: number;
}

export type Entry = EntryHead & EntryBody;
export type EntryOf<T extends EntryType> = Extract<Entry, { type: T }>;
