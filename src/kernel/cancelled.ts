/** Holds a device to its word after a cancel: one that gives no outcome within its grace is taken for silent, so that no run waits for ever. */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { DeviceOutcome } from "../vfs/device.ts";

/** What a device may need beyond its grace to say that nothing came, milliseconds. */
const SLACK_MS = 1_000;

export interface CancelFacts {
  clock: Clock;
  signal: AbortSignal;
  graceMs: number;
  device: string;
}

/** The outcome of `work`, or an unknown one when `signal` aborted and grace and slack have passed. `work` goes on as the late answer. */
export async function outcomeWithin(
  work: Promise<DeviceOutcome>,
  { clock, signal, graceMs, device }: CancelFacts,
): Promise<DeviceOutcome> {
  let cancelTimer = () => {};
  let onAbort = () => {};
  const silence = new Promise<DeviceOutcome>((resolve) => {
    onAbort = () => {
      cancelTimer = clock.after(graceMs + SLACK_MS, () => {
        const message = `The call was cancelled and gave no outcome within ${graceMs / 1000} s`;
        const error = new SysError("TIMEOUT", message, { syscall: "Write", device });
        resolve({
          kind: "unknown",
          cause: "cancelled",
          error,
          late: work.catch(() => undefined),
        });
      });
    };
  });
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, silence]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    cancelTimer();
  }
}
