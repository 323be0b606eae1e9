/**
 * One process of a run as spans: process → step (a model turn with its calls) → model requests, calls; a child's process is within the call that started it.
 *
 * All of a tree, and all processes of its runs one after the other, lie in one trace, whose id is the id of the run at the top. Names and attributes follow OpenTelemetry's conventions for generative AI, `rnix.*` is what they have no word for. No prompt, argument or result is in any of them, and every text has passed the run's redaction.
 *
 * A step has no end of its own: it ends with the last span within it, and is told when the next one begins or the process ends. Calls that belong to no turn are in the process itself.
 */
import type { Clock } from "../base/clock.ts";
import type { Usage } from "../base/budget.ts";
import type { RunEnd } from "../kernel/ledger.ts";
import type { CallFacts, ModelFacts, Span, SpanEnd, Telemetry } from "../kernel/ports.ts";
import {
  type AttributeValue,
  childCallSpanId,
  innerSpanId,
  processSpanId,
  type SpanKind,
  type SpanRecord,
  traceIdOf,
  traceparentOf,
} from "./span.ts";

/** The names that the conventions have for providers. */
const PROVIDER_NAMES: { readonly [provider: string]: string } = {
  anthropic: "anthropic",
  google: "gcp.gemini",
  openai: "openai",
};

/** Where a process stands among the others. */
export interface ProcessFacts {
  runId: string;
  pid: number;
  agent: string;
  /** A workflow asks none. */
  model?: { provider: string; name: string };
  /** The run at the top of its tree. */
  rootRunId: string;
  /** The process whose call this run answers, where it is at work. */
  parentPid?: number;
  /** The process of the same run before this one. */
  previousPid?: number;
}

export interface RunTelemetryOptions {
  clock: Clock;
  redact(text: string): string;
  record(span: SpanRecord): void;
}

type Attributes = { [name: string]: AttributeValue };

interface Place {
  name: string;
  kind: SpanKind;
  spanId: string;
  parentSpanId?: string;
  links?: readonly string[];
  attributes: Attributes;
}

interface Step {
  turn: number;
  place: Place;
  startMs: number;
  endMs: number;
}

export class RunTelemetry implements Telemetry {
  readonly #facts: ProcessFacts;
  readonly #options: RunTelemetryOptions;
  readonly #traceId: string;
  readonly #spanId: string;
  readonly #wallMs: number;
  readonly #monotonicMs: number;
  readonly #usage: Usage = { input_tokens: 0, output_tokens: 0 };
  readonly #open = new Set<Span>();
  #step: Step | undefined;
  #spans = 0;
  #ended = false;

  constructor(facts: ProcessFacts, options: RunTelemetryOptions) {
    this.#facts = facts;
    this.#options = options;
    this.#traceId = traceIdOf(facts.rootRunId);
    this.#spanId = processSpanId(facts.runId, facts.pid);
    this.#wallMs = options.clock.now();
    this.#monotonicMs = options.clock.monotonic();
  }

