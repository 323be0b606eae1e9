/**
 * Where one call stands, worked out from its tries.
 *
 * ready → running → done | failed; after a failure that may be repeated: waiting → ready. A child that failed or was killed is taken up again once the whole run was; an answer that doesn't fit its schema is asked for again at once, `OUTPUT_REPEATS` times, with what was wrong with it. A child that is suspended is running: neither counts it as a failure.
 */
import { callKey } from "../kernel/program.ts";
import type { Json } from "../base/json.ts";
import { BACKOFF_MS_MAX } from "../manifest/workflow/workflow.ts";
import type { Fit } from "./answer.ts";
import { type CallRecord, nodeOf, type Outcome, type WorkflowState } from "./workflow_state.ts";

/** How often an answer that doesn't fit is asked for again. */
export const OUTPUT_REPEATS = 2;

/** An answer that didn't fit, for the try that puts it right. */
export interface Misfit {
  text: string;
  fault: string;
}

/** Where a call stands; `attempt` is the try that it is about. */
export type Progress =
  | { step: "ready"; attempt: number; misfit?: Misfit; continues?: true }
  | { step: "running"; attempt: number; misfit?: Misfit }
  | { step: "waiting"; attempt: number; timer: string; ms: number }
  | { step: "done"; attempt: number; text: string; value?: Json }
  | { step: "failed"; attempt: number; message: string };

/** What a node says of its calls. */
export interface CallRules {
  retry: { attempts: number; backoffMs: number };
  /** Absent: every answer fits. */
  fit?: (outcome: Outcome) => Fit;
}

/** Where a call stands; it need not have begun. */
export function progressOf(state: WorkflowState, call: string, rules: CallRules): Progress {
  const record = Object.hasOwn(state.calls, call) ? state.calls[call] : undefined;
  if (record === undefined) return { step: "ready", attempt: 1 };
  const counted = record.outcomes.filter(({ round }) => round >= state.freshRound);
  let misfits = 0;
  let failures = 0;
  let misfit: Misfit | undefined;
  for (const outcome of counted) {
    const { attempt, text } = outcome;
    if (outcome.isOk) {
      const fit: Fit | undefined = rules.fit?.(outcome);
      if (fit === undefined) return { step: "done", attempt, text };
      if (fit.isFit) return { step: "done", attempt, text, value: fit.value };
      misfit = { text, fault: fit.fault };
      if (outcome.round === state.round) misfits += 1;
    } else if (outcome.round === state.round) {
      failures += 1;
      if (outcome.unsent) return { step: "failed", attempt, message: text };
    }
  }
  const more = misfit === undefined ? {} : { misfit };
  if (record.isOpen) return { step: "running", attempt: record.attempt, ...more };
  const last = counted.at(-1);
  const failed = exhausted(record, { misfits, failures, misfit, last, rules });
  if (failed !== undefined) return failed;
  const attempt = record.attempt + 1;
  const timer = timerKey(call, attempt);
  const mustWait = last !== undefined && !last.isOk && last.round === state.round;
  if (mustWait && state.timers[timer] !== true) {
    return { step: "waiting", attempt, timer, ms: backoffOf(rules.retry.backoffMs, failures) };
  }
  return { step: "ready", attempt, ...more, ...endedBefore(state, record) };
}

/** A child that ended without success before the run itself ended: who takes up the run takes it up as well. Within a round a repeat begins anew, as the node says. */
function endedBefore(state: WorkflowState, { endedRound }: CallRecord): { continues?: true } {
  const isBefore = endedRound !== undefined && endedRound < state.round &&
    endedRound >= state.freshRound;
  return isBefore ? { continues: true } : {};
}

function exhausted(
  { attempt }: CallRecord,
  facts: {
    misfits: number;
    failures: number;
    misfit: Misfit | undefined;
    last: Outcome | undefined;
    rules: CallRules;
  },
): Progress | undefined {
  const { misfits, failures, misfit, last, rules } = facts;
  if (misfits > OUTPUT_REPEATS && misfit !== undefined) {
    const message =
      `The answer doesn't fit the schema of "output", asked ${misfits} times: ${misfit.fault}`;
    return { step: "failed", attempt, message };
  }
  if (failures < rules.retry.attempts) return undefined;
  return { step: "failed", attempt, message: last?.text ?? "" };
}

/** The pause before a try. */
export function timerKey(call: string, attempt: number): string {
  return `wait ${callKey(call, attempt)}`;
}

/** Whether a key is that of a pause of this node. */
export function isTimerOf(node: string, key: string): boolean {
  return key.startsWith("wait ") && nodeOf(key.slice("wait ".length).split("#")[0] ?? "") === node;
}

/** Twice as long after every failure, within limits. */
function backoffOf(firstMs: number, failures: number): number {
  return Math.min(firstMs * 2 ** (failures - 1), BACKOFF_MS_MAX);
}
