/**
 * The one rule for a call whose outcome is unknown (design, sections 6 and 10): the same after a crash, a drop, a timeout and a cancel.
 *
 * `read` and `idempotent` are called again, a few times in one process, then given up with a known error. Everything else follows `on_unknown`; `ask` means that a person decides.
 */
import type { EffectClass, OnUnknown } from "../base/effect.ts";

/** How often one call may be sent by one process. */
export const SENDS_MAX = 3;

export interface UnknownOutcome {
  /** As of the call's intent. */
  effect: EffectClass;
  /** Times this process has sent the call; 0 right after a resume. */
  sends: number;
  onUnknown: OnUnknown;
}

export type Verdict = "retry" | "gave-up" | "skip" | "fail" | "ask";

/** Whether sending a call of this class a second time does no harm. */
export function isRepeatable(effect: EffectClass): boolean {
  return effect === "read" || effect === "idempotent";
}

export function settleUnknown({ effect, sends, onUnknown }: UnknownOutcome): Verdict {
  const left = sends < SENDS_MAX;
  if (isRepeatable(effect)) return left ? "retry" : "gave-up";
  // A `write` that is still unknown after repeats isn't known to have failed: a person decides.
  if (onUnknown === "retry") return left ? "retry" : "ask";
  return onUnknown;
}
