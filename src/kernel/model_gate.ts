/**
 * The gate's way for model requests: `model.request` → perform, with few repeats of a failed one → `model.reply`.
 *
 * Where the model can't serve (its repeats are used up, or the conversation is too long for it) and another is named as fallback, that one is asked in the same turn, with an entry of its own.
 *
 * A conversation that is too long goes back to its program, if that can make it shorter (`context.exceeded`). A summary is asked for in the same way as a reply, offering no tools, and its answer is `context.compacted`: where the model gives none that can be used, what is left out is left out without one; where it can't serve at all, nothing is, and the run suspends.
 *
 * A request is no effect, so it may leave before the results it carries are durable; but its reply is dropped if they never get to be: appending to a failed journal throws. A request that was lost, to a crash or an abort, counts by its estimate and is made anew by the next incarnation.
 */
import { type Clock, sleep, within } from "../base/clock.ts";
import { SysError, toSysError } from "../base/errors.ts";
import { canonicalJson, type Json, sha256Hex } from "../base/json.ts";
import type { EntryOf } from "../journal/entry.ts";
import { costOf, costOfEstimate } from "../policy/cost.ts";
import type { ToolDefinition } from "../vfs/device.ts";
import type { ModelPort, ModelPortOutcome, Observer, Telemetry, Trace } from "./ports.ts";
import type { Action, PromptHead } from "./program.ts";
import type { RunLog } from "./run_log.ts";
import { definitionHash, type ToolTable } from "./tool_table.ts";
import { errorRecord } from "./answers.ts";
import { modelEnd } from "./span_end.ts";

export type ModelAction<P extends PromptHead> = Extract<Action<P>, { kind: "model" }>;
export type CompactAction<P extends PromptHead> = Extract<Action<P>, { kind: "compact" }>;

/** One request as it is made: of a turn, or for a summary. */
interface Question<P extends PromptHead> {
  turn: number;
  attempt: number;
  prompt: P;
  purpose?: "summary";
}

/** Waits before a failed request is made again, milliseconds; a provider's own Retry-After goes before, up to the last. */
const RETRY_WAITS_MS = [1_000, 4_000, 15_000] as const;
const RETRY_AFTER_MS_MAX = 60_000;
/** How long the fallback stays once it was needed, milliseconds: each try of a model that is down costs all its repeats. */
export const FALLBACK_STAY_MS = 300_000;

/** Failures that have nothing to do with what was asked: any request meets them. */
const REFUSES_ALL: readonly string[] = ["UNAUTHENTICATED", "PERMISSION"];
const NO_TOOLS: readonly ToolDefinition[] = [];

export type ModelEnd =
  /** What came is journaled. */
  | { kind: "told" }
  | { kind: "aborted" }
  /** The provider can't serve now: the run suspends and may go on later. */
  | { kind: "unavailable"; error: SysError }
  /** The request itself is refused. */
  | { kind: "refused"; error: SysError };

/** What one model was asked, and how it ended. */
interface Asked<P extends PromptHead> {
  port: ModelPort<P>;
  outcome: ModelPortOutcome;
}

export interface ModelGateDeps<P extends PromptHead> {
  clock: Clock;
  log: RunLog;
  tools: ToolTable;
  model: ModelPort<P>;
  /** Asked where `model` can't serve. */
  fallback?: ModelPort<P>;
  trace: Trace;
  telemetry: Telemetry | undefined;
  observer: Observer;
  pid: number;
  /** As `Program.summaryOf`. */
  summaryOf(message: Json, finishReason: string): string | undefined;
}

/** Hash of the tools that a request offers, in their order. */
export function toolsHash(tools: readonly { name: string; sha256: string }[]): string {
  return sha256Hex(tools.map(({ name, sha256 }) => name + sha256).join("\n"));
}

/** Hash of what a model is asked: two requests with the same one are the same. */
export function requestHash(model: string, toolsSha256: string, promptSha256: string): string {
  return sha256Hex(`${model}\n${toolsSha256}\n${promptSha256}`);
}

export class ModelGate<P extends PromptHead> {
  readonly #deps: ModelGateDeps<P>;
  #fallbackUntilMs = -Infinity;
  #toolsHashed: { of: readonly ToolDefinition[]; sha256: string; chars: number } | undefined;

  constructor(deps: ModelGateDeps<P>) {
    this.#deps = deps;
  }

  /** Rejects only with a journal failure. */
  async request(action: ModelAction<P>, signal: AbortSignal): Promise<ModelEnd> {
    const { turn, attempt, prompt } = action;
    const { asked, durationMs } = await this.#ask({ turn, attempt, prompt }, signal);
    if (signal.aborted) return { kind: "aborted" };
    const { port, outcome } = asked;
    if (outcome.ok) return await this.#reply(action, port, outcome, durationMs);
    if (outcome.contextWindow === true && action.compactable === true) {
      const error = errorRecord(outcome.error);
      this.#deps.log.append({ type: "context.exceeded", turn, attempt, error });
      return { kind: "told" };
    }
    return { kind: outcome.retryable ? "unavailable" : "refused", error: outcome.error };
  }

