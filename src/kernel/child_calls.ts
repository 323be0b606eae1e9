/** Calls that are children: their part of the gate. The same invariants hold as for other calls; what differs is that the outcome can always be had. */
import type { Clock } from "../base/clock.ts";
import type { SysError } from "../base/errors.ts";
import type { SuspendReason } from "../base/exit.ts";
import type { Json } from "../base/json.ts";
import type { ChildOutcome, ChildPort } from "./children.ts";
import type { Answer, Observer, Telemetry } from "./ports.ts";
import type { CallAction } from "./program.ts";
import type { RunLog } from "./run_log.ts";
import { childEnd } from "./span_end.ts";
import type { ToolBinding } from "./tool_table.ts";

/** Why a call whose child is suspended stays open. */
export interface ChildWaits {
  reason: SuspendReason;
  error: SysError;
}

export interface ChildCallDeps {
  clock: Clock;
  log: RunLog;
  observer: Observer;
  children: ChildPort;
  telemetry: Telemetry | undefined;
  /** Whether the call's child was at work before. */
  wasSpawned(call: string): boolean;
  /** The process that came to an end after which the call's child is taken up. */
  continues(call: string): number | undefined;
  /** Redacts, cuts and appends the answer as for any other call. */
  keepAnswer(
    action: CallAction,
    binding: ToolBinding,
    answer: Answer,
    durationMs: number,
  ): Promise<void>;
  keepError(action: CallAction, error: SysError, durationMs: number): void;
  trace(
    syscall: string,
    args: { [name: string]: Json },
    result: Json,
    error: SysError | undefined,
    durationMs: number,
  ): void;
}

export class ChildCalls {
  readonly #deps: ChildCallDeps;

  constructor(deps: ChildCallDeps) {
    this.#deps = deps;
  }

  /** From a durable intent to the end of the child, or to its suspension. Rejects only with a journal failure. */
  async run(
    action: CallAction,
    binding: ToolBinding,
    runId: string,
    signal: AbortSignal,
  ): Promise<ChildWaits | void> {
    const { clock, observer, children, log, telemetry } = this.#deps;
    const { child } = binding;
    if (child === undefined) throw new Error(`Tool "${action.tool}" is no child`);
    const { call, attempt, tool, input } = action;
    observer.emit({ type: "call.started", call, attempt, tool, input });
    const startMs = clock.monotonic();
    const span = telemetry?.call({ call, attempt, tool, childRunId: runId });
    const wasSpawned = this.#deps.wasSpawned(call);
    // It is waited for from its spawn on: so a trace never goes back in time.
    let waitsSinceMs = startMs;
    const after = this.#deps.continues(call);
    const continues = after === undefined ? {} : { continues: after };
    const outcome = await children.run({ runId, child, call, input, wasSpawned, ...continues }, {
      signal,
      onStarted: (pid) => {
        waitsSinceMs = clock.monotonic();
        const detached = child.detach ? { detached: true as const } : {};
        const entry = log.append({ type: "child.spawned", call, run_id: runId, pid, ...detached });
        this.#deps.trace("Spawn", { agent: child.agent, run_id: runId }, pid, undefined, 0);
        log.show(entry.seq, () =>
          observer.emit({
            type: "child.spawned",
            call,
            agent: child.agent,
            run_id: runId,
            child_pid: pid,
          }));
      },
    });
    span?.end(childEnd(outcome));
    const nowMs = clock.monotonic();
    const times = { ms: nowMs - startMs, waitMs: nowMs - waitsSinceMs };
    return await this.#keep(action, binding, { runId, outcome, ...times });
  }

  async #keep(
    action: CallAction,
    binding: ToolBinding,
    { runId, outcome, ms, waitMs }: {
      runId: string;
      outcome: ChildOutcome;
      ms: number;
      waitMs: number;
    },
  ): Promise<ChildWaits | void> {
    const { log, observer, trace } = this.#deps;
    const { call } = action;
    const durationMs = Math.round(ms);
    switch (outcome.kind) {
      case "exited": {
        const { status, totals, pid, answer } = outcome;
        const entry = log.append({
          type: "child.exited",
          call,
          run_id: runId,
          status,
          totals,
          pid,
        });
        trace("Wait", { run_id: runId }, status, undefined, waitMs);
        log.show(
          entry.seq,
          () => observer.emit({ type: "child.exited", call, run_id: runId, status }),
        );
        return await this.#deps.keepAnswer(action, binding, answer, durationMs);
      }
      case "detached":
        return await this.#deps.keepAnswer(action, binding, outcome.answer, durationMs);
      case "refused":
        trace("Spawn", { run_id: runId }, null, outcome.error, ms);
        return this.#deps.keepError(action, outcome.error, durationMs);
      case "suspended": {
        const { reason, error } = outcome;
        trace("Wait", { run_id: runId }, reason, undefined, waitMs);
        observer.emit({ type: "child.suspended", call, run_id: runId, reason });
        return { reason, error };
      }
    }
  }
}
