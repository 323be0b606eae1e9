/** A span that is over, and how spans and traces are named: by what they stand for, so that nobody need keep an id to find them. */
import { sha256Hex } from "../base/json.ts";

export type AttributeValue = string | number | readonly string[];

/** `internal`: within rnix; `client`: a request to something else. */
export type SpanKind = "internal" | "client";

/** A span that is over. */
export interface SpanRecord {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  /** Spans of the same trace that this one goes on from. */
  links: readonly string[];
  name: string;
  kind: SpanKind;
  /** Milliseconds since 1970, with fractions. */
  startMs: number;
  endMs: number;
  attributes: { readonly [name: string]: AttributeValue };
  failed: boolean;
}

/** Id of the trace that a run and all below it lie in: that of the run at the top, which has as many bits. */
export function traceIdOf(rootRunId: string): string {
  return rootRunId.replaceAll("-", "");
}

/** Id of the span of one process of a run. */
export function processSpanId(runId: string, pid: number): string {
  return spanIdOf(`process ${pid} of ${runId}`);
}

/** Id of the call with which the process `pid` started the run, or took it up. */
export function childCallSpanId(childRunId: string, pid: number): string {
  return spanIdOf(`call from ${pid} for ${childRunId}`);
}

/** Id of the `n`th of the other spans of a process. */
export function innerSpanId(runId: string, pid: number, n: number): string {
  return spanIdOf(`${n} within ${pid} of ${runId}`);
}

/** W3C trace context, level 1: always sampled. */
export function traceparentOf(traceId: string, spanId: string): string {
  return `00-${traceId}-${spanId}-01`;
}

function spanIdOf(what: string): string {
  return sha256Hex(what).slice(0, 16);
}
