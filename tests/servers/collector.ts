/** A collector of OpenTelemetry on loopback: takes what OTLP over HTTP has in JSON and gives it back as spans. */

/** A span as it was sent. */
export interface CollectedSpan {
  trace: string;
  id: string;
  parent: string | undefined;
  links: string[];
  name: string;
  kind: number;
  /** Nanoseconds since 1970, all of one length. */
  start: string;
  end: string;
  attributes: { [name: string]: unknown };
  failed: boolean;
}

interface SentAttribute {
  key: string;
  value: { stringValue?: string; intValue?: string; doubleValue?: number; arrayValue?: unknown };
}

interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  links?: { spanId: string }[];
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: SentAttribute[];
  status: { code?: number };
}

interface SentRequest {
  resourceSpans: {
    resource: { attributes: SentAttribute[] };
    scopeSpans: { spans: SentSpan[] }[];
  }[];
}

export interface Collector extends AsyncDisposable {
  /** Base address, without a path. */
  url: string;
  requests: { path: string; headers: Headers; body: string }[];
  services: Set<unknown>;
  /** All spans, once `count` of them are such; gives up after a minute. */
  spans(isSuch: (span: CollectedSpan) => boolean, count: number): Promise<CollectedSpan[]>;
}

/** Answers every request with what `answer` gives. */
export function startCollector(answer: () => Promise<number> = () => Promise.resolve(200)) {
  const requests: Collector["requests"] = [];
  const services = new Set<unknown>();
  const spans: CollectedSpan[] = [];
  let onSpans = () => {};
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const body = await request.text();
      requests.push({ path: new URL(request.url).pathname, headers: request.headers, body });
      for (const { resource, scopeSpans } of (JSON.parse(body) as SentRequest).resourceSpans) {
        services.add(attributesOf(resource.attributes)["service.name"]);
        spans.push(...scopeSpans.flatMap((scope) => scope.spans.map(spanOf)));
      }
      onSpans();
      return new Response("{}", { status: await answer() });
    },
  );
  const collector: Collector = {
    url: `http://127.0.0.1:${server.addr.port}`,
    requests,
    services,
    async spans(isSuch, count) {
      const enough = Promise.withResolvers<void>();
      const timer = setTimeout(() => enough.reject(new Error(JSON.stringify(spans))), 60_000);
      onSpans = () => {
        if (spans.filter(isSuch).length >= count) enough.resolve();
      };
      onSpans();
      await enough.promise.finally(() => clearTimeout(timer));
      return spans;
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return collector;
}

function spanOf(sent: SentSpan): CollectedSpan {
  return {
    trace: sent.traceId,
    id: sent.spanId,
    parent: sent.parentSpanId,
    links: (sent.links ?? []).map(({ spanId }) => spanId),
    name: sent.name,
    kind: sent.kind,
    start: sent.startTimeUnixNano,
    end: sent.endTimeUnixNano,
    attributes: attributesOf(sent.attributes),
    failed: sent.status.code === 2,
  };
}

function attributesOf(sent: readonly SentAttribute[]): { [name: string]: unknown } {
  return Object.fromEntries(
    sent.map(({ key, value }) => [
      key,
      value.stringValue ?? value.arrayValue ?? value.doubleValue ?? Number(value.intValue),
    ]),
  );
}
