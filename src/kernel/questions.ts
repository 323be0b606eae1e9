/** Asks a person about an unknown outcome, for a limited time. */
import { type Clock, sleep } from "../base/clock.ts";
import type { UnknownCall, UnknownDecision } from "../base/operations.ts";
import type { Observer } from "./ports.ts";

export interface QuestionLimits {
  clock: Clock;
  /** How long the person may take, milliseconds. */
  decisionMs: number;
  /** Withdraws the question. */
  signal: AbortSignal;
}

/** The decision; undefined when nobody decides in time, the question is withdrawn, or nobody can be asked. Never rejects, and doesn't wait for an observer that ignores its signal. */
export async function askDecision(
  observer: Observer,
  call: UnknownCall,
  { clock, decisionMs, signal }: QuestionLimits,
): Promise<UnknownDecision | undefined> {
  const over = new AbortController();
  const withdraw = () => over.abort(signal.reason);
  if (signal.aborted) return undefined;
  signal.addEventListener("abort", withdraw, { once: true });
  const asking = async () => await observer.decideUnknown?.(call, over.signal);
  try {
    return await Promise.race([
      asking().catch(() => undefined),
      sleep(clock, decisionMs, over.signal).then(() => undefined, () => undefined),
    ]);
  } finally {
    signal.removeEventListener("abort", withdraw);
    over.abort();
  }
}
