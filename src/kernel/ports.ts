/** What the kernel is handed: a model, a trace, the intake of results, someone who watches. It knows no MCP, no provider and no YAML. */
import type { Price, Usage } from "../base/budget.ts";
import type { SysError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { RunEvent, TraceRow, UnknownCall, UnknownDecision } from "../base/operations.ts";
import type { BlobRef } from "../journal/entry.ts";
import type { DeviceOutcome, ToolDefinition } from "../vfs/device.ts";
import type { RunEnd } from "./ledger.ts";
import type { PromptHead } from "./program.ts";
import type { ToolBinding } from "./tool_table.ts";

export type ModelPortOutcome =
  | { ok: true; message: Json; usage: Usage; finishReason: string }
  | {
    ok: false;
    error: SysError;
    retryable: boolean;
    retryAfterMs?: number;
    /** The conversation is too long for this model. */
    contextWindow?: true;
  };

/** **Contract.** One request, one outcome, never a throw for what the remote side does; ends at once when the signal aborts. */
export interface ModelPort<P extends PromptHead> {
  readonly provider: string;
  readonly model: string;
  /** Longest time of one request, milliseconds; repeats have their own. */
  readonly requestMsMax: number;
  /** Absent where none is known. */
  readonly price?: Price;
  /** Why the model can't be offered this tool; undefined when it can. */
  refuses(tool: ToolDefinition): string | undefined;
  /** Tools that a request may have; absent where no limit is known. */
  readonly toolsMax?: number;
  request(
    prompt: P,
    tools: readonly ToolDefinition[],
    options: {
      signal: AbortSignal;
      onDelta: (delta: { type: "text" | "reasoning"; text: string }) => void;
    },
  ): Promise<ModelPortOutcome>;
}

/** One line of the trace: a call as strace shows it. */
export type TraceRecord = TraceRow;

/** **Contract.** Never throws, never waits: a trace that can't be written must not disturb a run. */
export interface Trace {
  record(record: TraceRecord): void;
}

/** What is told of a span's end; nothing of its content. */
export interface SpanEnd {
  /** Code of the error that it ended with. */
  error?: string;
  outcome?: string;
  usage?: Usage;
  finishReason?: string;
}

/** Something that a run does, timed for who observes it from outside. */
export interface Span {
  /** W3C trace context, for what is done within it elsewhere. */
  readonly traceparent: string;
  /** Ends it; only the first end counts. */
  end(facts?: SpanEnd): void;
}

export interface ModelFacts {
  turn: number;
  provider: string;
  model: string;
  purpose?: string;
}

export interface CallFacts {
  call: string;
  attempt: number;
  tool: string;
  effect?: string;
  /** Where the call is a child. */
  childRunId?: string;
}

/** One process as spans. **Contract.** Never throws, never waits; there is none where nobody asked for it. */
export interface Telemetry {
  /** A request to a model begins. */
  model(facts: ModelFacts): Span;
  /** A call leaves. */
  call(facts: CallFacts): Span;
  /** The process is over. */
  end(end: RunEnd): void;
}

export type Answer = Extract<DeviceOutcome, { kind: "answer" }>;

/** Makes a result fit to keep: repairs its text, takes out secrets, cuts it to the tool's limit. The same answer always gives the same bytes. `keep` stores the whole of what was cut and gives its name, for the marker. */
export type Intake = (
  answer: Answer,
  binding: ToolBinding,
  keep: (whole: string) => Promise<BlobRef>,
) => Promise<{ content: Json[]; structured?: Json; whole?: BlobRef }>;

/** Who watches a run, and answers for a person. Must not throw. */
export interface Observer {
  emit(event: WithoutHead<RunEvent>): void;
  /** Present only when a person can be asked. */
  decideUnknown?(call: UnknownCall, signal: AbortSignal): Promise<UnknownDecision | undefined>;
}

/** An event before the process adds its pid and time. */
export type WithoutHead<E> = E extends unknown ? Omit<E, "pid" | "ts"> : never;

/** Limits of the kernel's own waits, milliseconds. */
export interface KernelLimits {
  /** How long a cancelled call may still answer. */
  cancelGraceMs: number;
  /** Longest time a durable result is held back for a sync to ride with. */
  showDelayMs: number;
  /** How long a person may take to decide on an unknown outcome. */
  decisionMs: number;
}

export const KERNEL_LIMITS: KernelLimits = {
  cancelGraceMs: 2_000,
  showDelayMs: 3,
  decisionMs: 600_000,
};
