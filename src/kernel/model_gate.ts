/**
 * The gate's way for model requests: `model.request` → perform, with few repeats of a failed one → `model.reply`.
 *
 * A request is no effect, so it may leave before the results it carries are durable; but its reply is dropped if they never get to be: appending to a failed journal throws. A request that was lost, to a crash or an abort, counts by its estimate and is made anew by the next incarnation.
 */
import { type Clock, sleep, within } from "../base/clock.ts";
import { SysError, toSysError } from "../base/errors.ts";
import { canonicalJson, type Json, sha256Hex } from "../base/json.ts";
import type { ToolDefinition } from "../vfs/device.ts";
import type { ModelPort, ModelPortOutcome, Observer, Trace } from "./ports.ts";
import type { Action, PromptHead } from "./program.ts";
import type { RunLog } from "./run_log.ts";
import { definitionHash, type ToolTable } from "./tool_table.ts";

export type ModelAction<P extends PromptHead> = Extract<Action<P>, { kind: "model" }>;

/** Waits before a failed request is made again, milliseconds; a provider's own Retry-After goes before, up to the last. */
const RETRY_WAITS_MS = [1_000, 4_000, 15_000] as const;
const RETRY_AFTER_MS_MAX = 60_000;

export type ModelEnd =
  | { kind: "replied" }
  | { kind: "aborted" }
  /** The provider can't serve now: the run suspends and may go on later. */
  | { kind: "unavailable"; error: SysError }
  /** The request itself is refused. */
  | { kind: "refused"; error: SysError };

export interface ModelGateDeps<P extends PromptHead> {
  clock: Clock;
  log: RunLog;
  tools: ToolTable;
  model: ModelPort<P>;
  trace: Trace;
  observer: Observer;
  pid: number;
}

export class ModelGate<P extends PromptHead> {
  readonly #deps: ModelGateDeps<P>;
  #toolsHashed: { of: readonly ToolDefinition[]; sha256: string; chars: number } | undefined;

  constructor(deps: ModelGateDeps<P>) {
    this.#deps = deps;
  }

  /** Rejects only with a journal failure. */
  async request(action: ModelAction<P>, signal: AbortSignal): Promise<ModelEnd> {
    const { log, model, observer, clock } = this.#deps;
    const tools = this.#hashTools();
    const { turn, attempt } = action;
    log.append({
      type: "model.request",
      turn,
      attempt,
      provider: model.provider,
      model: model.model,
      request_sha256: sha256Hex(`${model.model}\n${tools.sha256}\n${action.prompt.sha256}`),
      tokens_estimate: action.prompt.tokensEstimate + Math.ceil(tools.chars / 4),
    });
    observer.emit({ type: "model.started", turn });
    const startMs = clock.monotonic();
    const outcome = await this.#withRepeats(action, signal);
    const durationMs = Math.round(clock.monotonic() - startMs);
    if (signal.aborted) return { kind: "aborted" };
    if (!outcome.ok) {
      return { kind: outcome.retryable ? "unavailable" : "refused", error: outcome.error };
    }
    const entry = await log.appendLarge({
      type: "model.reply",
      turn,
      attempt,
      message: outcome.message,
      usage: outcome.usage,
      finish_reason: outcome.finishReason,
      duration_ms: durationMs,
    });
    log.show(entry.seq, () =>
      observer.emit({
        type: "model.finished",
        turn,
        duration_ms: durationMs,
        input_tokens: outcome.usage.input_tokens,
        output_tokens: outcome.usage.output_tokens,
      }));
    return { kind: "replied" };
  }

  async #withRepeats(action: ModelAction<P>, signal: AbortSignal): Promise<ModelPortOutcome> {
    const { clock, observer } = this.#deps;
    for (let repeat = 0;; repeat += 1) {
      const outcome = await this.#once(action, signal);
      const waitMs = RETRY_WAITS_MS[repeat];
      if (outcome.ok || !outcome.retryable || waitMs === undefined || signal.aborted) {
        return outcome;
      }
      const wait = Math.min(Math.max(waitMs, outcome.retryAfterMs ?? 0), RETRY_AFTER_MS_MAX);
      const { code, message } = outcome.error;
      observer.emit({
        type: "model.retrying",
        turn: action.turn,
        wait_ms: wait,
        error: { code, message },
      });
      try {
        await sleep(clock, wait, signal);
      } catch {
        return outcome;
      }
    }
  }

  async #once(action: ModelAction<P>, signal: AbortSignal): Promise<ModelPortOutcome> {
    const { model, tools, observer, clock } = this.#deps;
    const limit = new AbortController();
    const device = `/dev/llm/${model.provider}`;
    let onAbort = () => {};
    // However long the model's own end takes: what comes after an abort is dropped.
    const aborted = new Promise<ModelPortOutcome>((resolve) => {
      onAbort = () => {
        limit.abort(signal.reason);
        resolve({ ok: false, error: toSysError(signal.reason, { device }), retryable: false });
      };
    });
    signal.addEventListener("abort", onAbort, { once: true });
    let open = true;
    const late = new SysError(
      "TIMEOUT",
      `The model gave no whole reply within ${model.requestMsMax / 1000} s (models.max_timeout)`,
      { device },
    );
    const startMs = clock.monotonic();
    try {
      const outcome = await within<ModelPortOutcome>(
        clock,
        model.requestMsMax,
        Promise.race([
          aborted,
          model.request(action.prompt, tools.definitions, {
            signal: limit.signal,
            onDelta: ({ type, text }) => {
              if (open) observer.emit({ type: "model.delta", turn: action.turn, kind: type, text });
            },
          }),
        ]),
        () => {
          limit.abort(late);
          return { ok: false, error: late, retryable: true };
        },
      );
      this.#traceRequest(action, outcome, startMs);
      return outcome;
    } catch (thrown) {
      return { ok: false, error: toSysError(thrown, { device }), retryable: false };
    } finally {
      open = false;
      signal.removeEventListener("abort", onAbort);
    }
  }

  #traceRequest(action: ModelAction<P>, outcome: ModelPortOutcome, startMs: number): void {
    const { trace, clock, pid, model } = this.#deps;
    const durationMs = clock.monotonic() - startMs;
    const args: { [name: string]: Json } = {
      path: `/dev/llm/${model.provider}`,
      model: model.model,
      turn: action.turn,
    };
    trace.record({
      timestamp_ms: clock.now() - Math.round(durationMs),
      pid,
      syscall: "Model",
      args,
      result: outcome.ok ? outcome.usage.output_tokens : null,
      error: outcome.ok ? null : `[${outcome.error.code}] ${outcome.error.message}`,
      duration_ms: Math.round(durationMs * 1000) / 1000,
    });
  }

  /** Hash of the tool definitions, made once per set of tools. */
  #hashTools(): { sha256: string; chars: number } {
    const of = this.#deps.tools.definitions;
    if (this.#toolsHashed?.of !== of) {
      const chars = of.reduce(
        (sum, tool) =>
          sum + canonicalJson(tool.inputSchema).length + (tool.description ?? "").length,
        0,
      );
      const sha256 = sha256Hex(of.map((tool) => tool.modelName + definitionHash(tool)).join("\n"));
      this.#toolsHashed = { of, sha256, chars };
    }
    return this.#toolsHashed;
  }
}
