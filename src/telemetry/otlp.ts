/** Spans as OTLP has them in JSON (`ExportTraceServiceRequest` of opentelemetry-proto 1.x: ids in hex, 64-bit numbers as strings). */
import type { Json, JsonObject } from "../base/json.ts";
import type { AttributeValue, SpanKind, SpanRecord } from "./span.ts";

const KINDS: { readonly [kind in SpanKind]: number } = { internal: 1, client: 3 };
const STATUS_ERROR = 2;

/** What all spans of a request come from. */
export interface Origin {
  serviceName: string;
  version: string;
}

/** The body of one export request. */
export function exportRequest(spans: readonly SpanRecord[], origin: Origin): JsonObject {
  const { serviceName, version } = origin;
  const resource = {
    attributes: attributesOf({ "service.name": serviceName, "service.version": version }),
  };
  const scopeSpans = [{ scope: { name: "rnix", version }, spans: spans.map(spanOf) }];
  return { resourceSpans: [{ resource, scopeSpans }] };
}

function spanOf(span: SpanRecord): JsonObject {
  const { traceId, spanId, parentSpanId, links, name, kind, failed } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    flags: 1,
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanosOf(span.startMs),
    endTimeUnixNano: nanosOf(span.endMs),
    attributes: attributesOf(span.attributes),
    ...(links.length === 0 ? {} : { links: links.map((linked) => ({ traceId, spanId: linked })) }),
    status: failed ? { code: STATUS_ERROR } : {},
  };
}

/** To the microsecond: a number can't hold more of a time of today. */
function nanosOf(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}

function attributesOf(attributes: { readonly [name: string]: AttributeValue }): Json[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }));
}

function valueOf(value: AttributeValue): Json {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value !== "number") {
    return { arrayValue: { values: value.map((each) => ({ stringValue: each })) } };
  }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
