/** What telemetry is told of an outcome: codes and counts, nothing of what was asked or answered. */
import type { DeviceOutcome } from "../vfs/device.ts";
import type { ChildOutcome } from "./children.ts";
import type { ModelPortOutcome, SpanEnd } from "./ports.ts";

export function callEnd(outcome: DeviceOutcome): SpanEnd {
  switch (outcome.kind) {
    case "answer":
      return outcome.isError ? { outcome: "error", error: "tool_error" } : { outcome: "ok" };
    case "not-sent":
      return { outcome: "error", error: outcome.error.code };
    case "unknown":
      return { outcome: "unknown", error: outcome.error.code };
  }
}

export function childEnd(outcome: ChildOutcome): SpanEnd {
  switch (outcome.kind) {
    case "exited":
      return outcome.status === "completed"
        ? { outcome: outcome.status }
        : { outcome: outcome.status, error: "tool_error" };
    case "refused":
      return { outcome: "error", error: outcome.error.code };
    case "suspended":
    case "detached":
      return { outcome: outcome.kind };
  }
}

export function modelEnd(outcome: ModelPortOutcome): SpanEnd {
  if (!outcome.ok) return { error: outcome.error.code };
  return { usage: outcome.usage, finishReason: outcome.finishReason };
}
