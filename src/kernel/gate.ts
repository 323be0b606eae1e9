/**
 * The only way from a program to the world. In order: trace enter → permission and policy → budget and deadline → intent → perform, under an AbortSignal → result → trace exit.
 *
 * Invariants
 * 1. Nothing is performed without an entry of its own: `call.intent` for a call, `model.request` for a model request.
 * 2. A call that isn't `read` leaves only after its intent, and the reply that asked for it, are durable.
 * 3. No action key is started twice; a repeat has a new attempt.
 * 4. A call reaches only a tool of the process's own table, through the process's own mount.
 * 5. Every started call ends in exactly one `call.result` or `call.settled` of its attempt, unless the journal fails.
 * 6. Results are redacted, repaired and cut once, here, before anyone sees them; they are shown only when durable.
 * 7. After a journal failure nothing leaves any more.
 * 8. What was aborted before it left is settled as never sent.
 */
import { addTotals, type Totals } from "../base/budget.ts";
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { canonicalJson, type Json, sha256Hex } from "../base/json.ts";
import type { CallAnswer, EntryBody } from "../journal/entry.ts";
import { callLimit, type LimitHit, modelLimit } from "../policy/limits.ts";
import { isRepeatable } from "../policy/settle.ts";
import type { DeviceOutcome } from "../vfs/device.ts";
import type { FdTable } from "../vfs/fd_table.ts";
import type { MountTable } from "../vfs/mount_table.ts";
import { errorAnswer, errorRecord, MASKED, preview } from "./answers.ts";
import { outcomeWithin } from "./cancelled.ts";
import { ChildCalls, type ChildWaits } from "./child_calls.ts";
import type { ChildPort } from "./children.ts";
import type { Stop } from "./endings.ts";
import type { Ledger } from "./ledger.ts";
import type { Answer, Intake, KernelLimits, Observer, Telemetry, Trace } from "./ports.ts";
import type { CallAction } from "./program.ts";
import { noSuchTool } from "./no_such_tool.ts";
import { callEnd } from "./span_end.ts";
import type { RunLog } from "./run_log.ts";
import type { ToolBinding, ToolTable } from "./tool_table.ts";

export interface GateDeps {
  clock: Clock;
  log: RunLog;
  ledger: Ledger;
  tools: ToolTable;
  mounts: MountTable;
  files: FdTable;
  intake: Intake;
  trace: Trace;
  telemetry: Telemetry | undefined;
  observer: Observer;
  limits: KernelLimits;
  children: ChildPort;
  pid: number;
}

export class Gate {
  readonly #deps: GateDeps;
  readonly #childCalls: ChildCalls;