  model({ turn, provider, model, purpose }: ModelFacts): Span {
    const attributes: Attributes = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": providerName(provider),
      "gen_ai.request.model": model,
      "gen_ai.conversation.id": this.#facts.runId,
      ...(purpose === undefined ? {} : { "rnix.purpose": purpose }),
    };
    const place = { name: `chat ${model}`, kind: "client" as const, attributes };
    return this.#begin({ ...place, ...this.#within(turn) });
  }

  call({ call, attempt, tool, effect, childRunId }: CallFacts): Span {
    const attributes: Attributes = {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": tool,
      "gen_ai.tool.call.id": call,
      "gen_ai.conversation.id": this.#facts.runId,
      "rnix.attempt": attempt,
      ...(effect === undefined ? {} : { "rnix.effect": effect }),
      ...(childRunId === undefined ? {} : { "rnix.child.run_id": childRunId }),
    };
    const within = this.#within(turnOf(call));
    return this.#begin({
      name: `execute_tool ${tool}`,
      kind: "internal",
      attributes,
      ...within,
      ...(childRunId === undefined ? {} : {
        spanId: childCallSpanId(childRunId, this.#facts.pid),
      }),
    });
  }

  end(end: RunEnd): void {
    if (this.#ended) return;
    // What is still on its way is given up with the process.
    for (const span of this.#open) span.end({ error: "INTERRUPTED" });
    this.#endStep();
    this.#ended = true;
    this.#record(this.#process(end), this.#wallMs, this.#nowMs(), errorOf(end));
  }

  #process(end: RunEnd): Place {
    const { runId, pid, agent, model, parentPid, previousPid } = this.#facts;
    const { input_tokens, output_tokens } = this.#usage;
    return {
      name: `invoke_agent ${agent}`,
      kind: "internal",
      spanId: this.#spanId,
      ...(parentPid === undefined ? {} : { parentSpanId: childCallSpanId(runId, parentPid) }),
      links: previousPid === undefined ? [] : [processSpanId(runId, previousPid)],
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        ...(model === undefined ? {} : {
          "gen_ai.provider.name": providerName(model.provider),
          "gen_ai.request.model": model.name,
          "gen_ai.usage.input_tokens": input_tokens,
          "gen_ai.usage.output_tokens": output_tokens,
        }),
        "gen_ai.conversation.id": runId,
        "rnix.pid": pid,
        "rnix.outcome": end.state === "exited" ? end.status : end.reason,
      },
    };
  }

  /** A new span's id, and the one that it is in; where that is a step that hasn't begun, it begins now. */
  #within(turn: number | undefined): { spanId: string; parentSpanId: string } {
    if (turn === undefined) return { spanId: this.#newId(), parentSpanId: this.#spanId };
    if (this.#step?.turn !== turn) {
      this.#endStep();
      const place: Place = {
        name: `step ${turn}`,
        kind: "internal",
        spanId: this.#newId(),
        parentSpanId: this.#spanId,
        attributes: { "gen_ai.conversation.id": this.#facts.runId, "rnix.turn": turn },
      };
      const startMs = this.#nowMs();
      this.#step = { turn, place, startMs, endMs: startMs };
    }
    return { spanId: this.#newId(), parentSpanId: this.#step.place.spanId };
  }

  #begin(place: Place): Span {
    const startMs = this.#nowMs();
    let isOver = this.#ended;
    const span: Span = {
      traceparent: traceparentOf(this.#traceId, place.spanId),
      end: (facts = {}) => {
        if (isOver) return;
        isOver = true;
        this.#open.delete(span);
        const endMs = this.#nowMs();
        const step = this.#step;
        if (step !== undefined && step.place.spanId === place.parentSpanId) step.endMs = endMs;
        this.#count(facts.usage);
        const attributes = { ...place.attributes, ...endAttributes(facts) };
        this.#record({ ...place, attributes }, startMs, endMs, facts.error);
      },
    };
    if (!isOver) this.#open.add(span);
    return span;
  }

  #endStep(): void {
    const step = this.#step;
    this.#step = undefined;
    if (step !== undefined) this.#record(step.place, step.startMs, step.endMs, undefined);
  }

  #count(usage: Usage | undefined): void {
    this.#usage.input_tokens += usage?.input_tokens ?? 0;
    this.#usage.output_tokens += usage?.output_tokens ?? 0;
  }

  #record(place: Place, startMs: number, endMs: number, error: string | undefined): void {
    const { redact, record } = this.#options;
    const all = error === undefined
      ? place.attributes
      : { ...place.attributes, "error.type": error };
    const attributes = Object.fromEntries(
      Object.entries(all).map(([name, value]) => [
        name,
        typeof value === "string" ? redact(value) : value,
      ]),
    );
    record({
      traceId: this.#traceId,
      links: [],
      ...place,
      name: redact(place.name),
      startMs,
      endMs,
      attributes,
      failed: error !== undefined,
    });
  }

  #newId(): string {
    this.#spans += 1;
    return innerSpanId(this.#facts.runId, this.#facts.pid, this.#spans);
  }

  /** Wall time that never goes back. */
  #nowMs(): number {
    return this.#wallMs + this.#options.clock.monotonic() - this.#monotonicMs;
  }
}

function endAttributes({ usage, finishReason, outcome }: SpanEnd): Attributes {
  return {
    ...(usage === undefined ? {} : {
      "gen_ai.usage.input_tokens": usage.input_tokens,
      "gen_ai.usage.output_tokens": usage.output_tokens,
    }),
    ...(usage?.cached_tokens === undefined ? {} : {
      "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
    }),
    ...(finishReason === undefined ? {} : { "gen_ai.response.finish_reasons": [finishReason] }),
    ...(outcome === undefined ? {} : { "rnix.outcome": outcome }),
  };
}

/** A suspension is no failure, unless something is behind it that has to be put right. */
function errorOf(end: RunEnd): string | undefined {
  if (end.state === "suspended") return end.error?.code;
  if (end.status === "completed") return undefined;
  return end.signal === undefined ? end.error?.code ?? "_OTHER" : `SIG${end.signal}`;
}

function providerName(provider: string): string {
  return PROVIDER_NAMES[provider] ?? provider;
}

/** The turn that asked for a call; undefined for a call of a workflow. */
function turnOf(call: string): number | undefined {
  const turn = /^t(\d+)\./.exec(call)?.[1];
  return turn === undefined ? undefined : Number(turn);
}