  /** Compacts the history, by a summary where the action asks for one. Rejects only with a journal failure. */
  async compact(action: CompactAction<P>, signal: AbortSignal): Promise<ModelEnd> {
    const { turn, attempt, prompt } = action;
    if (prompt === undefined) return await this.#compacted(action, { duration_ms: 0 });
    const question = { turn, attempt, prompt, purpose: "summary" as const };
    const { asked: { port, outcome }, durationMs } = await this.#ask(question, signal);
    if (signal.aborted) return { kind: "aborted" };
    const duration_ms = durationMs;
    if (!outcome.ok) {
      const { error } = outcome;
      if (outcome.retryable) return { kind: "unavailable", error };
      if (REFUSES_ALL.includes(error.code)) return { kind: "refused", error };
      return await this.#compacted(action, { error: errorRecord(error), duration_ms });
    }
    const summary = this.#deps.summaryOf(outcome.message, outcome.finishReason);
    const cost = costOf(port.price, outcome.usage);
    return await this.#compacted(action, {
      ...(summary === undefined
        ? { error: { code: "DRIVER", message: "The model wrote no summary that can be used" } }
        : { summary }),
      usage: outcome.usage,
      ...(cost === undefined ? {} : { cost_usd: cost }),
      duration_ms,
    });
  }

  async #compacted(
    { turn, attempt, from, to }: CompactAction<P>,
    facts: Pick<
      EntryOf<"context.compacted">,
      "summary" | "error" | "usage" | "cost_usd" | "duration_ms"
    >,
  ): Promise<ModelEnd> {
    const { log, observer } = this.#deps;
    const entry = await log.appendLarge(
      { type: "context.compacted", turn, attempt, from, to, ...facts },
    );
    // As it was journaled: without secrets.
    const error = entry.type === "context.compacted" ? entry.error : undefined;
    log.show(entry.seq, () =>
      observer.emit({
        type: "context.compacted",
        turn,
        how: facts.summary === undefined ? "results" : "summary",
        messages: to - from,
        ...(error === undefined ? {} : { error }),
      }));
    return { kind: "told" };
  }

  async #ask(
    question: Question<P>,
    signal: AbortSignal,
  ): Promise<{ asked: Asked<P>; durationMs: number }> {
    const { observer, clock } = this.#deps;
    const { turn, purpose } = question;
    const first = this.#choose();
    this.#appendRequest(question, first);
    observer.emit({ type: purpose === "summary" ? "context.compacting" : "model.started", turn });
    const startMs = clock.monotonic();
    let asked = { port: first, outcome: await this.#withRepeats(question, first, signal) };
    if (!signal.aborted) asked = await this.#orFallback(question, asked, signal);
    return { asked, durationMs: Math.round(clock.monotonic() - startMs) };
  }

  /** The model that is asked first now. */
  #choose(): ModelPort<P> {
    const { model, fallback, clock } = this.#deps;
    return fallback !== undefined && clock.monotonic() < this.#fallbackUntilMs ? fallback : model;
  }

  #appendRequest(
    { turn, attempt, prompt, purpose }: Question<P>,
    port: ModelPort<P>,
    failed?: EntryOf<"model.request">["fallback_for"],
  ): void {
    const tools = purpose === undefined ? this.#hashTools() : { sha256: toolsHash([]), chars: 0 };
    const tokens = prompt.tokensEstimate + Math.ceil(tools.chars / 4);
    const cost = costOfEstimate(port.price, tokens);
    this.#deps.log.append({
      type: "model.request",
      turn,
      attempt,
      provider: port.provider,
      model: port.model,
      request_sha256: requestHash(port.model, tools.sha256, prompt.sha256),
      tokens_estimate: tokens,
      ...(cost === undefined ? {} : { cost_estimate_usd: cost }),
      ...(purpose === undefined ? {} : { purpose }),
      ...(failed === undefined ? {} : { fallback_for: failed }),
    });
  }

  /** What was asked; or the fallback's outcome, where the model failed in a way that another one might not. */
  async #orFallback(
    question: Question<P>,
    asked: Asked<P>,
    signal: AbortSignal,
  ): Promise<Asked<P>> {
    const { fallback, observer, clock } = this.#deps;
    const { port, outcome } = asked;
    if (outcome.ok || fallback === undefined || port === fallback) return asked;
    if (!outcome.retryable && outcome.contextWindow !== true) return asked;
    const { provider, model } = port;
    this.#fallbackUntilMs = outcome.contextWindow === true
      ? Infinity
      : clock.monotonic() + FALLBACK_STAY_MS;
    this.#appendRequest(question, fallback, { provider, model, error: errorRecord(outcome.error) });
    const { code, message } = outcome.error;
    observer.emit({
      type: "notice",
      message: `Model "${model}" failed: [${code}] ${message}; ` +
        `going on with "${fallback.model}" (${fallback.provider})`,
    });
    const second = await this.#withRepeats(question, fallback, signal);
    if (second.ok) return { port: fallback, outcome: second };
    const both = new SysError(
      second.error.code,
      `${second.error.message}; before it, model "${model}" failed: ${message}`,
      { hint: second.error.hint, cause: second.error },
    );
    return { port: fallback, outcome: { ...second, error: both } };
  }

  async #reply(
    { turn, attempt }: ModelAction<P>,
    port: ModelPort<P>,
    { message, usage, finishReason }: Extract<ModelPortOutcome, { ok: true }>,
    durationMs: number,
  ): Promise<ModelEnd> {
    const { log, observer } = this.#deps;
    const cost = costOf(port.price, usage);
    const { input_tokens, output_tokens } = usage;
    const duration_ms = durationMs;
    await log.appendLarge(
      {
        type: "model.reply",
        turn,
        attempt,
        message,
        usage,
        ...(cost === undefined ? {} : { cost_usd: cost }),
        finish_reason: finishReason,
        duration_ms,
      },
      () =>
        observer.emit({ type: "model.finished", turn, duration_ms, input_tokens, output_tokens }),
    );
    return { kind: "told" };
  }

  async #withRepeats(
    question: Question<P>,
    port: ModelPort<P>,
    signal: AbortSignal,
  ): Promise<ModelPortOutcome> {
    const { clock, observer } = this.#deps;
    for (let repeat = 0;; repeat += 1) {
      const outcome = await this.#once(question, port, signal);
      const waitMs = RETRY_WAITS_MS[repeat];
      if (outcome.ok || !outcome.retryable || waitMs === undefined || signal.aborted) {
        return outcome;
      }
      const wait = Math.min(Math.max(waitMs, outcome.retryAfterMs ?? 0), RETRY_AFTER_MS_MAX);
      const { code, message } = outcome.error;
      observer.emit({
        type: "model.retrying",
        turn: question.turn,
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

  async #once(
    question: Question<P>,
    port: ModelPort<P>,
    signal: AbortSignal,
  ): Promise<ModelPortOutcome> {
    const { turn, purpose } = question;
    const { provider, model } = port;
    const span = this.#deps.telemetry?.model({
      turn,
      provider,
      model,
      ...(purpose === undefined ? {} : { purpose }),
    });
    const outcome = await this.#perform(question, port, signal);
    span?.end(modelEnd(outcome));
    return outcome;
  }

  async #perform(
    { turn, prompt, purpose }: Question<P>,
    model: ModelPort<P>,
    signal: AbortSignal,
  ): Promise<ModelPortOutcome> {
    const { tools, observer, clock } = this.#deps;
    const limit = new AbortController();
    const device = `/dev/llm/${model.provider}`;
    let onAbort = () => {};
    // However long the model's own end takes: what comes after an abort is dropped.
    const aborted = new Promise<ModelPortOutcome>((resolve) => {
      onAbort = () => {
        limit.abort(signal.reason);
        const error = signal.reason instanceof SysError
          ? signal.reason
          : new SysError("INTERRUPTED", "The request was cancelled", { device });
        resolve({ ok: false, error, retryable: false });
      };
    });
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
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
          model.request(prompt, purpose === undefined ? tools.definitions : NO_TOOLS, {
            signal: limit.signal,
            onDelta: ({ type, text }) => {
              // A summary is no answer to the user.
              if (!open || purpose !== undefined) return;
              observer.emit({ type: "model.delta", turn, kind: type, text });
            },
          }),
        ]),
        () => {
          limit.abort(late);
          return { ok: false, error: late, retryable: true };
        },
      );
      this.#traceRequest({ turn, purpose }, model, outcome, startMs);
      return outcome;
    } catch (thrown) {
      return { ok: false, error: toSysError(thrown, { device }), retryable: false };
    } finally {
      open = false;
      signal.removeEventListener("abort", onAbort);
    }
  }

  #traceRequest(
    { turn, purpose }: { turn: number; purpose: Question<P>["purpose"] },
    model: ModelPort<P>,
    outcome: ModelPortOutcome,
    startMs: number,
  ): void {
    const { trace, clock, pid } = this.#deps;
    const durationMs = clock.monotonic() - startMs;
    const args: { [name: string]: Json } = {
      path: `/dev/llm/${model.provider}`,
      model: model.model,
      turn,
      ...(purpose === undefined ? {} : { purpose }),
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
      const sha256 = toolsHash(
        of.map((tool) => ({ name: tool.modelName, sha256: definitionHash(tool) })),
      );
      this.#toolsHashed = { of, sha256, chars };
    }
    return this.#toolsHashed;
  }
}