  constructor(deps: GateDeps) {
    this.#deps = deps;
    const { clock, log, observer, children, telemetry } = deps;
    this.#childCalls = new ChildCalls({
      clock,
      log,
      observer,
      children,
      telemetry,
      wasSpawned: (call) => deps.ledger.childSpawned(call),
      continues: (call) => deps.ledger.continues(call),
      keepAnswer: (action, binding, answer, ms) => this.#keepAnswer(action, binding, answer, ms),
      keepError: (action, error, ms) => this.#keepError(action, error, ms),
      trace: (...record) => this.#trace(...record),
    });
  }

  /** The limit that forbids this action now, if one does. */
  limitFor(kind: "model" | "call"): LimitHit | undefined {
    const { ledger, clock, children } = this.#deps;
    const totals = treeTotals(ledger, clock.now(), children.liveTotals());
    const own = kind === "model"
      ? modelLimit(ledger.state.budget, totals)
      : callLimit(ledger.state.budget, totals);
    return own ?? children.limitAbove(kind);
  }

  /**
   * Starts a call: its intent is appended before this returns, so that intents of one reply leave in one batch. Resolves when its result is appended; rejects only with a journal failure.
   */
  call(action: CallAction, signal: AbortSignal): Promise<ChildWaits | void> {
    const { ledger, log, tools, children } = this.#deps;
    if (ledger.hasStarted(action.key)) {
      throw new SysError("INTERNAL", `Action "${action.key}" was started already`);
    }
    const binding = tools.get(action.tool);
    const refusal = this.#refusal(action, binding);
    if (binding === undefined || refusal !== undefined) {
      return this.#refuse(action, refusal ?? new SysError("NOT_FOUND", "No such tool"));
    }
    const ended = action.continues === true ? ledger.endedChild(action.call) : undefined;
    const runId = binding.child === undefined ? undefined : ended?.runId ?? children.newRunId();
    const intent = log.append({
      type: "call.intent",
      call: action.call,
      attempt: action.attempt,
      tool: action.tool,
      device: binding.device,
      effect: binding.effect,
      input_sha256: sha256Hex(canonicalJson(action.input)),
      idempotency_key: `${ledger.identity.runId}/${action.call}`,
      ...(runId === undefined ? {} : { child_run_id: runId }),
      ...(runId === undefined || ended === undefined
        ? {}
        : { continues: { pid: ended.pid, totals: ended.totals } }),
    });
    if (runId !== undefined) {
      return this.#performChild(action, binding, { runId, intentSeq: intent.seq, signal });
    }
    return this.#perform(action, binding, intent.seq, signal);
  }

  async #performChild(
    action: CallAction,
    binding: ToolBinding,
    { runId, intentSeq, signal }: { runId: string; intentSeq: number; signal: AbortSignal },
  ): Promise<ChildWaits | void> {
    const { log } = this.#deps;
    await log.barrier(intentSeq);
    if (log.failure) throw log.failure;
    if (signal.aborted) return this.#settleUnsent(action);
    return await this.#childCalls.run(action, binding, runId, signal);
  }

  /** What stops the process stops its children. */
  stopChildren(stop: Stop): void {
    this.#deps.children.stop(stop);
  }

  /** Goes on with a call whose child hasn't ended: of a process before this one, or suspended. Resolves as {@link call} does. */
  async continueChild(action: CallAction, signal: AbortSignal): Promise<ChildWaits | void> {
    const { tools, ledger } = this.#deps;
    const runId = ledger.openChild(action.call);
    const binding = tools.get(action.tool);
    if (runId === undefined) throw new SysError("INTERNAL", `Call ${action.call} has no child`);
    if (binding?.child === undefined) {
      const error = new SysError("NOT_FOUND", `Agent "${action.tool}" can't be had any more`);
      return this.#keepError(action, error, 0);
    }
    return await this.#childCalls.run(action, binding, runId, signal);
  }

  #refusal(action: CallAction, binding: ToolBinding | undefined): SysError | undefined {
    if (binding === undefined) return noSuchTool(this.#deps.tools, action.tool);
    if (action.defect !== undefined) return new SysError("INVALID", action.defect);
    return undefined;
  }

  #refuse(action: CallAction, error: SysError): Promise<void> {
    const answer = errorAnswer(error);
    const entry = this.#deps.log.append({
      type: "call.result",
      call: action.call,
      attempt: action.attempt,
      duration_ms: 0,
      error: errorRecord(error),
      ...answer,
    });
    this.#trace("Open", { path: action.tool }, null, error, 0);
    const { call, attempt, tool } = action;
    this.#deps.telemetry?.call({ call, attempt, tool }).end({ error: error.code });
    this.#deps.log.show(entry.seq, this.#finished(action, answer, 0));
    return Promise.resolve();
  }

  async #perform(
    action: CallAction,
    binding: ToolBinding,
    intentSeq: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { log, observer, clock, telemetry } = this.#deps;
    if (binding.effect !== "read") await log.barrier(intentSeq);
    if (log.failure) throw log.failure;
    if (signal.aborted) {
      this.#settleUnsent(action);
      return;
    }
    const { call, attempt, tool, input } = action;
    const { effect } = binding;
    observer.emit({
      type: "call.started",
      call,
      attempt,
      tool,
      input: binding.sensitive ? MASKED : input,
    });
    const startMs = clock.monotonic();
    const span = telemetry?.call({ call, attempt, tool, effect });
    const outcome = await this.#send(action, binding, signal, span?.traceparent);
    span?.end(callEnd(outcome));
    const durationMs = Math.round(clock.monotonic() - startMs);
    if (outcome.kind === "answer") {
      await this.#keepAnswer(action, binding, outcome, durationMs);
    } else if (outcome.kind === "not-sent") {
      if (signal.aborted) this.#settleUnsent(action);
      else this.#keepError(action, outcome.error, durationMs);
    } else {
      this.#keepUnknown(action, binding, outcome, durationMs);
    }
  }

  /** Open → Write → Read → Close on the tool's node, each traced. */
  async #send(
    action: CallAction,
    binding: ToolBinding,
    signal: AbortSignal,
    traceparent: string | undefined,
  ): Promise<DeviceOutcome> {
    const { mounts, files, clock, limits, observer, ledger } = this.#deps;
    let fd: number;
    try {
      const { device, rest } = mounts.resolve(binding.path);
      fd = files.open(device.open(rest));
      this.#trace("Open", { path: binding.path }, fd, undefined, 0);
    } catch (thrown) {
      const error = asSysError(thrown);
      this.#trace("Open", { path: binding.path }, null, error, 0);
      return { kind: "not-sent", error };
    }
    const startMs = clock.monotonic();
    try {
      const written = files.get(fd).write(action.input, {
        signal,
        cancelGraceMs: limits.cancelGraceMs,
        callId: action.call,
        idempotencyKey: `${ledger.identity.runId}/${action.call}`,
        ...(traceparent === undefined ? {} : { traceparent }),
        repeatable: isRepeatable(ledger.state.open[action.call]?.effect ?? binding.effect),
        onProgress: (message) =>
          observer.emit({ type: "call.progress", call: action.call, message }),
      });
      const graceMs = limits.cancelGraceMs;
      const outcome = await outcomeWithin(written, {
        clock,
        signal,
        graceMs,
        device: binding.path,
      });
      this.#traceOutcome(fd, action, binding, outcome, clock.monotonic() - startMs);
      return outcome;
    } catch (thrown) {
      // A device that breaks its contract may have sent the call.
      const error = asSysError(thrown);
      this.#trace("Write", { fd }, null, error, clock.monotonic() - startMs);
      return { kind: "unknown", cause: "disconnected", error, late: Promise.resolve(undefined) };
    } finally {
      files.close(fd);
      this.#trace("Close", { fd }, null, undefined, 0);
    }
  }

  async #keepAnswer(
    action: CallAction,
    binding: ToolBinding,
    outcome: Answer,
    durationMs: number,
  ): Promise<void> {
    const { log, observer } = this.#deps;
    const answer = await this.#take(outcome, binding);
    await log.appendLarge({
      type: "call.result",
      call: action.call,
      attempt: action.attempt,
      duration_ms: durationMs,
      ...answer,
    }, this.#finished(action, answer, durationMs));
    for (const warning of answer.warnings ?? []) {
      observer.emit({ type: "notice", message: `${action.tool}: ${warning}` });
    }
  }

  #keepError(action: CallAction, error: SysError, durationMs: number): void {
    const answer = errorAnswer(error);
    const entry = this.#deps.log.append({
      type: "call.result",
      call: action.call,
      attempt: action.attempt,
      duration_ms: durationMs,
      error: errorRecord(error),
      ...answer,
    });
    this.#deps.log.show(entry.seq, this.#finished(action, answer, durationMs));
  }

  #keepUnknown(
    action: CallAction,
    binding: ToolBinding,
    outcome: Extract<DeviceOutcome, { kind: "unknown" }>,
    durationMs: number,
  ): void {
    const { log, observer, ledger } = this.#deps;
    const { call, attempt } = action;
    outcome.late.then((late) => {
      if (late?.kind === "answer") return this.#takeLate(action, binding, late);
    }).catch(() => {});
    const entry = log.append({
      type: "call.result",
      call,
      attempt,
      duration_ms: durationMs,
      outcome: "unknown",
      cause: outcome.cause,
      error: errorRecord(outcome.error),
    });
    // As it was journaled: without secrets.
    const message = entry.type === "call.result" && entry.error !== undefined
      ? { message: entry.error.message }
      : {};
    // Settled in the same turn of the loop by the runner; shown once durable.
    log.show(entry.seq, () =>
      observer.emit({
        type: "call.unknown",
        call,
        attempt,
        tool: action.tool,
        effect: ledger.state.open[call]?.effect ?? binding.effect,
        cause: outcome.cause,
        ...message,
      }));
  }

  /** An answer that comes before the settling settles; a later one is only traced. */
  async #takeLate(action: CallAction, binding: ToolBinding, late: Answer): Promise<void> {
    const { ledger, log } = this.#deps;
    const isOpen = () => {
      const open = ledger.state.open[action.call];
      return ledger.state.end === undefined && log.failure === undefined &&
        open?.attempt === action.attempt && open.cause !== undefined;
    };
    this.#trace("Late", { call: action.call, attempt: action.attempt }, isOpen(), undefined, 0);
    if (!isOpen()) return;
    const answer = await this.#take(late, binding);
    const prepared = await log.prepare({
      type: "call.settled",
      call: action.call,
      attempt: action.attempt,
      how: "answer",
      by: "answer",
      answer,
    });
    if (!isOpen()) return;
    const entry = log.append(prepared);
    this.#deps.log.show(entry.seq, this.#finished(action, answer, 0));
  }

  async #take(outcome: Answer, binding: ToolBinding): Promise<CallAnswer> {
    const { intake, log } = this.#deps;
    const taken = await intake(
      outcome,
      binding,
      (whole) => log.journal.putBlob(new TextEncoder().encode(whole)),
    );
    return {
      outcome: outcome.isError ? "error" : "ok",
      ...taken,
      ...(outcome.warnings === undefined ? {} : { warnings: outcome.warnings }),
    };
  }

  #settleUnsent(action: CallAction): void {
    this.#deps.log.append(
      {
        type: "call.settled",
        call: action.call,
        attempt: action.attempt,
        how: "retry",
        by: "policy",
      } satisfies EntryBody,
    );
  }

  /** Tells of a call's end. */
  #finished(action: CallAction, answer: CallAnswer, durationMs: number): () => void {
    const { observer, tools } = this.#deps;
    const masked = tools.get(action.tool)?.sensitive ?? false;
    return () =>
      observer.emit({
        type: "call.finished",
        call: action.call,
        attempt: action.attempt,
        outcome: answer.outcome,
        duration_ms: durationMs,
        preview: masked ? MASKED : preview(answer, this.#deps.log.redactor),
      });
  }

  #traceOutcome(
    fd: number,
    action: CallAction,
    binding: ToolBinding,
    outcome: DeviceOutcome,
    durationMs: number,
  ): void {
    const size = JSON.stringify(action.input).length;
    const input = binding.sensitive ? MASKED : action.input;
    if (outcome.kind !== "answer") {
      return this.#trace("Write", { fd, size, input }, null, outcome.error, durationMs);
    }
    const failed = outcome.isError
      ? new SysError("DRIVER", "The tool reported an error")
      : undefined;
    this.#trace("Write", { fd, size, input }, null, failed, durationMs);
    const length = JSON.stringify(outcome.content).length;
    this.#trace("Read", { fd, length: 1_048_576 }, length, undefined, 0);
  }

  #trace(
    syscall: string,
    args: { [name: string]: Json },
    result: Json,
    error: SysError | undefined,
    durationMs: number,
  ): void {
    const { trace, clock, pid } = this.#deps;
    trace.record({
      timestamp_ms: clock.now() - Math.round(durationMs),
      pid,
      syscall,
      args,
      result,
      error: error === undefined ? null : `[${error.code}] ${error.message}`,
      duration_ms: Math.round(durationMs * 1000) / 1000,
    });
  }
}

/** What a process and those below it have used. What has no known price can't be counted; what has counts all the same. */
export function treeTotals(ledger: Ledger, nowMs: number, live: Totals): Totals {
  const own = { ...ledger.totalsAt(nowMs), cost_usd: ledger.state.pricedUsd };
  const below = addTotals(ledger.state.childTotals, live);
  // Turns and time are each process's own: a child's don't shorten its parent's life.
  return { ...addTotals(own, below), turns: own.turns, active_ms: own.active_ms };
}

function asSysError(thrown: unknown): SysError {
  return thrown instanceof SysError
    ? thrown
    : new SysError("DRIVER", thrown instanceof Error ? thrown.message : String(thrown));
}
